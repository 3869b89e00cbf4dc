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
  const Value first = k.block() * 128;
  const Value i = (first + k.thread()) * 2;
  k.when(i < n, [&] {
    const Value two = k.load_vector(x, i, 2, Site("rows.cpp", 31));
    const Value pair[] = {k.extract(two, 0) * 2.0f, k.extract(two, 1) + 0.1f};
    k.store(y, i, k.pack(pair), {}, Site("rows.cpp", 32));
  });
  return k.finish();
}

TEST(Text, VectorsOfSmallFloats) {
  EXPECT_EQ(body_of(doubled()), R"cuda(struct __align__(4) f16x2 { f16 lane[2]; };
__device__ f32 f16_to_f32(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ f16 f32_to_f16(f32 x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

// double
extern "C" __global__ void __launch_bounds__(128) fornax_double(
    const f16* __restrict__ x_,
    const i32 n_,
    f16* __restrict__ y_) {
  const i32 v9 = ((i32(blockIdx.x) * 128) + i32(threadIdx.x)) * 2;
  if (v9 < n_) {
    const f16x2 v13 = *(const f16x2*)(x_ + v9);  // rows.cpp:31
    const f16x2 v22 = {{f32_to_f16(f16_to_f32(v13.lane[0]) * 2.0f), )cuda"
                                R"cuda(f32_to_f16(f16_to_f32(v13.lane[1]) + 0x1.998p-4f)}};
    *(f16x2*)(y_ + v9) = v22;  // rows.cpp:32
  }
}
)cuda");
}

TEST(Text, LoopsWithCarriedValuesAndSharedMemory) {
  Builder k("sum of rows", {.threads = 64});
  const Value x = k.buffer("x", DType::f32), columns = k.number("columns", DType::i32);
  const Value y = k.output("y", DType::f32), row = k.block(), t = k.thread();
  const Value parts = k.shared(DType::f32, 2);
  Variable sum(k.constant(DType::f32, 0)), late(k.constant(DType::f32, 1));
  k.loop(t, columns, 64, [&](Value i) {
    const Value before = sum;
    sum = late.get() + k.load(x, row * columns + i, Site("rows.cpp", 7));
    late = before * 0.5f;
  });
  for (int lanes = 16; lanes > 8; lanes /= 2) sum = sum + k.shuffle_xor(sum, lanes);
  k.when((t & 31) == 0, [&] { k.store(parts, t >> 5, sum, {}, Site("rows.cpp", 10)); });
  k.barrier();
  k.when(t == 0, [&] {
    const Value first = k.load(parts, 0, Site("rows.cpp", 12));
    k.store(y, row, first + k.load(parts, 1, Site("rows.cpp", 12)), {}, Site("rows.cpp", 12));
  });
  EXPECT_EQ(body_of(k.finish()), R"cuda(
// sum of rows
extern "C" __global__ void __launch_bounds__(64) fornax_sum_of_rows(
    const f32* __restrict__ x_,
    const i32 columns_,
    f32* __restrict__ y_) {
  extern __shared__ __align__(1024) u8 shared_memory[];
  const i32 v3 = i32(blockIdx.x);
  const i32 v4 = i32(threadIdx.x);
  f32* const v5 = (f32*)(shared_memory + 0);
  const i32 v9 = columns_ * v3;
  f32 v12 = 0.0f;
  f32 v13 = 1.0f;
  for (i32 v11 = v4; v11 < columns_; v11 += 64) {
    const f32 v15 = x_[v11 + v9];  // rows.cpp:7
    const f32 next13 = v12 * 0.5f;
    v12 = v13 + v15;
    v13 = next13;
  }
  const f32 v20 = __shfl_xor_sync(~0u, v12, 16);
  const f32 v21 = v12 + v20;
  if ((v4 & 31) == 0) {
    v5[v4 >> 5] = v21;  // rows.cpp:10
  }
  __syncthreads();
  if (v4 == 0) {
    const f32 v30 = v5[0];  // rows.cpp:12
    const f32 v31 = v5[1];
    y_[v3] = v30 + v31;
  }
}
)cuda");
}

TEST(Text, CheckedAccessesAndAssertions) {
  Builder k("take", {.threads = 32});
  const Value x = k.buffer("x", DType::f32), indices = k.buffer("indices", DType::i64);
  const Value y = k.output("y", DType::f32), n = k.number("n", DType::i64), t = k.thread();
  const Value index = k.load(indices, t, Site("take.cpp", 4));
  const Value below = index < n;
  k.require(below & (index >= 0), "take: index {} is too large", index, Site("take.cpp", 5));
  k.store(y, t, k.load(x, index * 3, Site("take.cpp", 6)), {}, Site("take.cpp", 6));
  EXPECT_EQ(body_of(k.finish(), {.checked = true}),
            R"cuda(__device__ void note(i64* status, i64 instruction, i64 number, i64 count) {
  if (atomicCAS((u64*)status, u64(0), u64(1)) != 0) return;
  status[1] = instruction;
  status[2] = number;
  status[3] = count;
}
__device__ bool inside(i64 index, i64 lanes, i64 count, i64* status, i64 instruction) {
  if (index >= 0 && index <= count - lanes) return true;
  note(status, instruction, index, count);
  return false;
}

// take
extern "C" __global__ void __launch_bounds__(32) fornax_take(
    const f32* __restrict__ x_,
    const i64* __restrict__ indices_,
    f32* __restrict__ y_,
    const i64 n_,
    const i64 x_count,
    const i64 indices_count,
    const i64 y_count,
    i64* status) {
  const i32 v4 = i32(threadIdx.x);
  const i64 v5 = inside(v4, 1, indices_count, status, 1) ? indices_[v4] : i64(0);  // take.cpp:4
  if (!((v5 < n_) & (0ll <= v5))) note(status, 6, v5, 0);  // take.cpp:5
  const i64 v11 = i64(u64(v5) * u64(3ll));  // take.cpp:6
  const f32 v12 = inside(v11, 1, x_count, status, 9) ? x_[v11] : f32(0);
  if (inside(v4, 1, y_count, status, 10)) y_[v4] = v12;
}
)cuda");
}

TEST(Text, WholeNumbersWrapUnlessTheyOnlySayWhere) {
  Builder k("wrap", {.threads = 32});
  const Value x = k.buffer("x", DType::i32), y = k.output("y", DType::i32), t = k.thread();
  const Value at = t * 3 + 1;
  k.store(y, at, k.load(x, at) * 3);
  const std::string text = body_of(k.finish());
  EXPECT_NE(text.find(" * 3) + 1"), std::string::npos) << text;
  EXPECT_NE(text.find("* u32(3)"), std::string::npos) << text;
}

TEST(Text, BlocksThatAreToBeResidentBoundRegisters) {
  Builder k("bounded", {.threads = 64, .resident = 3});
  k.store(k.output("y", DType::f32), k.thread(), 1);
  EXPECT_NE(body_of(k.finish()).find("__launch_bounds__(64, 3)"), std::string::npos);
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
                                      ParameterKind::word64, ParameterKind::output};
  EXPECT_EQ(emit(kernel, cuda_device()).parameters, kinds);
  kinds.insert(kinds.end(), 3, ParameterKind::word64);
  EXPECT_EQ(emit(kernel, cuda_device(), {.checked = true}).parameters, kinds);
}

}  // namespace
}  // namespace fornax::test
