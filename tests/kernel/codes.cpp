// Every arithmetic code in the interpreter, against graph/evaluate.h or the standard library.
#include <cmath>
#include <limits>
#include <random>

#include "graph/evaluate.h"
#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

constexpr DType kNumbers[] = {DType::f32, DType::f64, DType::i32,
                              DType::u32, DType::i64, DType::u64};
constexpr int kCount = 160;
using Words = std::vector<Word>;

// Numbers of a dtype: edges first, then random ones, small and large.
Words numbers(DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  Words words;
  constexpr double kEdges[] = {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, INFINITY, -INFINITY, NAN, 1e30};
  for (int i = 0; i < kCount; i++) {
    double x = std::ldexp(double(random() >> 11) - 4503599627370496.0, -52);
    x = i % 3 == 0 ? x * 8 : i % 3 == 1 ? x * 0.99 : x * 3e9;
    const size_t edge = (size_t(i) + seed) % 23;
    if (edge < std::size(kEdges)) x = kEdges[edge];
    Word word = word_of(x);
    convert(DType::f64, dtype, {&word, 1});
    words.push_back(word);
  }
  return words;
}

std::vector<uint64_t> memory_of(DType dtype, const Words& words) {
  std::vector<uint64_t> memory(words.size());
  for (size_t i = 0; i < words.size(); i++) store(dtype, memory.data(), int64_t(i), words[i]);
  return memory;
}

// out[i] = code(operands[0][i], ...), by the interpreter.
Words computed(Code code, DType result, const std::vector<DType>& dtypes,
               const std::vector<Words>& operands) {
  Builder k("k", {.threads = kCount});
  std::vector<Value> buffers;
  for (const DType dtype : dtypes) buffers.push_back(k.buffer("x", dtype));
  const Value out = k.output("y", result), thread = k.thread();
  Instruction made;
  made.code = code;
  for (const Value& buffer : buffers) made.operands.push_back(k.load(buffer, thread).id);
  k.store(out, thread, k.emit(std::move(made), {{result}})[0]);
  const Kernel kernel = k.finish();
  std::vector<std::vector<uint64_t>> memories;
  for (size_t i = 0; i < operands.size(); i++) {
    memories.push_back(memory_of(dtypes[i], operands[i]));
  }
  memories.emplace_back(kCount);
  Arguments arguments;
  for (std::vector<uint64_t>& memory : memories) arguments.add(memory);
  arguments.run(kernel);
  Words results;
  for (int i = 0; i < kCount; i++) results.push_back(load(result, memories.back().data(), i));
  return results;
}

bool same(DType dtype, Word a, Word b) {
  if (a == b) return true;
  return is_floating(dtype) && std::isnan(as<double>(a)) && std::isnan(as<double>(b));
}

void expect_same(Code code, DType dtype, const Words& is, const Words& wanted,
                 const std::vector<Words>& operands) {
  for (size_t i = 0; i < is.size(); i++) {
    ASSERT_TRUE(same(dtype, is[i], wanted[i]))
        << info(code).name << " gives " << scalar_of(dtype, is[i]).as_double() << ", not "
        << scalar_of(dtype, wanted[i]).as_double() << " of "
        << std::bit_cast<double>(operands[0][i].bits) << " or " << operands[0][i].bits;
  }
}

void expect_op(Code code, Op op, DType dtype) {
  const int count = info(code).operands;
  std::vector<Words> operands;
  std::vector<const Word*> pointers;
  for (int i = 0; i < count; i++) operands.push_back(numbers(dtype, uint64_t(7 * i + 1)));
  if (code == Code::shift_left || code == Code::shift_right) {
    for (Word& word : operands[1]) word.bits %= 8 * size_of(dtype);
  }
  for (const Words& words : operands) pointers.push_back(words.data());
  Words wanted(kCount);
  evaluate(op, dtype, pointers, wanted);
  const DType result = result_dtype(op, dtype);
  const Words is = computed(code, result, std::vector<DType>(size_t(count), dtype), operands);
  expect_same(code, result, is, wanted, operands);
}

TEST(codes, floats_are_those_of_the_ops) {
  const std::pair<Code, Op> pairs[] = {
      {Code::div, Op::div},     {Code::sqrt, Op::sqrt},   {Code::rsqrt, Op::rsqrt},
      {Code::exp, Op::exp},     {Code::exp2, Op::exp2},   {Code::expm1, Op::expm1},
      {Code::log, Op::log},     {Code::log2, Op::log2},   {Code::log10, Op::log10},
      {Code::log1p, Op::log1p}, {Code::sin, Op::sin},     {Code::cos, Op::cos},
      {Code::tan, Op::tan},     {Code::asin, Op::asin},   {Code::acos, Op::acos},
      {Code::atan, Op::atan},   {Code::sinh, Op::sinh},   {Code::cosh, Op::cosh},
      {Code::tanh, Op::tanh},   {Code::asinh, Op::asinh}, {Code::acosh, Op::acosh},
      {Code::atanh, Op::atanh}, {Code::erf, Op::erf},     {Code::atan2, Op::atan2},
      {Code::pow, Op::pow},     {Code::fmod, Op::fmod},   {Code::floor, Op::floor},
      {Code::ceil, Op::ceil},   {Code::round, Op::round}, {Code::trunc, Op::trunc},
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [code, op] : pairs) expect_op(code, op, dtype);
  }
}

TEST(codes, numbers_are_those_of_the_ops) {
  const std::pair<Code, Op> pairs[] = {
      {Code::add, Op::add},
      {Code::sub, Op::sub},
      {Code::mul, Op::mul},
      {Code::neg, Op::neg},
      {Code::abs, Op::abs},
      {Code::equal, Op::equal},
      {Code::less, Op::less},
      {Code::not_equal, Op::not_equal},
      {Code::less_equal, Op::less_equal},
  };
  for (const DType dtype : kNumbers) {
    for (const auto& [code, op] : pairs) {
      if (code == Code::neg && !is_signed(dtype)) continue;
      expect_op(code, op, dtype);
    }
  }
}

TEST(codes, whole_numbers_are_those_of_the_ops) {
  const std::pair<Code, Op> pairs[] = {
      {Code::div, Op::trunc_divide},      {Code::rem, Op::fmod},
      {Code::min, Op::minimum},           {Code::max, Op::maximum},
      {Code::bit_and, Op::bitwise_and},   {Code::bit_or, Op::bitwise_or},
      {Code::bit_xor, Op::bitwise_xor},   {Code::bit_not, Op::bitwise_not},
      {Code::shift_left, Op::shift_left}, {Code::shift_right, Op::shift_right},
  };
  for (const DType dtype : {DType::i32, DType::u32, DType::i64, DType::u64}) {
    for (const auto& [code, op] : pairs) expect_op(code, op, dtype);
  }
  for (const Code code : {Code::bit_and, Code::bit_or, Code::bit_xor, Code::bit_not}) {
    expect_op(code, pairs[4 + int(code) - int(Code::bit_and)].second, DType::bool_);
  }
}

template <class T>
void expect_function(Code code, int count, auto&& function) {
  const DType dtype = dtype_of<T>;
  std::vector<Words> operands;
  for (int i = 0; i < count; i++) operands.push_back(numbers(dtype, uint64_t(5 * i + 2)));
  Words wanted;
  for (size_t i = 0; i < kCount; i++) {
    T x[3] = {};
    for (int k = 0; k < count; k++) store(dtype, &x[k], 0, operands[size_t(k)][i]);
    const T y = function(x[0], x[1], x[2]);
    wanted.push_back(load(dtype, &y, 0));
  }
  const Words is = computed(code, dtype, std::vector<DType>(size_t(count), dtype), operands);
  expect_same(code, dtype, is, wanted, operands);
}

template <class T>
void expect_float_functions() {
  expect_function<T>(Code::fma, 3, [](T a, T b, T c) { return std::fma(a, b, c); });
  expect_function<T>(Code::next_after, 2, [](T a, T b, T) { return std::nextafter(a, b); });
  expect_function<T>(Code::copy_sign, 2, [](T a, T b, T) { return std::copysign(a, b); });
  // NaN wins.
  expect_function<T>(Code::minimum, 2, [](T a, T b, T) { return T(numbers::minimum(a, b)); });
  expect_function<T>(Code::maximum, 2, [](T a, T b, T) { return T(numbers::maximum(a, b)); });
  // Of a number and NaN the number; the zeros are ordered.
  expect_function<T>(Code::min, 2, [](T a, T b, T) {
    return a == 0 && b == 0 ? (std::signbit(a) ? a : b) : std::fmin(a, b);
  });
  expect_function<T>(Code::max, 2, [](T a, T b, T) {
    return a == 0 && b == 0 ? (std::signbit(a) ? b : a) : std::fmax(a, b);
  });
}

TEST(codes, functions_of_floats) {
  expect_float_functions<float>();
  expect_float_functions<double>();
}

TEST(codes, upper_halves) {
  expect_function<int32_t>(Code::mul_high, 2, [](int32_t a, int32_t b, int32_t) {
    return int32_t((int64_t(a) * b) >> 32);
  });
  expect_function<uint32_t>(Code::mul_high, 2, [](uint32_t a, uint32_t b, uint32_t) {
    return uint32_t((uint64_t(a) * b) >> 32);
  });
  // By halves of 32 bits.
  const auto upper = [](uint64_t a, uint64_t b) {
    const uint64_t al = uint32_t(a), ah = a >> 32, bl = uint32_t(b), bh = b >> 32;
    const uint64_t middle = ah * bl + ((al * bl) >> 32);
    return ah * bh + (middle >> 32) + ((al * bh + uint32_t(middle)) >> 32);
  };
  expect_function<uint64_t>(Code::mul_high, 2,
                            [&](uint64_t a, uint64_t b, uint64_t) { return upper(a, b); });
  expect_function<int64_t>(Code::mul_high, 2, [&](int64_t a, int64_t b, int64_t) {
    uint64_t high = upper(uint64_t(a), uint64_t(b));
    if (a < 0) high -= uint64_t(b);
    if (b < 0) high -= uint64_t(a);
    return int64_t(high);
  });
}

TEST(codes, casts_between_all_dtypes) {
  for (int from = 0; from < kDTypeCount; from++) {
    const Words words = numbers(DType(from), 3);
    for (int to = 0; to < kDTypeCount; to++) {
      Words wanted = words;
      convert(DType(from), DType(to), wanted);
      const Words is = computed(Code::cast, DType(to), {DType(from)}, {words});
      expect_same(Code::cast, DType(to), is, wanted, {words});
    }
  }
}

TEST(codes, bits_and_select) {
  const Words floats = numbers(DType::f32, 4), others = numbers(DType::f16, 5);
  const Words more = numbers(DType::f16, 6), chosen = numbers(DType::bool_, 7);
  Words wanted;
  for (const Word& word : floats) {
    wanted.push_back({std::bit_cast<uint32_t>(float(as<double>(word)))});
  }
  expect_same(Code::bits, DType::u32, computed(Code::bits, DType::u32, {DType::f32}, {floats}),
              wanted, {floats});
  wanted.clear();
  for (size_t i = 0; i < kCount; i++) wanted.push_back(chosen[i].bits ? others[i] : more[i]);
  expect_same(Code::select, DType::f16,
              computed(Code::select, DType::f16, {DType::bool_, DType::f16, DType::f16},
                       {chosen, others, more}),
              wanted, {chosen});
}

}  // namespace
}  // namespace fornax::kernel::testing
