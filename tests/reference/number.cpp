// Scalar evaluation: integer division, wrapping, NaN rules, conversions between dtypes, philox.
#include "base/philox.h"
#include "tests/reference/program.h"

namespace fornax {
namespace {

Scalar one(Op op, DType dtype, std::initializer_list<Scalar> operands) {
  return evaluate(op, dtype, std::span(operands.begin(), operands.size()));
}
double real(Op op, DType dtype, std::initializer_list<Scalar> operands) {
  return one(op, dtype, operands).as_double();
}
int64_t whole(Op op, DType dtype, std::initializer_list<Scalar> operands) {
  return one(op, dtype, operands).as_int64();
}

const std::vector<DType> kNumbers = {DType::i8,  DType::i16,  DType::i32, DType::i64,
                                     DType::f16, DType::bf16, DType::f32, DType::f64};

TEST(Number, division_rounds_as_its_name_says_in_every_dtype) {  // C040
  const int a[] = {7, -7, 7, -7}, b[] = {3, 3, -3, -3};
  const int floored[] = {2, -3, -3, 2}, cut[] = {2, -2, -2, 2};
  const int rest[] = {1, 2, -2, -1}, cut_rest[] = {1, -1, 1, -1};
  for (DType dtype : kNumbers) {
    for (int i = 0; i < 4; i++) {
      EXPECT_EQ(real(Op::floor_divide, dtype, {a[i], b[i]}), floored[i]) << name_of(dtype);
      EXPECT_EQ(real(Op::trunc_divide, dtype, {a[i], b[i]}), cut[i]) << name_of(dtype);
      EXPECT_EQ(real(Op::remainder, dtype, {a[i], b[i]}), rest[i]) << name_of(dtype);
      EXPECT_EQ(real(Op::fmod, dtype, {a[i], b[i]}), cut_rest[i]) << name_of(dtype);
    }
  }
}

TEST(Number, integer_division_is_exact) {  // C041
  EXPECT_EQ(whole(Op::floor_divide, DType::i32, {110, 55}), 2);
  EXPECT_EQ(whole(Op::remainder, DType::i32, {110, 55}), 0);
  for (DType dtype : {DType::i32, DType::i64, DType::f32, DType::f64}) {
    for (int b = 1; b < 200; b++) {
      int quotient = 0, rest = 0;
      for (int a = 0; a < 1000; a++) {  // counted up, without dividing
        ASSERT_EQ(real(Op::floor_divide, dtype, {a, b}), quotient) << a << " " << b;
        ASSERT_EQ(real(Op::trunc_divide, dtype, {a, b}), quotient) << a << " " << b;
        ASSERT_EQ(real(Op::remainder, dtype, {a, b}), rest) << a << " " << b;
        if (++rest == b) rest = 0, quotient++;
      }
    }
  }
  EXPECT_EQ(whole(Op::floor_divide, DType::i32, {2147483647, 2}), 1073741823);
  EXPECT_EQ(whole(Op::floor_divide, DType::i64, {int64_t(9007199254740993), 3}), 3002399751580331);
  EXPECT_EQ(whole(Op::remainder, DType::i64, {int64_t(9007199254740993), 2}), 1);
}

TEST(Number, float_remainders_are_below_the_divisor_with_its_sign) {  // C042
  EXPECT_EQ(real(Op::remainder, DType::f32, {3.5, 3.5}), 0);
  EXPECT_NEAR(real(Op::remainder, DType::f32, {5.3, 2.0}), 1.3, 1e-5);
  EXPECT_NEAR(real(Op::remainder, DType::f32, {-5.3, 2.0}), 0.7, 1e-5);
  EXPECT_NEAR(real(Op::remainder, DType::f32, {5.3, -2.0}), -0.7, 1e-5);
  EXPECT_NEAR(real(Op::remainder, DType::f32, {-5.3, -2.0}), -1.3, 1e-5);
  // The exact results lie between the divisor and the number before it.
  EXPECT_EQ(real(Op::remainder, DType::f32, {-1e-10, 2.0}), double(std::nextafter(2.0f, 0.0f)));
  EXPECT_EQ(real(Op::remainder, DType::f64, {1e-30, -2.0}), std::nextafter(-2.0, 0.0));
  EXPECT_EQ(real(Op::remainder, DType::f16, {-1e-4, 2.0}), 2 - 1.0 / 1024);
  EXPECT_TRUE(std::isnan(real(Op::remainder, DType::f32, {1.0, 0.0})));
  // 0.1 goes 9 times into 1 in binary, since the f64 nearest to 0.1 is above it.
  EXPECT_EQ(real(Op::floor_divide, DType::f64, {1.0, 0.1}), 9);
  EXPECT_EQ(real(Op::trunc_divide, DType::f64, {-1.0, 0.1}), -9);
  EXPECT_EQ(real(Op::floor_divide, DType::f32, {1.0, 0.0}), kInfinity);
}

TEST(Number, integers_wrap_and_never_trap) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  for (Op op : {Op::floor_divide, Op::trunc_divide, Op::remainder, Op::fmod}) {
    for (DType dtype : {DType::i8, DType::i32, DType::i64, DType::u8, DType::u64}) {
      EXPECT_EQ(whole(op, dtype, {5, 0}), 0) << info(op).name;
    }
  }
  EXPECT_EQ(whole(Op::floor_divide, DType::i64, {lowest, -1}), lowest);
  EXPECT_EQ(whole(Op::trunc_divide, DType::i8, {-128, -1}), -128);
  EXPECT_EQ(whole(Op::remainder, DType::i64, {lowest, -1}), 0);
  EXPECT_EQ(whole(Op::abs, DType::i64, {lowest}), lowest);
  EXPECT_EQ(whole(Op::neg, DType::i8, {-128}), -128);
  EXPECT_EQ(whole(Op::neg, DType::u8, {1}), 255);
  EXPECT_EQ(whole(Op::add, DType::i8, {127, 1}), -128);
  EXPECT_EQ(whole(Op::add, DType::i64, {std::numeric_limits<int64_t>::max(), 1}), lowest);
  EXPECT_EQ(whole(Op::mul, DType::u16, {256, 257}), 256);
  EXPECT_EQ(one(Op::sub, DType::u64, {0, 1}).as_uint64(), std::numeric_limits<uint64_t>::max());
}

TEST(Number, powers) {
  EXPECT_EQ(whole(Op::pow, DType::i64, {3, 4}), 81);
  EXPECT_EQ(whole(Op::pow, DType::i64, {-2, 63}), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(whole(Op::pow, DType::i32, {0, 0}), 1);
  EXPECT_EQ(whole(Op::pow, DType::i32, {-1, -3}), -1);
  EXPECT_EQ(whole(Op::pow, DType::i32, {-1, -4}), 1);
  EXPECT_EQ(whole(Op::pow, DType::i32, {1, -4}), 1);
  EXPECT_EQ(whole(Op::pow, DType::i32, {2, -1}), 0);
  EXPECT_EQ(whole(Op::pow, DType::i32, {0, -1}), 0);
  EXPECT_EQ(whole(Op::pow, DType::u8, {2, 9}), 0);
  EXPECT_EQ(real(Op::pow, DType::f32, {0.0, 0.0}), 1);
  EXPECT_EQ(real(Op::pow, DType::f64, {2.0, -2.0}), 0.25);
}

TEST(Number, shifts_outside_the_width_leave_nothing_or_the_sign) {
  EXPECT_EQ(whole(Op::shift_left, DType::i32, {1, 31}), -2147483648LL);
  EXPECT_EQ(whole(Op::shift_left, DType::i32, {1, 32}), 0);
  EXPECT_EQ(whole(Op::shift_left, DType::i64, {1, 64}), 0);
  EXPECT_EQ(whole(Op::shift_left, DType::i64, {1, -1}), 0);
  EXPECT_EQ(whole(Op::shift_left, DType::u8, {3, 7}), 128);
  EXPECT_EQ(whole(Op::shift_right, DType::i8, {-128, 3}), -16);
  EXPECT_EQ(whole(Op::shift_right, DType::i8, {-128, 8}), -1);
  EXPECT_EQ(whole(Op::shift_right, DType::i64, {-5, 1000}), -1);
  EXPECT_EQ(whole(Op::shift_right, DType::i64, {-5, -1}), -1);
  EXPECT_EQ(whole(Op::shift_right, DType::u8, {255, 8}), 0);
}

TEST(Number, bools_are_truth_values) {
  for (bool a : {false, true}) {
    EXPECT_EQ(one(Op::bitwise_not, DType::bool_, {a}), Scalar(!a));
    for (bool b : {false, true}) {
      EXPECT_EQ(one(Op::add, DType::bool_, {a, b}), Scalar(a || b));
      EXPECT_EQ(one(Op::mul, DType::bool_, {a, b}), Scalar(a && b));
      EXPECT_EQ(one(Op::bitwise_xor, DType::bool_, {a, b}), Scalar(a != b));
      EXPECT_EQ(one(Op::maximum, DType::bool_, {a, b}), Scalar(a || b));
      EXPECT_EQ(one(Op::less, DType::bool_, {a, b}), Scalar(!a && b));
    }
  }
  EXPECT_EQ(one(Op::where, DType::i32, {true, 3, 4}), Scalar(3));
  EXPECT_EQ(one(Op::where, DType::f32, {false, 3, 4.5}), Scalar(4.5));
}

TEST(Number, nan_wins_and_zeros_keep_their_sign) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (Op op : {Op::maximum, Op::minimum}) {
      EXPECT_TRUE(std::isnan(real(op, dtype, {kNan, 1.0})));
      EXPECT_TRUE(std::isnan(real(op, dtype, {1.0, kNan})));
    }
    EXPECT_FALSE(std::signbit(real(Op::maximum, dtype, {-0.0, 0.0})));  // C036
    EXPECT_FALSE(std::signbit(real(Op::maximum, dtype, {0.0, -0.0})));
    EXPECT_TRUE(std::signbit(real(Op::minimum, dtype, {0.0, -0.0})));
    EXPECT_TRUE(std::isnan(real(Op::sign, dtype, {kNan})));
    EXPECT_EQ(one(Op::equal, dtype, {kNan, kNan}), Scalar(false));
    EXPECT_EQ(one(Op::not_equal, dtype, {kNan, kNan}), Scalar(true));
    EXPECT_EQ(one(Op::less_equal, dtype, {kNan, 1.0}), Scalar(false));
    EXPECT_EQ(one(Op::is_nan, dtype, {kNan}), Scalar(true));
    EXPECT_EQ(one(Op::is_finite, dtype, {kInfinity}), Scalar(false));
    EXPECT_EQ(one(Op::is_inf, dtype, {-kInfinity}), Scalar(true));
  }
}

TEST(Number, rounding_goes_to_even) {  // C048
  const double from[] = {0.5, 1.5, 2.5, -0.5, -1.5}, to[] = {0, 2, 2, -0.0, -2};
  for (int i = 0; i < 5; i++) EXPECT_EQ(real(Op::round, DType::f32, {from[i]}), to[i]);
  EXPECT_EQ(whole(Op::round, DType::i32, {7}), 7);
  EXPECT_EQ(real(Op::floor, DType::f32, {-1.5}), -2);
  EXPECT_EQ(real(Op::ceil, DType::f32, {-1.5}), -1);
  EXPECT_EQ(real(Op::trunc, DType::f32, {-1.5}), -1);
}

TEST(Number, known_values) {
  EXPECT_NEAR(real(Op::erf, DType::f64, {1.0}), 0.8427007929497149, 1e-15);
  EXPECT_EQ(real(Op::sigmoid, DType::f64, {0.0}), 0.5);
  EXPECT_NEAR(real(Op::sigmoid, DType::f64, {-100.0}), 3.720075976020836e-44, 1e-58);
  EXPECT_EQ(real(Op::sigmoid, DType::f64, {-kInfinity}), 0);
  EXPECT_EQ(real(Op::exp2, DType::f32, {10.0}), 1024);
  EXPECT_EQ(real(Op::rsqrt, DType::f32, {4.0}), 0.5);
  EXPECT_EQ(real(Op::reciprocal, DType::f32, {0.0}), kInfinity);
  EXPECT_EQ(real(Op::exp, DType::f16, {12.0}), kInfinity);
  EXPECT_EQ(real(Op::log10, DType::f64, {1000.0}), 3);
  EXPECT_NEAR(real(Op::atan2, DType::f64, {1.0, -1.0}), 2.356194490192345, 1e-15);
  EXPECT_EQ(real(Op::div, DType::f32, {1.0, 3.0}), double(1.0f / 3.0f));
}

TEST(Number, every_pointwise_op_takes_what_its_type_rule_takes) {
  for (int i = 0; i < op_count(); i++) {
    const Op op = Op(i);
    if (!is_pointwise(op)) continue;
    for (int d = 0; d < kDTypeCount; d++) {
      const Type operand{DType(d), {}}, condition{DType::bool_, {}};
      const Type* types[] = {&operand, &operand, &operand};
      if (info(op).rule == Rule::selected) types[0] = &condition;
      const std::vector<Scalar> ones(size_t(info(op).inputs), Scalar(1));
      bool taken = true;
      try {
        const Type type = infer({op, types, info(op).inputs, {}});
        EXPECT_EQ(int(type.dtype), int(result_dtype(op, DType(d)))) << info(op).name;
      } catch (const Error&) {
        taken = false;
      }
      if (taken) {
        EXPECT_NO_THROW((void)evaluate(op, DType(d), ones)) << info(op).name << name_of(DType(d));
      } else {
        EXPECT_THROW((void)evaluate(op, DType(d), ones), Error) << info(op).name;
      }
    }
  }
}

struct Conversion {
  Scalar from;
  DType to;
  Scalar want;
};

TEST(Number, conversions) {
  const int64_t tie = (int64_t(1) << 62) + (int64_t(1) << 54);  // between two bf16 numbers
  const Conversion table[] = {
      {1.9, DType::i32, 1},
      {-1.9, DType::i32, -1},
      {300.0, DType::u8, 255u},
      {-1.0, DType::u8, 0u},
      {kNan, DType::u8, 0u},
      {kInfinity, DType::u8, 255u},
      {-kInfinity, DType::i8, -128},
      {1e30, DType::i64, std::numeric_limits<int64_t>::max()},
      {-1e30, DType::i64, std::numeric_limits<int64_t>::min()},
      {1e30, DType::u64, std::numeric_limits<uint64_t>::max()},
      {300, DType::u8, 44u},
      {-1, DType::u8, 255u},
      {-1, DType::u64, std::numeric_limits<uint64_t>::max()},
      {200u, DType::i8, -56},
      {int64_t(1) << 32, DType::i32, 0},
      {0.25, DType::bool_, true},
      {-0.0, DType::bool_, false},
      {kNan, DType::bool_, true},
      {256, DType::bool_, true},
      {true, DType::f32, 1.0},
      {true, DType::u8, 1u},
      {16777217, DType::f32, 16777216.0},
      {16777219, DType::f32, 16777220.0},
      {65519.0, DType::f16, 65504.0},
      {65520.0, DType::f16, kInfinity},
      {65520, DType::f16, kInfinity},
      {2049, DType::f16, 2048.0},
      {2051, DType::f16, 2052.0},
      {1e300, DType::f32, kInfinity},
      {-1e300, DType::bf16, -kInfinity},
      {1e300, DType::f8e5m2, kInfinity},
      {448.0, DType::f8e4m3, 448.0},
      {1.0625, DType::f8e4m3, 1.0},
      {1.1875, DType::f8e4m3, 1.25},
      {1.375, DType::f8e5m2, 1.5},
      // Rounded in two steps, by way of f32 or f64, these would go the other way.
      {1 + 1.0 / 2048 + 1e-12, DType::f16, 1 + 1.0 / 1024},
      {1 + 1.0 / 256 + 1e-12, DType::bf16, 1 + 1.0 / 128},
      {1 + 3.0 / 2048 - 1e-12, DType::f16, 1 + 1.0 / 1024},
      {tie, DType::bf16, 4611686018427387904.0},
      {tie + 1, DType::bf16, 4647714815446351872.0},
      {-tie - 1, DType::bf16, -4647714815446351872.0},
      {1e-50, DType::f16, 0.0},
      {5.97e-8, DType::f16, std::ldexp(1.0, -24)},
  };
  for (const Conversion& row : table) {
    const Scalar got = round_to(row.to, row.from);
    EXPECT_EQ(got, row.want) << name_of(row.to) << " of " << row.from.as_double() << ": "
                             << got.as_double();
  }
  EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3, Scalar(1000.0)).as_double()));
  EXPECT_TRUE(std::isnan(round_to(DType::f16, Scalar(kNan)).as_double()));
}

TEST(Number, every_small_float_survives_storage) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const int count = size_of(dtype) == 1 ? 256 : 65536;
    for (int bits = 0; bits < count; bits++) {
      uint16_t from = uint16_t(bits), to = 0;
      const Word word = load(dtype, &from, 0);
      store(dtype, &to, 0, word);
      ASSERT_TRUE(from == to || std::isnan(as<double>(word))) << name_of(dtype) << " " << bits;
    }
  }
}

TEST(Number, stored_bools_are_0_or_1) {
  const uint8_t bytes[] = {0, 1, 2};
  uint8_t out = 7;
  EXPECT_EQ(load(DType::bool_, bytes, 0).bits, 0u);
  EXPECT_EQ(load(DType::bool_, bytes, 2).bits, 1u);
  store(DType::bool_, &out, 0, load(DType::bool_, bytes, 2));
  EXPECT_EQ(out, 1);
}

TEST(Number, philox_gives_the_published_words) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox(0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t(0);
  EXPECT_EQ(philox(ones, ones, ones), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Digits of pi.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace fornax
