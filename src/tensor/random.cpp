// Random tensors.  Every number is a function of the device's key and a counter that each call
// moves on, so equal seeds give equal numbers on every backend.  Key and counter enter as scalars:
// plans do not depend on them.  Safe from any thread; the order of calls decides who gets which
// numbers.
#include <fornax/ops.h>
#include <fornax/random.h>

#include <cmath>
#include <numbers>

#include "backend/registry.h"
#include "tensor/compose.h"

namespace fornax {
namespace {

constexpr int64_t kWordsPerBlock = 4;  // of one Philox 4x32 block

// Uniform u32 words of the given shape.
Tensor words(const Shape& shape, Device device) {
  PhysicalDevice& physical = physical_device(device.physical());
  const uint64_t blocks = uint64_t(shape.element_count() + kWordsPerBlock - 1) / kWordsPerBlock;
  const uint64_t counter = physical.counter.fetch_add(blocks, std::memory_order_relaxed);
  const Tensor key = constant(device, {DType::u64, {}}, physical.seed.load());
  const Tensor first = constant(device, {DType::u64, {}}, counter);
  return record(Op::random_bits, {&key, &first}, sizes_of(shape));
}

// Two words as one u64.
Tensor double_words(const Shape& shape, Device device) {
  const Tensor high = converted(words(shape, device), DType::u64);
  const Tensor low = converted(words(shape, device), DType::u64);
  return shift_left(high, uint64_t(32)) | low;
}

// The leading bits of a word that `dtype` can hold without rounding up to 1.
int digits_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::f8e4m3:
      return 4;
    case DType::f8e5m2:
      return 3;
    default:
      return 24;
  }
}

// Multiples of 2^-digits in [0, 1), plus `offset` times the spacing; f64 or f32.
Tensor unit_interval(const Shape& shape, Device device, DType compute, int digits, double offset) {
  const bool wide = compute == DType::f64;
  const Tensor bits = wide ? shift_right(double_words(shape, device), uint64_t(64 - digits))
                           : shift_right(words(shape, device), uint32_t(32 - digits));
  const Tensor whole = converted(bits, compute);
  return (offset == 0 ? whole : whole + offset) * std::ldexp(1.0, -digits);
}

void check_floating(const char* name, DType dtype) {
  if (!is_floating(dtype)) {
    fail(ErrorKind::dtype, "{}: the dtype must be floating, got {}", name, name_of(dtype));
  }
}

}  // namespace

RandomState random_state(const Device& device) {
  const PhysicalDevice& physical = physical_device(device.physical());
  return {physical.seed.load(), physical.counter.load()};
}

void set_random_state(const Device& device, const RandomState& state) {
  PhysicalDevice& physical = physical_device(device.physical());
  physical.seed.store(state.seed);
  physical.counter.store(state.counter);
}

Tensor uniform(Shape shape, double low, double high, Options o, Site site) {
  Call call("uniform", site);
  check_floating("uniform", o.dtype);
  if (!(low <= high) || !std::isfinite(high - low)) {
    fail(ErrorKind::value, "uniform: the range from {} to {} is not finite and ascending", low,
         high);
  }
  const DType compute = compute_dtype(o.dtype);
  Tensor x = unit_interval(shape, o.device, compute, digits_of(o.dtype), 0);
  if (high - low != 1) x = x * (high - low);
  if (low != 0) x = x + low;
  if ((low != 0 || high != 1) && low < high) {
    // Rounding may reach `high`, which is excluded.
    const double last =
        compute == DType::f64 ? std::nextafter(high, low) : std::nextafter(float(high), float(low));
    x = minimum(x, last);
  }
  return converted(x, o.dtype);
}

// Box-Muller.  Half a spacing keeps the logarithm's argument between 0 and 1, so that neither
// infinity nor 0 comes out.
Tensor normal(Shape shape, double mean, double deviation, Options o, Site site) {
  Call call("normal", site);
  check_floating("normal", o.dtype);
  if (!(deviation >= 0)) {
    fail(ErrorKind::value, "normal: the deviation must not be negative, got {}", deviation);
  }
  const DType compute = compute_dtype(o.dtype);
  const int digits = compute == DType::f64 ? 52 : 23;
  const Tensor radius = sqrt(log(unit_interval(shape, o.device, compute, digits, 0.5)) * -2.0);
  const Tensor turn = unit_interval(shape, o.device, compute, digits, 0.5);
  Tensor x = radius * cos(turn * (2 * std::numbers::pi));
  if (deviation != 1) x = x * deviation;
  if (mean != 0) x = x + mean;
  return converted(x, o.dtype);
}

Tensor bernoulli(Shape shape, double probability, Device device, Site site) {
  Call call("bernoulli", site);
  if (!(probability >= 0 && probability <= 1)) {
    fail(ErrorKind::value, "bernoulli: the probability must be between 0 and 1, got {}",
         probability);
  }
  return unit_interval(shape, device, DType::f32, digits_of(DType::f32), 0) < probability;
}

// A word times the width, of which the upper half counts: exact for every width up to 2^32 but for
// a bias of width / 2^32.  Wider ranges take the remainder of 64 bits.
Tensor random_integers(Shape shape, int64_t low, int64_t high, Device device, Site site) {
  Call call("random_integers", site);
  if (low >= high) {
    fail(ErrorKind::value, "random_integers: the range from {} to {} is empty", low, high);
  }
  const uint64_t width = uint64_t(high) - uint64_t(low);
  if (width > uint64_t(INT64_MAX)) {
    fail(ErrorKind::value, "random_integers: the range from {} to {} is wider than 63 bits", low,
         high);
  }
  Tensor offset;
  if (width <= (uint64_t(1) << 32)) {
    offset = shift_right(converted(words(shape, device), DType::u64) * width, uint64_t(32));
  } else {
    offset = remainder(double_words(shape, device), width);
  }
  return converted(offset, DType::i64) + low;
}

Tensor random_permutation(int64_t count, Device device, Site site) {
  Call call("random_permutation", site);
  if (count < 0) {
    fail(ErrorKind::value, "random_permutation: the count must not be negative, got {}", count);
  }
  const Tensor keys = double_words({count}, device);
  return record(Op::argsort, {&keys}, SortSettings::pack(0, false));
}

// The mask compares whole words, which spares the way through floats.
Tensor dropout(const Tensor& x, double probability, Site site) {
  Call call("dropout", site);
  check_floating("dropout", x.dtype());
  if (!(probability >= 0 && probability <= 1)) {
    fail(ErrorKind::value, "dropout: the probability must be between 0 and 1, got {}", probability);
  }
  if (probability == 0) return x;
  if (probability == 1) {
    return where(constant(x.device(), {DType::bool_, {}}, false), x, number_like(x, 0));
  }
  const auto threshold = uint32_t(probability * 4294967296.0);
  const Tensor keep = words(x.shape(), x.device()) >= threshold;
  return where(keep, x * (1 / (1 - probability)), number_like(x, 0));
}

}  // namespace fornax
