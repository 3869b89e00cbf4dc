// Making operands: numbers by a seed, and memory layouts by views.
#include "tests/ops/sample.h"

#include <fornax/ops.h>

#include <limits>
#include <random>

#include "base/error.h"
#include "graph/evaluate.h"
#include "tensor/record.h"

namespace fornax::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSpecialFloats[] = {0.0,        -0.0,
                                     1.0,        -1.0,
                                     0.5,        -2.5,
                                     3.5,        100.25,
                                     -7.75,      1e30,
                                     -1e-30,     1e-40,
                                     240.0,      89.0,
                                     -89.0,      88.5,
                                     -103.0,     5e4,
                                     1e-5,       kInfinity,
                                     -kInfinity, std::numeric_limits<double>::quiet_NaN()};
constexpr int64_t kSpecialIntegers[] = {0,
                                        1,
                                        -1,
                                        2,
                                        -2,
                                        7,
                                        -7,
                                        8,
                                        31,
                                        63,
                                        64,
                                        127,
                                        -128,
                                        255,
                                        32767,
                                        -32768,
                                        65535,
                                        2147483647,
                                        -2147483648,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};

class Numbers {
 public:
  Numbers(const Input& input, int operand, uint64_t seed)
      : input_(input), operand_(operand), random_(seed * 131 + uint64_t(operand)) {}

  Scalar at(int64_t i) {
    const bool floating = is_floating(input_.type.dtype);
    const uint64_t bits = random_();
    switch (input_.fill) {
      case Fill::position:
        return int64_t(bits % uint64_t(std::max<int64_t>(input_.limit, 1)));
      case Fill::ties:
        return floating ? Scalar(double(bits % 4) - 1.5) : Scalar(int64_t(bits % 4));
      case Fill::unit: {
        const double size = 0.9 + 0.2 * fraction(bits);
        return floating ? Scalar(bits % 3 == 0 ? -size : size)
                        : Scalar(1 + int64_t(bits % 16 == 0));
      }
      case Fill::special:
        return floating ? pick(kSpecialFloats, i, bits) : pick(kSpecialIntegers, i, bits);
      default:
        return tame(bits);
    }
  }

 private:
  static double fraction(uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

  Scalar tame(uint64_t bits) const {
    const DType dtype = input_.type.dtype;
    if (is_floating(dtype)) return fraction(bits) * 4 - 2;
    if (is_boolean(dtype)) return (bits >> 20) % 2 == 1;
    return is_signed(dtype) ? int64_t(bits % 19) - 9 : int64_t(bits % 10);
  }

  // The first elements of two operands meet in all pairs; later ones are a mixture.
  template <class T, size_t n>
  Scalar pick(const T (&numbers)[n], int64_t i, uint64_t bits) const {
    if (i < int64_t(n * n)) return numbers[size_t(operand_ % 2 ? i / int64_t(n) : i) % n];
    return bits % 8 == 0 ? Scalar(numbers[(bits >> 3) % n]) : tame(bits);
  }

  const Input& input_;
  const int operand_;
  std::mt19937_64 random_;
};

// The shape in memory from which view_of() gets `shape`.
Shape stored_shape(const Shape& shape, Form form) {
  Shape stored = shape;
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (form == Form::shifted && axis == 0) stored[axis] = shape[axis] + 3;
    if (form == Form::transposed) stored[axis] = shape[shape.rank() - 1 - axis];
    if (form == Form::stepped) stored[axis] = shape[axis] * 2 + 1;
    if (form == Form::repeated && axis % 2 == 0) stored[axis] = std::min<int64_t>(shape[axis], 1);
  }
  return stored;
}

Tensor view_of(const Tensor& stored, const Shape& shape, Form form) {
  Attributes attributes;
  for (int axis = 0; axis < shape.rank(); axis++) {
    const int64_t size = shape[axis];
    if (form == Form::transposed) {
      attributes.push_back(shape.rank() - 1 - axis);
    } else if (form == Form::repeated) {
      attributes.push_back(size);
    } else {
      const bool shifted = form == Form::shifted && axis == 0;
      const int64_t start = form == Form::reversed  ? std::max<int64_t>(size - 1, 0)
                            : form == Form::stepped ? 1
                            : shifted               ? 3
                                                    : 0;
      const int64_t step = form == Form::reversed ? -1 : form == Form::stepped ? 2 : 1;
      attributes.insert(attributes.end(), {size == 0 ? 0 : start, size, step});
    }
  }
  const Op op = form == Form::transposed ? Op::permute
                : form == Form::repeated ? Op::expand
                                         : Op::slice;
  return apply(op, {stored}, attributes);
}

}  // namespace

std::string_view name_of(Form form) {
  constexpr std::string_view names[] = {"contiguous", "shifted",  "transposed", "stepped",
                                        "reversed",   "repeated", "number"};
  return names[size_t(form)];
}

std::string text_of(const Sample& sample) {
  std::string text;
  for (const Input& input : sample.inputs) text += fornax::text_of(input.type) + " ";
  text += "{";
  for (int64_t number : sample.attributes) text += std::to_string(number) + ",";
  if (!sample.attributes.empty()) text.pop_back();
  return text + "}";
}

std::vector<std::byte> elements_of(const Input& input, int operand, uint64_t seed) {
  const DType dtype = input.type.dtype;
  const int64_t count = input.type.shape.element_count();
  std::vector<std::byte> bytes(size_t(count) * size_of(dtype));
  Numbers numbers(input, operand, seed);
  for (int64_t i = 0; i < count; i++) {
    store(dtype, bytes.data(), i, word_of(dtype, numbers.at(i)));
  }
  return bytes;
}

Tensor make(const Input& input, int operand, Form form, uint64_t seed, Device device) {
  const DType dtype = input.type.dtype;
  const Shape& shape = input.type.shape;
  if (form == Form::number) {
    const auto bytes = elements_of({{dtype, {}}, input.fill, input.limit}, operand, seed);
    return constant(device, input.type, scalar_of(dtype, load(dtype, bytes.data(), 0)));
  }
  Input stored = input;
  stored.type.shape = stored_shape(shape, form);
  const auto bytes = elements_of(stored, operand, seed);
  const Tensor tensor = from_bytes(bytes.data(), dtype, stored.type.shape, device);
  const bool plain = form == Form::contiguous || shape.rank() == 0;
  return plain ? tensor : view_of(tensor, shape, form);
}

std::vector<Tensor> make_all(const Sample& sample, Form form, uint64_t seed, Device device) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < sample.inputs.size(); i++) {
    tensors.push_back(make(sample.inputs[i], int(i), form, seed, device));
  }
  return tensors;
}

Tensor apply(Op op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return record(op, pointers, attributes, Site::here());
}

bool takes(Op op, DType dtype) {
  const Type type{dtype, {}}, condition{DType::bool_, {}};
  const Type* types[] = {info(op).rule == Rule::selected ? &condition : &type, &type, &type};
  try {
    (void)infer({op, types, info(op).inputs, {}});
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace fornax::conformance
