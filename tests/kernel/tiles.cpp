// Tile kernels in the interpreter, and what lowering makes of them.
#include "kernel/lower.h"
#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

KernelSettings settings() { return {.dialect = Dialect::tile, .distributions = {{4, 32, 2}}}; }

// Runs the kernel as it is and lowered; both should write the same.
template <class T>
std::vector<T> both(const Kernel& kernel, std::vector<T> in, size_t count) {
  std::vector<T> first(count), second(count);
  Arguments().add(in).add(first).run(kernel);
  Arguments().add(in).add(second).run(lower(kernel));
  EXPECT_EQ(first, second);
  return first;
}

std::vector<float> ramp(int count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; i++) values[size_t(i)] = float((i * 37) % 101) - 50;
  return values;
}

TEST(tiles, reduce_along_both_axes) {
  for (const int axis : {0, 1}) {
    Builder k("sums", settings());
    const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
    const Value r = k.iota(0, 8), c = k.iota(1, 128);
    const Value tile = k.load(x, r * 128 + c);
    const std::vector<Value> made =
        k.reduce(axis, {tile, k.spread(axis == 0 ? r : c, 8, 128)}, [&](auto left, auto right) {
          const Value better = right[0] < left[0];
          return std::vector<Value>{select(better, right[0], left[0]),
                                    select(better, right[1], left[1])};
        });
    // The least number and where it first stands.
    const Value at = axis == 0 ? c : r;
    k.store(y, at * 2, made[0]);
    k.store(y, at * 2 + 1, k.cast(made[1], DType::f32));
    const size_t others = axis == 0 ? 128 : 8, along = axis == 0 ? 8 : 128;
    std::vector<float> in = ramp(1024), out(2 * others);
    Arguments().add(in).add(out).run(k.finish());
    for (size_t o = 0; o < others; o++) {
      size_t best = 0;
      const auto element = [&](size_t i) { return axis == 0 ? in[i * 128 + o] : in[o * 128 + i]; };
      for (size_t i = 1; i < along; i++) best = element(i) < element(best) ? i : best;
      EXPECT_EQ(out[2 * o], element(best));
      EXPECT_EQ(out[2 * o + 1], float(best));
    }
  }
}

TEST(tiles, scan_gives_every_prefix) {
  Builder k("prefixes", settings());
  const Value x = k.buffer("x", DType::i32), y = k.output("y", DType::i32);
  const Value at = k.iota(0, 4) * 64 + k.iota(1, 64);
  const auto add = [&](auto left, auto right) { return std::vector<Value>{left[0] + right[0]}; };
  k.store(y, at, k.scan(1, {k.load(x, at)}, add)[0]);
  std::vector<int> in(256), out(256);
  for (int i = 0; i < 256; i++) in[size_t(i)] = i % 11;
  Arguments().add(in).add(out).run(k.finish());
  for (size_t r = 0; r < 4; r++) {
    int sum = 0;
    for (size_t c = 0; c < 64; c++) EXPECT_EQ(out[r * 64 + c], sum += in[r * 64 + c]);
  }
}

TEST(tiles, masks_loops_and_broadcasts) {
  Builder k("masks", settings());
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value r = k.iota(0, 4), c = k.iota(1, 64);
  Variable sum(k.spread(k.constant(DType::f32, 0), 4, 64));
  k.loop(0, 5, 1, [&](Value i) {
    sum = sum.get() + k.load(x, i * 256 + r * 64 + c, (r + c + i) % 3 != 0, -1);
  });
  k.store(y, r * 64 + c, sum, c < 60);
  const std::vector<float> in = ramp(5 * 256), out = both(k.finish(), in, 256);
  for (size_t e = 0; e < 256; e++) {
    float wanted = 0;
    for (size_t i = 0; i < 5; i++) {
      wanted += (e / 64 + e % 64 + i) % 3 ? in[i * 256 + e] : -1;
    }
    EXPECT_EQ(out[e], e % 64 < 60 ? wanted : 0);
  }
}

TEST(tiles, parts_of_columns) {
  Builder k("parts", settings());
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value r = k.iota(0, 4), c = k.iota(1, 64);
  const Value tile = k.load(x, r * 128 + k.iota(1, 128)) * 2;
  k.store(y, r * 64 + c, k.part(tile, 64, 64) - k.part(tile, 0, 64));
  const std::vector<float> in = ramp(512), out = both(k.finish(), in, 256);
  for (size_t e = 0; e < 256; e++) {
    const size_t at = e / 64 * 128 + e % 64;
    EXPECT_EQ(out[e], 2 * (in[at + 64] - in[at]));
  }
}

TEST(tiles, sums_of_rows_lowered) {
  Builder k("rows", settings());
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value r = k.iota(0, 4), c = k.iota(1, 64);
  const auto add = [&](auto left, auto right) { return std::vector<Value>{left[0] + right[0]}; };
  k.store(y, r, k.reduce(1, {k.load(x, r * 64 + c)}, add)[0]);
  const std::vector<float> in = ramp(256), out = both(k.finish(), in, 4);
  for (size_t row = 0; row < 4; row++) {
    float sum = 0;
    for (size_t column = 0; column < 64; column++) sum += in[row * 64 + column];
    EXPECT_EQ(out[row], sum);  // small whole numbers: exact in any order
  }
}

// The sums over 8 numbers of products, in `count` slices: each slice of the rows has operands of
// its own, which begin further on.
void check_product(Distribution sums, int count = 1) {
  KernelSettings both_layouts = settings();
  both_layouts.distributions.insert(both_layouts.distributions.begin(), sums);
  Builder k("product", both_layouts);
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value a = k.shared(DType::f32, 8 * 64), b = k.shared(DType::f32, 8 * 64);
  const Value r = k.iota(0, 8, 1), c = k.iota(1, 64, 1);
  k.store(a, r * 64 + c, k.load(x, r * 64 + c));
  k.store(b, r * 64 + c, k.load(x, r * 64 + c + 512));
  k.barrier();
  // a lies [slice, k, height], b [slice, k, n].
  const size_t height = size_t(64 / count), depth = size_t(8 / count);
  const auto step = int64_t(depth) * 64;
  const Value made = k.mma(k.spread(k.constant(DType::f32, 1), 64, 64), a, 0, b, 0, int(depth),
                           {1, 64}, {64, 1}, {count, step, step});
  k.store(y, k.iota(0, 64) * 64 + k.iota(1, 64), made);
  const std::vector<float> in = ramp(1024), out = both(k.finish(), in, 4096);
  for (size_t i = 0; i < 64; i++) {
    const size_t first = i / height * depth;
    for (size_t j = 0; j < 64; j++) {
      float sum = 1;
      for (size_t n = first; n < first + depth; n++) {
        sum += in[n * 64 + i % height] * in[512 + n * 64 + j];
      }
      ASSERT_EQ(out[i * 64 + j], sum);
    }
  }
}

TEST(tiles, mma_of_shared_matrices) {
  for (const int row_vector : {1, 2, 4}) check_product({4, 32, 2, false, row_vector});
}

TEST(tiles, mma_in_slices) {
  for (const int count : {1, 2, 4, 8}) check_product({8, 16, 4, false, 8}, count);
}

TEST(tiles, slices_that_split_a_thread_are_refused) {
  KernelSettings sums = settings();
  sums.distributions[0] = {8, 16, 4, false, 8};
  Builder k("slices", sums);
  const Value a = k.shared(DType::f32, 8 * 64), b = k.shared(DType::f32, 8 * 64);
  const Value y = k.output("y", DType::f32);
  const Value made = k.mma(k.spread(k.constant(DType::f32, 1), 64, 64), a, 0, b, 0, 1, {1, 64},
                           {64, 1}, {16, 64, 64});
  k.store(y, k.iota(0, 64) * 64 + k.iota(1, 64), made);
  FORNAX_EXPECT_WORDS(error_of(ErrorKind::internal, [&] { verify(k.finish()); }),
                      "16 slices of 64 rows, of which threads hold 8");
}

}  // namespace
}  // namespace fornax::kernel::testing
