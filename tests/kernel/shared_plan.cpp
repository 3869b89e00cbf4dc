// Where shared memory lies: what may have the same bytes, and what may not.
#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

std::vector<int64_t> offsets(const Kernel& kernel, int64_t* bytes = nullptr) {
  const SharedPlan plan = plan_shared(kernel);
  if (bytes) *bytes = plan.bytes;
  std::vector<int64_t> offsets;
  for (const int64_t offset : plan.offsets) {
    if (offset >= 0) offsets.push_back(offset);
  }
  return offsets;
}

using Offsets = std::vector<int64_t>;

TEST(shared_plan, a_barrier_between_lets_pieces_share) {
  Builder k("k", {.threads = 64});
  const Value y = k.output("y", DType::i32), t = k.thread();
  const Value a = k.shared(DType::i32, 64), b = k.shared(DType::i32, 64);
  const Value c = k.shared(DType::i32, 128);
  k.store(a, t, t);
  k.barrier();
  k.store(b, 63 - t, k.load(a, 63 - t));
  k.barrier();
  k.store(c, t * 2, k.load(b, t));
  k.barrier();
  k.store(y, t, k.load(c, 126 - t * 2));
  const Kernel kernel = k.finish();
  int64_t bytes = 0;
  // c has room neither before b nor behind it in a's bytes alone.
  EXPECT_EQ(offsets(kernel, &bytes), (Offsets{0, 256, 512}));
  EXPECT_EQ(bytes, 1024);
  std::vector<int> out(64);
  Arguments().add(out).run(kernel);
  for (int j = 0; j < 64; j++) EXPECT_EQ(out[size_t(j)], 63 - j);
}

TEST(shared_plan, the_first_and_the_third_share) {
  Builder k("k", {.threads = 64});
  const Value y = k.output("y", DType::i32), t = k.thread();
  const Value a = k.shared(DType::i32, 64), b = k.shared(DType::i32, 64);
  const Value c = k.shared(DType::i32, 64);
  k.store(a, t, t);
  k.barrier();
  k.store(b, t, k.load(a, 63 - t));
  k.barrier();
  k.store(c, t, k.load(b, 63 - t));
  k.barrier();
  k.store(y, t, k.load(c, 63 - t));
  const Kernel kernel = k.finish();
  EXPECT_EQ(offsets(kernel), (Offsets{0, 256, 0}));
  std::vector<int> out(64);
  Arguments().add(out).run(kernel);
  for (int j = 0; j < 64; j++) EXPECT_EQ(out[size_t(j)], 63 - j);
}

TEST(shared_plan, without_a_barrier_nothing_is_shared) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  const Value a = k.shared(DType::u8, 7), b = k.shared(DType::i32, 32, 128);
  k.store(a, 0, 1);
  k.store(y, t, k.load(a, 0));
  k.store(b, t, t);
  k.store(y, t, k.load(b, t));
  EXPECT_EQ(offsets(k.finish()), (Offsets{0, 128}));
}

TEST(shared_plan, a_barrier_in_a_loop_does_not_count) {
  Builder k("k", {.threads = 64});
  const Value y = k.output("y", DType::i32), t = k.thread();
  const Value a = k.shared(DType::i32, 64), b = k.shared(DType::i32, 64);
  k.loop(0, 3, 1, [&](Value i) {
    k.store(a, t, t + i);
    k.barrier();
    k.store(b, t, k.load(a, 63 - t));
    k.barrier();
  });
  k.store(y, t, k.load(b, t));
  EXPECT_EQ(offsets(k.finish()), (Offsets{0, 256}));
}

}  // namespace
}  // namespace fornax::kernel::testing
