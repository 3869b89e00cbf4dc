// Tensors from nothing and from host data.  Constants take no memory until something needs it.
#include <fornax/ops.h>

#include <cmath>

#include "tensor/compose.h"

namespace fornax {
namespace {

// Error(shape): a negative size, or more bytes than 63 bits can count.
const Shape& checked(const Shape& shape, DType dtype) {
  for (int64_t size : shape) {
    if (size < 0) {
      fail(ErrorKind::shape, "{}: sizes must not be negative, got {}", Call::name_or("full"),
           text_of(shape));
    }
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.element_count(), int64_t(size_of(dtype)), &bytes)) {
    fail(ErrorKind::shape, "{}: element count overflows: {} of {}", Call::name_or("full"),
         text_of(shape), name_of(dtype));
  }
  return shape;
}

Tensor filled(const Shape& shape, Scalar value, DType dtype, Device device) {
  return constant(device, {dtype, checked(shape, dtype)}, scalar_as(dtype, value));
}

// ── Nested lists ─────────────────────────────────────────────────────────────────────────────────
struct Flat {
  Shape shape;
  std::vector<Scalar> numbers;
  bool floating = false, integer = false;
};

std::string text_of_position(const std::vector<size_t>& position) {
  std::string text;
  for (size_t i : position) text += fmt::format("[{}]", i);
  return text.empty() ? "the list" : text;
}

void flatten(const Nested& values, Flat& flat, std::vector<size_t>& position) {
  const int depth = int(position.size());
  if (values.is_number() != (depth == flat.shape.rank())) {
    fail(ErrorKind::shape, "tensor: ragged list: {} is {} where its neighbours are {}",
         text_of_position(position), values.is_number() ? "a number" : "a list",
         values.is_number() ? "lists" : "numbers");
  }
  if (values.is_number()) {
    const Scalar number = values.number();
    flat.floating |= number.kind() == Scalar::Kind::floating;
    flat.integer |=
        number.kind() == Scalar::Kind::integer || number.kind() == Scalar::Kind::unsigned_integer;
    flat.numbers.push_back(number);
    return;
  }
  if (int64_t(values.items().size()) != flat.shape[depth]) {
    fail(ErrorKind::shape, "tensor: ragged list: {} has {} items where its neighbours have {}",
         text_of_position(position), values.items().size(), flat.shape[depth]);
  }
  for (size_t i = 0; i < values.items().size(); i++) {
    position.push_back(i);
    flatten(values.items()[i], flat, position);
    position.pop_back();
  }
}

Flat flattened(const Nested& values) {
  Flat flat;
  for (const Nested* first = &values; !first->is_number(); first = &first->items()[0]) {
    flat.shape.push_back(int64_t(first->items().size()));
    if (first->items().empty()) break;
  }
  std::vector<size_t> position;
  flatten(values, flat, position);
  return flat;
}

// One `T` per number.
template <class T, class Convert>
Tensor host_values(const Flat& flat, Device device, Convert convert) {
  std::vector<T> values;
  values.reserve(flat.numbers.size());
  for (const Scalar& number : flat.numbers) values.push_back(T(convert(number)));
  return from_host(values.data(), {dtype_of<T>, flat.shape}, device);
}

bool is_whole(Scalar number) { return number.kind() != Scalar::Kind::floating; }

// How many steps lie between start and stop, rounded up.
int64_t step_count(Scalar start, Scalar stop, Scalar step) {
  if (step.as_double() == 0) fail(ErrorKind::value, "arange: the step must not be 0");
  if (is_whole(start) && is_whole(stop) && is_whole(step)) {
    const int64_t by = step.as_int64();
    const auto span = by > 0 ? __int128(stop.as_int64()) - start.as_int64()
                             : __int128(start.as_int64()) - stop.as_int64();
    const auto width = by > 0 ? __int128(by) : -__int128(by);
    return span <= 0 ? 0 : int64_t((span + width - 1) / width);
  }
  const double count = std::ceil((stop.as_double() - start.as_double()) / step.as_double());
  if (!(count < 9e18)) {
    fail(ErrorKind::value, "arange: from {} to {} by {} has no end", start.as_double(),
         stop.as_double(), step.as_double());
  }
  return count <= 0 ? 0 : int64_t(count);
}

Tensor steps(Device device, DType dtype, Scalar start, Scalar step, int64_t count) {
  const Tensor first = constant(device, {dtype, {}}, scalar_as(dtype, start));
  const Tensor by = constant(device, {dtype, {}}, scalar_as(dtype, step));
  checked({count}, dtype);
  return record(Op::arange, {&first, &by}, {int64_t(dtype), count});
}

}  // namespace

Tensor positions(Device device, int64_t count, int64_t start) {
  return steps(device, DType::i64, start, 1, count);
}

Tensor tensor(const Nested& values, DataOptions o, Site site) {
  Call call("tensor", site);
  const Flat flat = flattened(values);
  const bool floating = flat.floating || flat.numbers.empty();
  const DType natural = floating ? DType::f32 : flat.integer ? DType::i64 : DType::bool_;
  const DType dtype = o.dtype.value_or(natural);
  const auto as_double = [](Scalar number) { return number.as_double(); };
  const auto as_int64 = [](Scalar number) { return number.as_int64(); };
  if (dtype == DType::f32) return host_values<float>(flat, o.device, as_double);
  Tensor wide;
  if (floating || is_floating(dtype)) {
    wide = host_values<double>(flat, o.device, as_double);
  } else if (natural == DType::bool_) {
    // std::vector<bool> has no array of bools.
    wide = host_values<uint8_t>(flat, o.device, as_int64);
  } else if (dtype == DType::u64) {
    wide = host_values<uint64_t>(flat, o.device, [](Scalar n) { return n.as_uint64(); });
  } else {
    wide = host_values<int64_t>(flat, o.device, as_int64);
  }
  return converted(wide, dtype);
}

void check_count(size_t values, const Shape& shape, Site site) {
  Call call("from", site);
  if (int64_t(values) != shape.element_count()) {
    fail(ErrorKind::shape, "from: {} values are given, {} has {}", values, text_of(shape),
         shape.element_count());
  }
}

Tensor from_bytes(const void* data, DType dtype, Shape shape, Device device, Site site) {
  Call call("from", site);
  const Type type{dtype, checked(shape, dtype)};
  if (dtype != DType::bool_) return from_host(data, type, device);
  // A file may bring any byte; kernels take every bool for 0 or 1.
  const auto* bytes = static_cast<const uint8_t*>(data);
  std::vector<uint8_t> truths(static_cast<size_t>(type.shape.element_count()));
  for (size_t i = 0; i < truths.size(); i++) truths[i] = bytes[i] != 0;
  return from_host(truths.data(), type, device);
}

Tensor zeros(Shape shape, Options o, Site site) {
  Call call("zeros", site);
  return filled(shape, 0, o.dtype, o.device);
}
Tensor ones(Shape shape, Options o, Site site) {
  Call call("ones", site);
  return filled(shape, 1, o.dtype, o.device);
}
Tensor full(Shape shape, Scalar value, Options o, Site site) {
  Call call("full", site);
  return filled(shape, value, o.dtype, o.device);
}
Tensor zeros_like(const Tensor& x, Site site) {
  Call call("zeros_like", site);
  return filled(x.shape(), 0, x.dtype(), x.device());
}
Tensor ones_like(const Tensor& x, Site site) {
  Call call("ones_like", site);
  return filled(x.shape(), 1, x.dtype(), x.device());
}
Tensor full_like(const Tensor& x, Scalar value, Site site) {
  Call call("full_like", site);
  return filled(x.shape(), value, x.dtype(), x.device());
}

Tensor arange(Scalar stop, DataOptions o, Site site) { return arange(0, stop, 1, o, site); }

// Unsigned and bool results are counted in i64, where a negative step has a meaning.
Tensor arange(Scalar start, Scalar stop, Scalar step, DataOptions o, Site site) {
  Call call("arange", site);
  const bool whole = is_whole(start) && is_whole(stop) && is_whole(step);
  const DType dtype = o.dtype.value_or(whole ? DType::i64 : DType::f32);
  const DType counted = !whole && !is_floating(dtype) ? DType::f64
                        : is_signed(dtype)            ? dtype
                                                      : DType::i64;
  const int64_t count = step_count(start, stop, step);
  return converted(steps(o.device, counted, start, step, count), dtype);
}

// On the host and in f64, so that the last number is exactly `stop`.
Tensor linspace(double start, double stop, int64_t count, Options o, Site site) {
  Call call("linspace", site);
  checked({count}, DType::f64);
  std::vector<double> values = host_memory<double>(size_t(count));
  if (count > 0) values[0] = start;
  for (size_t i = 1; i < values.size(); i++) {
    values[i] = start + (stop - start) * (double(i) / double(count - 1));
  }
  if (count > 1) values.back() = stop;
  return converted(from_host(values.data(), {DType::f64, {count}}, o.device), o.dtype);
}

Tensor eye(int64_t size, Options o, Site site) {
  Call call("eye", site);
  const Tensor column = positions(o.device, size);
  return converted(reshaped(column, {size, 1}) == column, o.dtype);
}

// A class outside [0, count) gives a row of zeros.
Tensor one_hot(const Tensor& classes, int64_t count, Site site) {
  Call call("one_hot", site);
  if (!is_integer(classes.dtype())) {
    fail(ErrorKind::dtype, "one_hot: classes must be integers, got {}; cast them to i64",
         text_of(node_of(classes).type));
  }
  Shape wider = classes.shape();
  wider.push_back(1);
  const Tensor column = converted(reshaped(classes, wider), DType::i64);
  return converted(column == positions(classes.device(), count), DType::i64);
}

}  // namespace fornax
