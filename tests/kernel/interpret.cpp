// The interpreter of simt kernels: threads, control flow, memory, warps.
#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

TEST(interpret, a_thread_per_element) {
  Builder k("double", {.threads = 64});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value n = k.number("n", DType::i32);
  const Value i = k.block() * 64 + k.thread();
  k.when(i < n, [&] { k.store(y, i, k.load(x, i) * 2); });
  const Kernel kernel = k.finish();
  std::vector<float> in(150), out(150, -1);
  for (size_t j = 0; j < in.size(); j++) in[j] = float(j);
  Arguments({3, 1, 1}).add(in).add(out).add(149).run(kernel);
  for (size_t j = 0; j < 149; j++) EXPECT_EQ(out[j], 2 * in[j]);
  EXPECT_EQ(out[149], -1);
}

TEST(interpret, loops_diverge) {
  // The sum of the numbers below each thread's own.
  Builder k("sums", {.threads = 50});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable sum(k.constant(DType::i32, 0));
  k.loop(0, t, 1, [&](Value i) { sum = sum + i; });
  k.store(y, t, sum);
  const Kernel kernel = k.finish();
  std::vector<int> out(50);
  Arguments().add(out).run(kernel);
  for (int j = 0; j < 50; j++) EXPECT_EQ(out[size_t(j)], j * (j - 1) / 2);
}

TEST(interpret, shared_memory_and_barriers) {
  // Reverses a block.
  Builder k("reverse", {.threads = 128});
  const Value x = k.output("x", DType::i32), t = k.thread();
  const Value s = k.shared(DType::i32, 128);
  k.store(s, t, k.load(x, t));
  k.barrier();
  k.store(x, t, k.load(s, 127 - t));
  const Kernel kernel = k.finish();
  std::vector<int> data(128);
  for (int j = 0; j < 128; j++) data[size_t(j)] = j;
  Arguments().add(data).run(kernel);
  for (int j = 0; j < 128; j++) EXPECT_EQ(data[size_t(j)], 127 - j);
}

TEST(interpret, a_missing_barrier_is_a_race) {
  Builder k("reverse", {.threads = 128});
  const Value x = k.output("x", DType::i32), t = k.thread();
  const Value s = k.shared(DType::i32, 128);
  k.store(s, t, k.load(x, t));
  k.store(x, t, k.load(s, 127 - t));
  const Kernel kernel = k.finish();
  std::vector<int> data(128);
  const std::string message =
      error_of(ErrorKind::internal, [&] { Arguments().add(data).run(kernel); });
  FORNAX_EXPECT_WORDS(message, "reverse: store in interpret.cpp:");
  FORNAX_EXPECT_WORDS(message, "races at element");
}

}  // namespace
}  // namespace fornax::kernel::testing
