// What must not grow: memory of the device and of the process, and plans, over many equal steps.
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/sanitizer.h"
#include "stream/plan.h"
#include "tests/devices.h"

namespace fornax {
namespace {

// Bytes of the process in memory.
size_t resident() {
  long total = 0, pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (std::fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
  std::fclose(file);
  return size_t(pages) * size_t(sysconf(_SC_PAGESIZE));
}

// What is compared before and after.
struct Use {
  size_t device, plans, process;
};
Use use_of(Device device) {
  device.sync();
  return {device.memory().in_use, cached_plan_count(device.physical()), resident()};
}

// The allocator of the process keeps some pages for itself; the address sanitizer's, all memory
// that was freed of late (256 MiB).
constexpr size_t kSlack = size_t(kAddressSanitizer ? 512 : 8) << 20;

void expect_flat(const Use& before, const Use& after) {
  EXPECT_EQ(after.device, before.device);
  EXPECT_EQ(after.plans, before.plans);
  EXPECT_LE(after.process, before.process + kSlack);
}

// Two layers by hand, 20 -> 32 -> 4.
struct Model {
  Tensor w1, b1, w2, b2;

  explicit Model(Device device)
      : w1(normal({20, 32}, 0, 0.2, {.device = device}).require_grad()),
        b1(zeros({32}, {.device = device}).require_grad()),
        w2(normal({32, 4}, 0, 0.2, {.device = device}).require_grad()),
        b2(zeros({4}, {.device = device}).require_grad()) {}

  Tensor operator()(const Tensor& x) const { return relu(x.matmul(w1) + b1).matmul(w2) + b2; }
  void step(double rate) {
    for (Tensor* p : {&w1, &b1, &w2, &b2}) {
      *p = (p->detach() - p->grad() * rate).require_grad();
    }
  }
};

TEST(Growth, forward_passes_alone_keep_nothing) {
  on_devices([](Device device) {
    const Model model(device);
    const Tensor x = normal({16, 20}, 0, 1, {.device = device});
    float last = 0;
    Use before{};
    for (int i = 0; i < 110; i++) {
      if (i == 10) before = use_of(device);
      const Tensor y = model(x);
      EXPECT_TRUE(y.requires_grad());
      last = y.sum().item<float>();
    }
    EXPECT_TRUE(last == last);
    expect_flat(before, use_of(device));
  });
}

TEST(Growth, forward_passes_that_nobody_reads_keep_nothing) {
  on_devices([](Device device) {
    const Model model(device);
    const Tensor x = normal({16, 20}, 0, 1, {.device = device});
    Use before{};
    for (int i = 0; i < 20100; i++) {
      if (i == 10000) before = use_of(device);
      (void)model(x);
    }
    expect_flat(before, use_of(device));
  });
}

TEST(Growth, training_keeps_nothing) {
  on_devices([](Device device) {
    device.seed(3);
    Model model(device);
    const Tensor x = normal({16, 20}, 0, 1, {.device = device});
    const Tensor target = (x.narrow(1, 0, 4) * 2 + 1).contiguous();
    float first = 0, last = 0;
    Use before{};
    const int steps = device.name().starts_with("cuda") ? 10'000 : 2000;
    for (int i = 0; i < steps; i++) {
      // Looked at regularly, because a flush there makes segments, and thus plans, of its own.
      if (i % 100 == 0) (void)use_of(device);
      if (i == 300) before = use_of(device);
      const Tensor loss = mse_loss(model(x), target);
      loss.backward();
      model.step(0.02);
      if (i % 100 == 0) last = loss.item<float>();
      if (i == 0) first = last;
    }
    EXPECT_LT(last, first / 4);
    expect_flat(before, use_of(device));
  });
}

TEST(Growth, second_derivatives_keep_nothing) {
  on_devices([](Device device) {
    const Tensor w = full({600}, 0.5, {.device = device}).copy().require_grad();
    Use before{};
    for (int i = 0; i < 300; i++) {
      if (i == 50) before = use_of(device);
      const Tensor y = (w.sin() * w).sum();
      const Tensor slope = grad({y}, {w}, {.create_graph = true})[0];
      (void)grad({slope.square().sum()}, {w})[0].to_vector<float>();
    }
    expect_flat(before, use_of(device));
  });
}

TEST(Growth, failures_keep_nothing) {
  on_devices([](Device device) {
    const Tensor x = full({600}, 1, {.device = device}).copy();
    const Tensor index = from(std::vector<int64_t>{700}, device);
    Use before{};
    for (int i = 0; i < 600; i++) {
      if (i == 100) before = use_of(device);
      const Tensor bad = (x * 2).gather(0, index) + 1;
      EXPECT_THROW((void)bad.item<float>(), Error);
      EXPECT_THROW((void)(x + full({7}, 1, {.device = device})), Error);
    }
    expect_flat(before, use_of(device));
  });
}

// Freed by loops: recursion over so many nodes would overflow the stack.
TEST(Depth, a_chain_that_nobody_reads) {
  on_devices([](Device device) {
    Tensor x = full({600}, 1, {.device = device}).copy();
    for (int i = 0; i < 200'000; i++) x = x + 1;
    x = Tensor();
    device.sync();
  });
}

TEST(Depth, a_tracked_chain) {
  on_devices([](Device device) {
    const Tensor w = full({2}, 1, {.device = device}).copy().require_grad();
    Tensor x = w;
    for (int i = 0; i < 200'000; i++) x = x * 1.0;
    EXPECT_EQ(x.to_vector<float>()[1], 1);
  });
}

TEST(Depth, the_gradient_of_a_long_chain) {
  on_devices([](Device device) {
    const Tensor w = full({2}, 1, {.device = device}).copy().require_grad();
    Tensor x = w;
    for (int i = 0; i < 50'000; i++) x = x * 1.0;
    x.sum().backward();
    EXPECT_EQ(w.grad().to_vector<float>()[0], 1);
  });
}

}  // namespace
}  // namespace fornax
