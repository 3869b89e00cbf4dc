// The plan cache: what is a new plan, and how many are kept.
#include <cmath>

#include "base/settings.h"
#include "tests/stream/stream_test.h"

namespace fornax {
namespace {

TEST(PlanCache, the_same_structure_is_the_same_plan) {
  const auto work = [](const Tensor& x) { return ((x * 2).sin() + x).to_vector<float>(); };
  (void)work(numbers({3, 5}));
  const size_t before = plans();
  for (int i = 0; i < 20; i++) (void)work(numbers({3, 5}, i));
  EXPECT_EQ(plans(), before);
}

TEST(PlanCache, numbers_do_not_count) {
  const Tensor x = numbers({3, 5});
  (void)(x * 2).cos().to_vector<float>();
  const size_t before = plans();
  for (int i = 0; i < 20; i++) {
    EXPECT_FLOAT_EQ((x * (3 + i)).cos().to_vector<float>()[0], std::cos(float(3 + i)));
  }
  EXPECT_EQ(plans(), before);
}

TEST(PlanCache, shapes_dtypes_strides_and_readers_count) {
  const auto changes = [](auto work) {
    const size_t before = plans();
    work();
    return plans() - before;
  };
  const Tensor x = numbers({6, 11});
  // Statements of their own: a temporary that lives while its result is read could be read too.
  const auto work = [](const Tensor& operand) {
    const Tensor y = operand.tan() * 3;
    recorder().flush();
  };
  work(x);
  EXPECT_EQ(changes([&] { work(x); }), 0u);
  EXPECT_EQ(changes([&] { work(numbers({11, 6})); }), 1u);
  const Tensor doubles = x.cast(DType::f64);
  recorder().flush();
  EXPECT_EQ(changes([&] { work(doubles); }), 1u);
  const Tensor transposed = numbers({11, 6}).transpose();
  EXPECT_EQ(changes([&] { work(transposed); }), 1u);
  EXPECT_EQ(changes([&] {
              const Tensor kept = x.tan(), y = kept * 3;
              recorder().flush();
            }),
            1u);
}

TEST(PlanCache, keeps_no_more_than_it_may) {
  const auto most = size_t(settings().plans);
  for (size_t i = 0; i < most + 50; i++) {
    const Tensor y = zeros({int64_t(i) + 1}, {.device = recorder()}).copy();
    recorder().flush();
  }
  EXPECT_EQ(plans(), most);
  const Tensor x = numbers({17});
  EXPECT_EQ((x + 1).to_vector<float>()[16], 18);
}

// What fills a segment: ops or bytes.
TEST(Pending, too_many_ops_are_run) {
  Tensor x = numbers({2}, 0);
  recorder().flush();
  std::vector<Tensor> kept;
  const size_t before = recorder().memory().in_use;
  for (int64_t i = 0; i < settings().pending_ops + 10; i++) {
    x = x + 1;
    if (i % 100 == 0) kept.push_back(x);
  }
  EXPECT_GT(recorder().memory().in_use, before);  // nobody has asked for a value
  EXPECT_EQ(x.to_vector<float>()[0], float(settings().pending_ops + 10));
  EXPECT_EQ(kept[1].to_vector<float>()[0], 101);
}

TEST(Pending, too_many_bytes_are_run) {
  const int64_t side = 65536;  // a square of f32 is 16 GiB
  const Tensor x = numbers({side, 1});
  const Tensor small = x.sin();
  const size_t before = recorder().memory().in_use;
  const int64_t enough = settings().pending_bytes / (side * side * 4) + 1;
  for (int64_t i = 0; i < enough; i++) {
    // Dropped at once and thus never computed, but what is pending counts until then.
    const Tensor large = x.expand({side, side}) + i;
  }
  EXPECT_EQ(recorder().memory().in_use, before + size_t(side) * 4);
  EXPECT_FLOAT_EQ(small.to_vector<float>()[0], std::sin(1.0f));
}

}  // namespace
}  // namespace fornax
