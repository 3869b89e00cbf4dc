// docs/semantics.md against the code: the promotion table, conversions, division, NaN and zeros.
#include <fornax/dtype.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "graph/evaluate.h"
#include "tests/errors.h"

namespace fornax {
namespace {

std::string read_page(const std::string& name) {
  std::ifstream file(name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string promotion_table() {
  std::string text = "| |", rule = "|---|";
  for (int i = 0; i < kDTypeCount; i++) {
    text += fmt::format(" {} |", name_of(DType(i)));
    rule += "---|";
  }
  text += '\n' + rule + '\n';
  for (int a = 0; a < kDTypeCount; a++) {
    text += fmt::format("| **{}** |", name_of(DType(a)));
    for (int b = 0; b < kDTypeCount; b++) {
      text += fmt::format(" {} |", name_of(promote(DType(a), DType(b))));
    }
    text += '\n';
  }
  return text;
}

TEST(semantics, the_page_has_the_promotion_table) {
  const std::string table = promotion_table();
  EXPECT_NE(read_page("docs/semantics.md").find(table), std::string::npos) << table;
}

TEST(semantics, generated_pages_are_current) {
  EXPECT_EQ(std::system("python3 tools/docs --check"), 0);
}

double cast(DType from, DType to, Scalar x) { return round_to(to, round_to(from, x)).as_double(); }

TEST(semantics, conversions) {
  EXPECT_EQ(cast(DType::f32, DType::bool_, NAN), 1);
  EXPECT_EQ(cast(DType::f32, DType::bool_, -0.0), 0);
  EXPECT_EQ(cast(DType::i32, DType::u8, 300), 44);
  EXPECT_EQ(cast(DType::i32, DType::u8, -1), 255);
  EXPECT_EQ(cast(DType::u8, DType::i8, 200), -56);
  EXPECT_EQ(cast(DType::f32, DType::u8, 300.0), 255);
  EXPECT_EQ(cast(DType::f32, DType::u8, -1.0), 0);
  EXPECT_EQ(cast(DType::f32, DType::i8, -2.9), -2);
  EXPECT_EQ(cast(DType::f64, DType::i64, 1e30), double(INT64_MAX));
  EXPECT_EQ(cast(DType::f32, DType::i32, NAN), 0);
  EXPECT_EQ(cast(DType::f64, DType::f32, 1e300), INFINITY);
  EXPECT_EQ(cast(DType::f32, DType::f16, 65520.0), INFINITY);
  EXPECT_EQ(cast(DType::f32, DType::f16, 65519.0), 65504);
  EXPECT_TRUE(std::isnan(cast(DType::f32, DType::f8e4m3, INFINITY)));
  // Once: by way of f32 this f64 would become the f16 above.
  EXPECT_EQ(cast(DType::f64, DType::f16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(cast(DType::f64, DType::f16, 1 + 0x1p-11 - 0x1p-40), 1);
  EXPECT_EQ(cast(DType::i64, DType::f32, 16777217), 16777216);
}

double value(Op op, DType dtype, Scalar a, Scalar b) {
  const Scalar operands[] = {a, b};
  return evaluate(op, dtype, std::span(operands).first(size_t(info(op).inputs))).as_double();
}

TEST(semantics, a_dtype_that_is_none_is_an_error) {
  const double memory = 1;
  expect_words(message_of(ErrorKind::internal, [&] { load(DType(99), &memory, 0); }),
               "dtype: number 99 is none");
}

TEST(semantics, division) {
  struct Row {
    DType dtype;
    double a, b, floor_divide, remainder, trunc_divide, fmod;
  };
  const Row rows[] = {
      {DType::i32, 7, 2, 3, 1, 3, 1},           {DType::i32, -7, 2, -4, 1, -3, -1},
      {DType::i32, 7, -2, -4, -1, -3, 1},       {DType::i32, -7, -2, 3, -1, 3, -1},
      {DType::i32, 7, 0, 0, 0, 0, 0},           {DType::i8, -128, -1, -128, 0, -128, 0},
      {DType::u8, 200, 7, 28, 4, 28, 4},        {DType::f32, -7.5, 2, -4, 0.5, -3, -1.5},
      {DType::f64, 7.5, -2, -4, -0.5, -3, 1.5},
  };
  for (const Row& r : rows) {
    const auto number = [&](double x) {
      return is_floating(r.dtype) ? Scalar(x) : Scalar(int64_t(x));
    };
    const Scalar a = number(r.a), b = number(r.b);
    EXPECT_EQ(value(Op::floor_divide, r.dtype, a, b), r.floor_divide) << r.a << ' ' << r.b;
    EXPECT_EQ(value(Op::remainder, r.dtype, a, b), r.remainder) << r.a << ' ' << r.b;
    EXPECT_EQ(value(Op::trunc_divide, r.dtype, a, b), r.trunc_divide) << r.a << ' ' << r.b;
    EXPECT_EQ(value(Op::fmod, r.dtype, a, b), r.fmod) << r.a << ' ' << r.b;
  }
  EXPECT_EQ(value(Op::floor_divide, DType::f32, 1.0, 0.0), INFINITY);
  EXPECT_TRUE(std::isnan(value(Op::remainder, DType::f32, 1.0, 0.0)));
}

TEST(semantics, whole_numbers_wrap) {
  EXPECT_EQ(value(Op::add, DType::u8, 200, 100), 44);
  EXPECT_EQ(value(Op::abs, DType::i8, -128, 0), -128);
  EXPECT_EQ(value(Op::neg, DType::u8, 1, 0), 255);
  EXPECT_EQ(value(Op::pow, DType::i32, 0, 0), 1);
  EXPECT_EQ(value(Op::pow, DType::i32, 2, -1), 0);
  EXPECT_EQ(value(Op::pow, DType::i32, -1, -3), -1);
  EXPECT_EQ(value(Op::shift_left, DType::u8, 1, 8), 0);
  EXPECT_EQ(value(Op::shift_left, DType::i32, 1, -1), 0);
  EXPECT_EQ(value(Op::shift_right, DType::i8, -3, 100), -1);
  EXPECT_EQ(value(Op::add, DType::bool_, true, true), 1);
}

TEST(semantics, nan_and_signed_zeros) {
  EXPECT_TRUE(std::isnan(value(Op::maximum, DType::f32, NAN, 1.0)));
  EXPECT_TRUE(std::isnan(value(Op::minimum, DType::f32, 1.0, NAN)));
  EXPECT_FALSE(std::signbit(value(Op::maximum, DType::f32, -0.0, 0.0)));
  EXPECT_TRUE(std::signbit(value(Op::minimum, DType::f32, 0.0, -0.0)));
  EXPECT_TRUE(std::isnan(value(Op::sign, DType::f32, NAN, 0)));
  EXPECT_EQ(value(Op::less_equal, DType::f32, NAN, NAN), 0);
  EXPECT_EQ(value(Op::not_equal, DType::f32, NAN, NAN), 1);
  EXPECT_EQ(value(Op::equal, DType::f32, 0.0, -0.0), 1);
  EXPECT_EQ(value(Op::round, DType::f32, 2.5, 0), 2);
  EXPECT_EQ(value(Op::add, DType::f16, 2048.0, 1.0), 2048);  // rounded per op
}

}  // namespace
}  // namespace fornax
