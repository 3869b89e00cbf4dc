// Conversions of the small floats against a slow search over all their values, and promotion.
#include <fornax/dtype.h>
#include <fornax/error.h>
#include <fornax/scalar.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace fornax {
namespace {

// The value of a pattern by the definition of the format.
double defined_value(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = int(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> (exponent_bits + mantissa_bits) ? -1 : 1;
  const double fraction = double(mantissa) / double(1u << mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

struct Pattern {
  double value;
  uint32_t bits;
};

// All finite values that are not negative, ascending.
std::vector<Pattern> finite(int exponent_bits, int mantissa_bits, uint32_t limit) {
  std::vector<Pattern> list;
  for (uint32_t bits = 0; bits < limit; bits++) {
    list.push_back({defined_value(bits, exponent_bits, mantissa_bits), bits});
  }
  return list;
}

// The nearest of `list`, halves to the even pattern; list.size() where it is one past the end.
uint32_t nearest(const std::vector<Pattern>& list, double value) {
  const auto above = std::lower_bound(list.begin(), list.end(), value,
                                      [](const Pattern& p, double v) { return p.value < v; });
  const auto index = uint32_t(above - list.begin());
  if (index == 0) return 0;
  const double step = list[list.size() - 1].value - list[list.size() - 2].value;
  const double upper = index < list.size() ? above->value : list.back().value + step;
  const double lower = list[index - 1].value;
  if (value - lower != upper - value) return value - lower < upper - value ? index - 1 : index;
  return (index - 1) % 2 == 0 ? index - 1 : index;
}

// Checks Small on its own values, halfway between them, a hair beside, and random floats.
template <class Small>
void check_format(int exponent_bits, int mantissa_bits, uint32_t limit, uint32_t overflow) {
  const auto list = finite(exponent_bits, mantissa_bits, limit);
  const uint32_t sign = 1u << (exponent_bits + mantissa_bits);
  std::vector<float> inputs;
  for (size_t i = 0; i < list.size(); i++) {
    Small exact;
    exact.bits = decltype(exact.bits)(list[i].bits);
    ASSERT_EQ(double(float(exact)), list[i].value);
    const double next =
        i + 1 < list.size() ? list[i + 1].value : 2 * list[i].value - list[i - 1].value;
    const auto half = float((list[i].value + next) / 2);
    for (float x : {float(list[i].value), half, std::nextafterf(half, 0.0f),
                    std::nextafterf(half, INFINITY)}) {
      inputs.push_back(x);
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200000; i++) {
    const auto x = std::bit_cast<float>(uint32_t(random()) & 0x7fffffffu);
    if (std::isfinite(x)) inputs.push_back(x);
  }
  for (float x : inputs) {
    const uint32_t index = nearest(list, double(x));
    const uint32_t wanted = index < list.size() ? list[index].bits : overflow;
    ASSERT_EQ(uint32_t(Small(x).bits), wanted) << x;
    ASSERT_EQ(uint32_t(Small(-x).bits), wanted | sign) << -x;
  }
  EXPECT_TRUE(std::isnan(float(Small(NAN))));
  EXPECT_TRUE(std::isnan(float(Small(-NAN))));
  EXPECT_EQ(uint32_t(Small(INFINITY).bits), overflow);
  EXPECT_EQ(uint32_t(Small(-INFINITY).bits), overflow | sign);
  // All patterns come back, NaN as NaN.
  for (uint32_t bits = 0; bits < 2 * sign; bits++) {
    Small pattern;
    pattern.bits = decltype(pattern.bits)(bits);
    const float value = float(pattern);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(float(Small(value))));
    } else {
      ASSERT_EQ(uint32_t(Small(value).bits), bits);
    }
  }
}

TEST(dtype, f16_rounds_to_the_nearest) { check_format<Float16>(5, 10, 0x7c00, 0x7c00); }
TEST(dtype, bf16_rounds_to_the_nearest) { check_format<BFloat16>(8, 7, 0x7f80, 0x7f80); }
TEST(dtype, f8e5m2_rounds_to_the_nearest) { check_format<Float8E5M2>(5, 2, 0x7c, 0x7c); }
TEST(dtype, f8e4m3_rounds_to_the_nearest_and_has_no_infinity) {
  check_format<Float8E4M3>(4, 3, 0x7f, 0x7f);
  EXPECT_TRUE(std::isnan(float(Float8E4M3(INFINITY))));
  EXPECT_EQ(float(Float8E4M3(448.0f)), 448.0f);
  EXPECT_EQ(float(Float8E4M3(464.0f)), 448.0f);  // halfway to 480, which is not there: to even
  EXPECT_TRUE(std::isnan(float(Float8E4M3(465.0f))));
}

TEST(dtype, names_read_back) {
  for (int i = 0; i < kDTypeCount; i++) {
    DType found;
    ASSERT_TRUE(parse_dtype(name_of(DType(i)), found));
    EXPECT_EQ(found, DType(i));
  }
  DType found;
  EXPECT_FALSE(parse_dtype("bool_", found));
  EXPECT_FALSE(parse_dtype("", found));
  EXPECT_FALSE(parse_dtype("f128", found));
}

bool holds_range(DType wide, DType narrow) {
  if (!is_integer(wide) || !is_integer(narrow)) return false;
  if (is_signed(wide) == is_signed(narrow)) return size_of(wide) >= size_of(narrow);
  return is_signed(wide) && size_of(wide) > size_of(narrow);
}

TEST(promote, is_symmetric_and_keeps_equal_dtypes) {
  for (int a = 0; a < kDTypeCount; a++) {
    EXPECT_EQ(promote(DType(a), DType(a)), DType(a));
    for (int b = 0; b < kDTypeCount; b++) {
      EXPECT_EQ(promote(DType(a), DType(b)), promote(DType(b), DType(a)));
      EXPECT_GE(int(info(promote(DType(a), DType(b))).kind), int(info(DType(a)).kind));
    }
  }
}

TEST(promote, integers_hold_both_operands) {
  for (int a = 0; a < kDTypeCount; a++) {
    for (int b = 0; b < kDTypeCount; b++) {
      if (!is_integer(DType(a)) || !is_integer(DType(b))) continue;
      const DType result = promote(DType(a), DType(b));
      const bool impossible =
          !holds_range(DType::i64, DType(a)) || !holds_range(DType::i64, DType(b));
      if (impossible && (is_signed(DType(a)) || is_signed(DType(b)))) {
        EXPECT_EQ(result, DType::i64);  // u64 with a signed dtype
      } else {
        EXPECT_TRUE(holds_range(result, DType(a)) && holds_range(result, DType(b)));
      }
    }
  }
}

// Grouping matters where f16 meets bf16, or the two f8, beside a third dtype; nowhere else.
TEST(promote, is_associative_but_for_the_pairs_of_equal_width) {
  const auto mixed = [](DType a, DType b) {
    return a != b && is_floating(a) && is_floating(b) && size_of(a) == size_of(b);
  };
  for (int a = 0; a < kDTypeCount; a++) {
    for (int b = 0; b < kDTypeCount; b++) {
      for (int c = 0; c < kDTypeCount; c++) {
        const DType x = DType(a), y = DType(b), z = DType(c);
        if (mixed(x, y) || mixed(y, z) || mixed(x, z)) continue;
        EXPECT_EQ(promote(promote(x, y), z), promote(x, promote(y, z)))
            << name_of(x) << ' ' << name_of(y) << ' ' << name_of(z);
      }
    }
  }
}

TEST(promote, pairs_of_equal_width) {
  EXPECT_EQ(promote(DType::f16, DType::bf16), DType::f32);
  EXPECT_EQ(promote(DType::f8e4m3, DType::f8e5m2), DType::f16);
  EXPECT_EQ(promote(DType::i64, DType::f16), DType::f16);
  EXPECT_EQ(promote(DType::bool_, DType::u8), DType::u8);
  EXPECT_EQ(promote(DType::u8, DType::i8), DType::i16);
  EXPECT_EQ(promote(DType::u64, DType::i8), DType::i64);
}

TEST(scalar, floats_become_integers_without_fraction_and_saturate) {
  EXPECT_EQ(Scalar(2.9).as_int64(), 2);
  EXPECT_EQ(Scalar(-2.9).as_int64(), -2);
  EXPECT_EQ(Scalar(NAN).as_int64(), 0);
  EXPECT_EQ(Scalar(1e30).as_int64(), INT64_MAX);
  EXPECT_EQ(Scalar(-1e30).as_int64(), INT64_MIN);
  EXPECT_EQ(Scalar(-1.0).as_uint64(), 0u);
  EXPECT_EQ(Scalar(1e30).as_uint64(), UINT64_MAX);
  EXPECT_EQ(Scalar(NAN).as_uint64(), 0u);
  EXPECT_EQ(Scalar(UINT64_MAX).as_double(), 18446744073709551616.0);
  EXPECT_FALSE(Scalar(0.0) == Scalar(-0.0));
  EXPECT_FALSE(Scalar(1) == Scalar(true));
}

}  // namespace
}  // namespace fornax
