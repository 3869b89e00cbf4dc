// How far the functions of flex are from the true values, which MPFR computes: for every
// instruction set that this machine has, over all exponents, special values and places that are
// hard.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "backends/flex/stages.h"
#include "graph/evaluate.h"

namespace fornax::flex {
namespace {

constexpr double kAllowed = 2;  // units in the last place
constexpr double kPi = 3.14159265358979323846;

template <class T>
using Limits = std::numeric_limits<T>;
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
constexpr DType kDType = sizeof(T) == 4 ? DType::f32 : DType::f64;

// 1 / (1 + e^-x); what is too small for e^-x to be a number is below all floats as well.
int exact_sigmoid(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t rounding) {
  mpfr_neg(y, x, rounding);
  mpfr_exp(y, y, rounding);
  mpfr_add_ui(y, y, 1, rounding);
  return mpfr_ui_div(y, 1, y, rounding);
}

using Exact1 = int (*)(mpfr_t, mpfr_srcptr, mpfr_rnd_t);
using Exact2 = int (*)(mpfr_t, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
struct Function1 {
  Op op;
  Exact1 exact;
  double low, high;  // where it is sampled most densely
};
constexpr Function1 kFunctions1[] = {
    {Op::exp, mpfr_exp, -20, 20},        {Op::exp2, mpfr_exp2, -20, 20},
    {Op::expm1, mpfr_expm1, -3, 3},      {Op::log, mpfr_log, 0.4, 3},
    {Op::log2, mpfr_log2, 0.4, 3},       {Op::log10, mpfr_log10, 0.4, 3},
    {Op::log1p, mpfr_log1p, -1, 3},      {Op::sin, mpfr_sin, -7, 7},
    {Op::cos, mpfr_cos, -7, 7},          {Op::tan, mpfr_tan, -7, 7},
    {Op::asin, mpfr_asin, -1, 1},        {Op::acos, mpfr_acos, -1, 1},
    {Op::atan, mpfr_atan, -4, 4},        {Op::sinh, mpfr_sinh, -4, 4},
    {Op::cosh, mpfr_cosh, -4, 4},        {Op::tanh, mpfr_tanh, -4, 4},
    {Op::asinh, mpfr_asinh, -4, 4},      {Op::acosh, mpfr_acosh, 1, 5},
    {Op::atanh, mpfr_atanh, -1, 1},      {Op::erf, mpfr_erf, -6, 6},
    {Op::sigmoid, exact_sigmoid, -9, 9},
};
struct Function2 {
  Op op;
  Exact2 exact;
};
constexpr Function2 kFunctions2[] = {{Op::pow, mpfr_pow}, {Op::atan2, mpfr_atan2}};

// Numbers that end a range or have a meaning of their own, and their neighbours.
template <class T>
std::vector<T> special_numbers() {
  std::vector<T> all;
  const T infinity = Limits<T>::infinity();
  for (double x : {0.0,
                   0.25,
                   0.41421356237309503,
                   0.5,
                   0.65,
                   0.6931471805599453,
                   0.7071067811865476,
                   0.9,
                   0.9486832980505138,
                   1.0,
                   1.4142135623730951,
                   1.5,
                   2.0,
                   2.414213562373095,
                   3.0,
                   10.0,
                   27.0,
                   88.72283905206835,
                   89.41598629223294,
                   103.97208,
                   127.0,
                   128.0,
                   149.0,
                   150.0,
                   709.782712893384,
                   710.4758600739439,
                   745.1332191019411,
                   1024.0,
                   1074.0,
                   1075.0}) {
    for (T y : {T(x), std::nextafter(T(x), T(0)), std::nextafter(T(x), infinity)}) {
      all.push_back(y), all.push_back(-y);
    }
  }
  for (T x : {infinity, Limits<T>::max(), Limits<T>::min(), Limits<T>::denorm_min()}) {
    all.push_back(x), all.push_back(-x);
  }
  all.push_back(Limits<T>::quiet_NaN());
  return all;
}

// Every exponent of both signs with some fractions: none, the last bit, all bits, random ones.
template <class T>
std::vector<T> all_exponents(int fractions, std::mt19937_64& random) {
  std::vector<T> all;
  const Bits<T> unit = Bits<T>(1) << (Limits<T>::digits - 1);
  for (Bits<T> exponent = 0; exponent < Bits<T>(Limits<T>::max_exponent) * 2 - 1; exponent++) {
    for (int k = 0; k < fractions; k++) {
      const Bits<T> any = Bits<T>(random()) % unit;
      const T x = std::bit_cast<T>(exponent * unit + (k == 0   ? 0
                                                      : k == 1 ? 1
                                                      : k == 2 ? unit - 1
                                                               : any));
      all.push_back(x), all.push_back(-x);
    }
  }
  return all;
}

template <class T>
std::vector<T> arguments_of(const Function1& function) {
  std::mt19937_64 random(uint64_t(function.op) + 1);
  std::vector<T> all = special_numbers<T>();
  for (T x : all_exponents<T>(sizeof(T) == 4 ? 24 : 5, random)) all.push_back(x);
  const auto uniform = [&](double low, double high) {
    return T(std::uniform_real_distribution<double>(low, high)(random));
  };
  for (int i = 0; i < 12000; i++) all.push_back(uniform(function.low, function.high));
  for (int i = 0; i < 2000; i++) all.push_back(uniform(-800, 800));
  // Close to 1, where logarithms vanish and inverse functions begin.
  for (int i = 0; i < 2000; i++) all.push_back(T(1) + uniform(-1, 1) * std::ldexp(T(1), -(i % 54)));
  if (function.op != Op::sin && function.op != Op::cos && function.op != Op::tan) return all;
  // The numbers nearest to multiples of pi / 2; the last is the nearest of all doubles.
  for (int i = 0; i < 6000; i++) {
    const double n = i < 2000 ? double(i) : std::floor(std::exp2(double(uniform(0, 40))));
    const T x = T(n * (kPi / 2));
    for (T y : {x, std::nextafter(x, T(0)), std::nextafter(x, x + 1)}) all.push_back(y);
  }
  for (double x : {39000.0, 1e5, 1e9, 1e15, 1e22, 6381956970095103.0 * 0x1p+797})
    all.push_back(T(x));
  return all;
}

template <class T>
std::vector<std::pair<T, T>> arguments_of(const Function2& function) {
  std::mt19937_64 random(uint64_t(function.op) + 1);
  const auto uniform = [&](double low, double high) {
    return T(std::uniform_real_distribution<double>(low, high)(random));
  };
  std::vector<std::pair<T, T>> all;
  const std::vector<T> special = special_numbers<T>();
  for (T a : special) {
    for (T b : special) all.emplace_back(a, b);
  }
  const std::vector<T> any = all_exponents<T>(sizeof(T) == 4 ? 16 : 4, random);
  for (T a : any) {
    all.emplace_back(a, any[random() % any.size()]);
    all.emplace_back(a, uniform(-9, 9));
    all.emplace_back(a, T(std::ldexp(a, -int(random() % 8))) * uniform(0.5, 1));
    // Results of every size that is a number.
    const double scale = Limits<T>::max_exponent / std::log2(std::fabs(double(a)));
    if (std::isfinite(scale)) all.emplace_back(a, T(scale * uniform(-1.1, 1.02)));
  }
  for (int i = 0; i < 20000; i++) {
    all.emplace_back(uniform(0, 4), uniform(-30, 30));
    all.emplace_back(uniform(-20, 20), T(double(random() % 60) - 30));
    const T close = T(1) + uniform(-1, 1) * std::ldexp(T(1), -(i % 54));
    all.emplace_back(close, T(uniform(-1, 1) * std::ldexp(T(1), i % 54)));
  }
  return all;
}

// The true value, to eleven bits more than a double has.
struct Exact {
  long double value;
  bool negative;  // of zeros, too
};
class Oracle {
 public:
  Oracle() { mpfr_inits2(64, y_, a_, b_, nullptr); }
  ~Oracle() { mpfr_clears(y_, a_, b_, nullptr); }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  Exact operator()(Exact1 function, double a) {
    mpfr_set_d(a_, a, MPFR_RNDN);
    function(y_, a_, MPFR_RNDN);
    return result();
  }
  Exact operator()(Exact2 function, double a, double b) {
    mpfr_set_d(a_, a, MPFR_RNDN);
    mpfr_set_d(b_, b, MPFR_RNDN);
    function(y_, a_, b_, MPFR_RNDN);
    return result();
  }

 private:
  Exact result() { return {mpfr_get_ld(y_, MPFR_RNDN), mpfr_signbit(y_) != 0}; }
  mpfr_t y_, a_, b_;
};

// The distance in units of T's last place at the true value.
template <class T>
double distance(T got, const Exact& exact) {
  const double wrong = Limits<double>::infinity();
  if (std::isnan(got) || std::isnan(exact.value)) {
    return std::isnan(got) && std::isnan(exact.value) ? 0 : wrong;
  }
  if (std::signbit(got) != exact.negative) return wrong;
  const long double above = std::ldexp(1.0L, Limits<T>::max_exponent);  // in place of infinity
  const auto finite = [&](long double x) {
    return std::fabs(x) < above ? x : std::copysign(above, x);
  };
  const long double y = finite(exact.value);
  const int exponent = y == 0 ? Limits<T>::min_exponent : std::ilogb(y) + 1;
  const int last = std::max(exponent, Limits<T>::min_exponent) - Limits<T>::digits;
  return double(std::fabs(finite(got) - y) / std::ldexp(1.0L, last));
}

// Runs `test` for every instruction set that flex is compiled for and this machine has.
template <class Test>
void for_each_instruction_set(Test test) {
  std::set<std::string_view> seen;
  const int64_t sets = hwy::SupportedTargets();
  for (int bit = 0; bit < 63; bit++) {
    if (!(sets >> bit & 1)) continue;
    hwy::GetChosenTarget().Update(int64_t(1) << bit);
    if (seen.insert(instruction_set()).second) test();
  }
  hwy::GetChosenTarget().DeInit();
}

template <class T>
std::vector<T> computed(Op op, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> results(a.size());
  const void* operands[] = {a.data(), b.data()};
  const bool single[] = {false, false};
  op_stages(kDType<T>, op).small(int64_t(a.size()), results.data(), operands, single);
  return results;
}

// Prints the largest distance per instruction set, and fails over what is allowed.
template <class T>
void check(Op op, const std::vector<T>& a, const std::vector<T>& b,
           const std::vector<Exact>& exact) {
  std::string line = fmt::format("{:7} {}", info(op).name, name_of(kDType<T>));
  for_each_instruction_set([&] {
    const std::vector<T> got = computed(op, a, b);
    double largest = 0;
    size_t at = 0;
    for (size_t i = 0; i < a.size(); i++) {
      const double d = distance(got[i], exact[i]);
      if (d > largest) largest = d, at = i;
    }
    line += fmt::format("  {} {:.3f}", instruction_set(), largest);
    EXPECT_LE(largest, kAllowed) << info(op).name << " of " << name_of(kDType<T>) << " "
                                 << fmt::format("{} ({:a}), {}", a[at], a[at], b[at]) << " is "
                                 << fmt::format("{:.17g}, not {:.17g}", double(got[at]),
                                                double(exact[at].value));
  });
  std::puts(line.c_str());
}

template <class T>
void check_functions() {
  Oracle oracle;
  for (const Function1& function : kFunctions1) {
    const std::vector<T> a = arguments_of<T>(function);
    std::vector<Exact> exact;
    for (T x : a) exact.push_back(oracle(function.exact, double(x)));
    check<T>(function.op, a, a, exact);
  }
  for (const Function2& function : kFunctions2) {
    std::vector<T> a, b;
    std::vector<Exact> exact;
    for (const auto& [x, y] : arguments_of<T>(function)) {
      a.push_back(x), b.push_back(y);
      exact.push_back(oracle(function.exact, double(x), double(y)));
    }
    check<T>(function.op, a, b, exact);
  }
}

TEST(FlexAccuracy, FunctionsOfF32AreWithinTwoUnits) { check_functions<float>(); }
TEST(FlexAccuracy, FunctionsOfF64AreWithinTwoUnits) { check_functions<double>(); }

// The largest distance of `op` of f32 from the same of f64, which is as good as the truth beside
// it, over every step-th float of all bits.
std::pair<double, float> compare_with_doubles(Op op, uint64_t step) {
  constexpr size_t kChunk = 1 << 14;
  std::vector<float> x(kChunk);
  std::vector<double> wide(kChunk);
  std::pair<double, float> worst;
  for (uint64_t bits = 0; bits >> 32 == 0;) {
    for (size_t i = 0; i < kChunk; i++, bits += step) {
      x[i] = std::bit_cast<float>(uint32_t(bits));
      wide[i] = double(x[i]);
    }
    const std::vector<float> got = computed(op, x, x);
    const std::vector<double> want = computed(op, wide, wide);
    for (size_t i = 0; i < kChunk; i++) {
      // Most are seen at once to be nearer than the worst.
      const double limit = worst.first * 0x1p-24 * std::fabs(want[i]);
      if (std::fabs(double(got[i]) - want[i]) < limit) continue;
      const double d = distance(got[i], {want[i], std::signbit(want[i])});
      if (d > worst.first) worst = {d, x[i]};
    }
  }
  return worst;
}

// Where FORNAX_LARGE_TESTS is set, all floats, for some minutes.
TEST(FlexAccuracy, FunctionsOfF32AgreeWithThoseOfF64) {
  const uint64_t step = std::getenv("FORNAX_LARGE_TESTS") ? 1 : 8209;
  for (const Function1& function : kFunctions1) {
    const auto [largest, at] = compare_with_doubles(function.op, step);
    std::puts(fmt::format("{:7} f32  {:.3f} at {:a}", info(function.op).name, largest, at).c_str());
    EXPECT_LE(largest, kAllowed) << info(function.op).name << fmt::format(" of {:a}", at);
  }
}

// Remainders are exact and choices are, so these ops have one right answer: graph/evaluate.h's.
template <class T>
void check_exact(Op op) {
  std::mt19937_64 random(uint64_t(op) + 1);
  std::vector<T> a, b, want;
  const auto add = [&](T x, T y) { a.push_back(x), b.push_back(y); };
  const std::vector<T> special = special_numbers<T>(), any = all_exponents<T>(8, random);
  for (T x : special) {
    for (T y : special) add(x, y);
  }
  for (T x : any) {
    add(x, any[random() % any.size()]);
    // Quotients of few and of many digits, and multiples.
    const T y = std::ldexp(x, -int(random() % 70)) * T(0.5 + 1e-3 * double(random() % 500));
    add(x, y), add(x, -y), add(y * T(random() % 1000), y);
  }
  for (size_t i = 0; i < a.size(); i++) {
    const Word x = word_of(double(a[i])), y = word_of(double(b[i]));
    const Word* const operands[] = {&x, &y};
    Word result;
    evaluate(op, kDType<T>, operands, {&result, 1});
    want.push_back(T(as<double>(result)));
  }
  for_each_instruction_set([&] {
    const std::vector<T> got = computed(op, a, b);
    for (size_t i = 0; i < a.size(); i++) {
      const bool same = std::isnan(want[i])
                            ? std::isnan(got[i])
                            : std::bit_cast<Bits<T>>(want[i]) == std::bit_cast<Bits<T>>(got[i]);
      ASSERT_TRUE(same) << fmt::format("{} of {} on {}: {:a} and {:a} give {:a}, not {:a}",
                                       info(op).name, name_of(kDType<T>), instruction_set(), a[i],
                                       b[i], got[i], want[i]);
    }
  });
}

TEST(FlexAccuracy, TheLargerAndTheSmallerAreExact) {
  for (Op op : {Op::maximum, Op::minimum}) {
    check_exact<float>(op);
    check_exact<double>(op);
  }
}

TEST(FlexAccuracy, DivisionWithRemainderIsExact) {
  for (Op op : {Op::fmod, Op::remainder, Op::trunc_divide, Op::floor_divide}) {
    check_exact<float>(op);
    check_exact<double>(op);
  }
}

}  // namespace
}  // namespace fornax::flex
