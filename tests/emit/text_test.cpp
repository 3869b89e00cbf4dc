// Emitted text as a person reads it: three small kernels, word for word.
#include <gtest/gtest.h>

#include "base/error.h"
#include "corpus.h"
#include "kernel/build.h"
#include "kernel/number.h"

namespace fornax::test {
namespace {

using namespace kernel;  // NOLINT: the tests speak the kernel language

runtime::Capabilities cuda_device() {
  runtime::Capabilities capabilities;
  capabilities.language = runtime::Language::cuda;
  return capabilities;
}

// What follows the types that every program begins with.
std::string body_of(const Kernel& kernel, EmitSettings settings = {}) {
  const std::string text = emit(kernel, cuda_device(), settings).text;
  const std::string_view last = "typedef u8 f8e5m2;\n";
  return text.substr(text.find(last) + last.size());
}

Kernel doubled() {
  Builder k("double", {.threads = 128});
  const Value x = k.buffer("x", DType::f16, {.divisor = 16}), n = k.number("n", DType::i32);
  const Value y = k.output("y", DType::f16, {.divisor = 16});
  const Value i = (k.block() * 128 + k.thread()) * 2;
  k.when(i < n, [&] {
    const Value two = k.load_vector(x, i, 2, {"rows.cpp", 31});
    const Value pair[] = {k.extract(two, 0) * 2.0f, k.extract(two, 1) + 0.1f};
    k.store(y, i, k.pack(pair), {}, {"rows.cpp", 32});
  });
  return k.finish();
}

TEST(Text, VectorsOfSmallFloats) { EXPECT_EQ(body_of(doubled()), R"(GOLDEN)"); }

TEST(Text, LoopsWithCarriedValuesAndSharedMemory) {
  Builder k("sum of rows", {.threads = 64});
  const Value x = k.buffer("x", DType::f32), columns = k.number("columns", DType::i32);
  const Value y = k.output("y", DType::f32), row = k.block(), t = k.thread();
  const Value parts = k.shared(DType::f32, 2);
  Variable sum(k.constant(DType::f32, 0)), late(k.constant(DType::f32, 1));
  k.loop(t, columns, 64, [&](Value i) {
    const Value before = sum;
    sum = late.get() + k.load(x, row * columns + i, {"rows.cpp", 7});
    late = before * 0.5f;
  });
  for (int lanes = 16; lanes > 8; lanes /= 2) sum = sum + k.shuffle_xor(sum, lanes);
  k.when((t & 31) == 0, [&] { k.store(parts, t >> 5, sum); });
  k.barrier();
  k.when(t == 0, [&] { k.store(y, row, k.load(parts, 0) + k.load(parts, 1)); });
  EXPECT_EQ(body_of(k.finish()), R"(GOLDEN)");
}

TEST(Text, CheckedAccessesAndAssertions) {
  Builder k("take", {.threads = 32});
  const Value x = k.buffer("x", DType::f32), indices = k.buffer("indices", DType::i64);
  const Value y = k.output("y", DType::f32), n = k.number("n", DType::i64), t = k.thread();
  const Value index = k.load(indices, t, {"take.cpp", 4});
  k.require((index < n) & (index >= 0), "take: index {} is too large", index, {"take.cpp", 5});
  k.store(y, t, k.load(x, index * 3, {"take.cpp", 6}), {}, {"take.cpp", 6});
  EXPECT_EQ(body_of(k.finish(), {.checked = true}), R"(GOLDEN)");
}

TEST(Text, WholeNumbersWrapUnlessTheyOnlySayWhere) {
  Builder k("wrap", {.threads = 32});
  const Value x = k.buffer("x", DType::i32), y = k.output("y", DType::i32), t = k.thread();
  const Value at = t * 3 + 1;
  k.store(y, at, k.load(x, at) * 3);
  const std::string text = body_of(k.finish());
  EXPECT_NE(text.find(" * 3 + 1"), std::string::npos) << text;
  EXPECT_NE(text.find("* u32(3)"), std::string::npos) << text;
}

TEST(Text, TileKernelsAreRefused) {
  Builder k("tiles", {.dialect = Dialect::tile, .distributions = {{1, 32, 1}}});
  const Value y = k.output("y", DType::f32);
  k.store(y, 0, 1.0f);
  const Kernel kernel = k.finish();
  EXPECT_THROW(emit(kernel, cuda_device()), Error);
}

TEST(Text, ALaunchPassesWhatTheProgramTakes) {
  Builder k("arguments", {.threads = 32});
  const Value x = k.buffer("x", DType::f32), h = k.number("h", DType::f16);
  const Value n = k.number("n", DType::i64), y = k.output("y", DType::f32);
  k.store(y, n, k.load(x, n) + k.cast(h, DType::f32));
  const Kernel kernel = k.finish();
  using runtime::ParameterKind;
  std::vector<ParameterKind> kinds = {ParameterKind::word64, ParameterKind::word32,
                                      ParameterKind::word64, ParameterKind::word64};
  EXPECT_EQ(emit(kernel, cuda_device()).parameters, kinds);
  kinds.insert(kinds.end(), 3, ParameterKind::word64);
  EXPECT_EQ(emit(kernel, cuda_device(), {.checked = true}).parameters, kinds);
}

}  // namespace
}  // namespace fornax::test
