// Names, promotion, and the conversions of the small floats (round to nearest, ties to even).
#include <fornax/dtype.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fornax {
namespace {

// One description serves all small floats: bits of exponent and mantissa, and whether the largest
// exponent holds infinity (IEEE) or finite values with one NaN pattern (e4m3, OCP FP8 spec 5.2).
template <int kExponentBits, int kMantissaBits, bool kInfinity>
struct Format {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint32_t kSign = 1u << (kExponentBits + kMantissaBits);
  static constexpr uint32_t kExponentMask = ((1u << kExponentBits) - 1) << kMantissaBits;
  static constexpr uint32_t kNan =
      kInfinity ? kExponentMask | (1u << (kMantissaBits - 1)) : kSign - 1;
  // The first pattern that is not finite.
  static constexpr uint32_t kLimit = kInfinity ? kExponentMask : kSign - 1;

  static uint32_t encode(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 31 ? kSign : 0;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | kNan;
    // Subnormal floats have the exponent of the smallest normal ones.
    const int exponent = std::max(int(magnitude >> 23), 1) - 127;
    uint64_t mantissa = (magnitude & 0x7fffffu) | (magnitude >> 23 ? 0x800000u : 0);
    // How many low bits of the 24-bit significand go, more where the result is subnormal.
    int shift = 23 - kMantissaBits;
    int biased = exponent + kBias;
    if (biased < 1) {
      shift += 1 - biased;
      biased = 1;
    }
    if (shift > 25) return sign;
    const uint64_t half = uint64_t(1) << (shift - 1);
    const uint64_t odd = (mantissa >> shift) & 1;
    mantissa = (mantissa + half - 1 + odd) >> shift;
    // A carry out of the mantissa moves into the exponent by itself.
    const uint64_t result = (uint64_t(biased - 1) << kMantissaBits) + mantissa;
    if (magnitude == 0x7f800000u || result >= kLimit) return sign | kOverflow;
    return sign | uint32_t(result);
  }
  static constexpr uint32_t kOverflow = kInfinity ? kExponentMask : kNan;

  static float decode(uint32_t bits) {
    const float sign = bits & kSign ? -1.0f : 1.0f;
    const uint32_t magnitude = bits & (kSign - 1);
    const uint32_t exponent = magnitude >> kMantissaBits;
    const uint32_t mantissa = magnitude & ((1u << kMantissaBits) - 1);
    if (magnitude >= kLimit) {
      if (kInfinity && mantissa == 0) return sign * std::numeric_limits<float>::infinity();
      return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
    }
    if (exponent == 0) return sign * std::ldexp(float(mantissa), 1 - kBias - kMantissaBits);
    return sign * std::ldexp(float(mantissa | (1u << kMantissaBits)),
                             int(exponent) - kBias - kMantissaBits);
  }
};

using Half = Format<5, 10, true>;
using Brain = Format<8, 7, true>;
using E4M3 = Format<4, 3, false>;
using E5M2 = Format<5, 2, true>;

}  // namespace

Float16::Float16(float value) : bits(uint16_t(Half::encode(value))) {}
Float16::operator float() const { return Half::decode(bits); }
BFloat16::BFloat16(float value) : bits(uint16_t(Brain::encode(value))) {}
BFloat16::operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
Float8E4M3::Float8E4M3(float value) : bits(uint8_t(E4M3::encode(value))) {}
Float8E4M3::operator float() const { return E4M3::decode(bits); }
Float8E5M2::Float8E5M2(float value) : bits(uint8_t(E5M2::encode(value))) {}
Float8E5M2::operator float() const { return E5M2::decode(bits); }

bool parse_dtype(std::string_view name, DType& out) {
  for (int i = 0; i < kDTypeCount; i++) {
    if (name_of(DType(i)) != name) continue;
    out = DType(i);
    return true;
  }
  return false;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (info(a).kind > info(b).kind) std::swap(a, b);  // b has the stronger kind
  const Kind kind_a = info(a).kind, kind_b = info(b).kind;
  if (kind_b == Kind::floating) {
    if (kind_a != Kind::floating) return b;
    if (size_of(a) == 1 && size_of(b) == 1) return DType::f16;
    if (size_of(a) == size_of(b)) return DType::f32;  // f16 with bf16
    return size_of(a) > size_of(b) ? a : b;
  }
  if (kind_a == kind_b) return size_of(a) > size_of(b) ? a : b;
  if (kind_a == Kind::boolean) return b;
  // Unsigned a with signed b: the narrowest signed type wider than a, and no narrower than b.
  if (size_of(b) > size_of(a)) return b;
  return size_of(a) == 1 ? DType::i16 : size_of(a) == 2 ? DType::i32 : DType::i64;
}

}  // namespace fornax
