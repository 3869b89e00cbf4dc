// Averages, progress, interruption, and a small model that must learn.
#include <fornax/fornax.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "tests/errors.h"

namespace fornax {
namespace {

TEST(Average, is_weighted_and_keeps_no_graph) {
  train::Average average;
  EXPECT_TRUE(std::isnan(average.value()));
  const Tensor x = full({}, 1.0, {DType::f32, Device("cpu").autodiff()}).require_grad();
  average.add(x * 3, 1);
  average.add(x * 6, 2);
  EXPECT_DOUBLE_EQ(average.value(), 5);
  EXPECT_DOUBLE_EQ(average.weight(), 3);
}

TEST(Interrupt, one_signal_asks_for_a_stop) {
  {
    const train::Interrupt interrupt;
    EXPECT_FALSE(interrupt.requested());
    expect_words(message_of(ErrorKind::value, [] { train::Interrupt(); }),
                 "interrupt: another one lives; keep one per process");
    raise(SIGINT);
    EXPECT_TRUE(interrupt.requested());
  }
  const train::Interrupt fresh;
  EXPECT_FALSE(fresh.requested());
}

TEST(Progress, lines) {
  const train::Progress progress("epoch 1", 1000);
  EXPECT_EQ(progress.line(500, 2, "loss 0.5", 1000, false),
            "epoch 1  50%  loss 0.5  250 pictures/s  0:02 left");
  EXPECT_EQ(progress.line(1000, 4, "", 1000, false), "epoch 1 100%  250 pictures/s  4.0 s");
  EXPECT_EQ(progress.line(0, 0, "", 1000, false), "epoch 1   0%  0 pictures/s");
  const std::string bar = progress.line(500, 2, "", 70, true);
  EXPECT_NE(bar.find("[==="), bar.npos);
  for (int width = 0; width < 90; width++) {
    EXPECT_LE(progress.line(500, 2, "loss 0.5", width, true).size(), size_t(width));
  }
}

TEST(Progress, outside_a_terminal_it_prints_plain_lines) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    train::Progress progress("p", 10, {.unit = "items", .descriptor = ends[1]});
    EXPECT_FALSE(progress.due());
    progress.show(5);
    progress.finish(10, "done");
  }
  char text[200];
  const ssize_t size = read(ends[0], text, sizeof text);
  ASSERT_GT(size, 0);
  const std::string line(text, size_t(size));
  EXPECT_EQ(line.substr(0, 14), "p 100%  done  ");
  EXPECT_EQ(line.find('\x1b'), line.npos);
  close(ends[0]);
  close(ends[1]);
}

TEST(Doctor, says_what_matters) {
  const std::string text = train::doctor();
  for (const char* words : {"fornax 0.1.0", "processor", "threads", "cache", "cpu", "settings"}) {
    EXPECT_NE(text.find(words), text.npos) << words;
  }
}

struct Xor {
  nn::Linear first, last;
  explicit Xor(Device device) : first(2, 8, {.device = device}), last(8, 1, {.device = device}) {}
  Tensor operator()(const Tensor& x) const { return last(tanh(first(x))); }
  FORNAX_FIELDS(first, last)
};

std::vector<float> learn(const Device& device) {
  device.seed(3);
  Xor net(device.autodiff());
  const Tensor x = tensor({{0., 0}, {0., 1}, {1., 0}, {1., 1}}, {.device = device});
  const Tensor y = tensor({{0.}, {1.}, {1.}, {0.}}, {.device = device});
  optim::Adam adam({.learning_rate = 0.03});
  std::vector<float> losses;
  for (int step = 0; step < 300; step++) {
    const Tensor loss = mse_loss(net(x), y);
    loss.backward();
    adam.step(net);
    losses.push_back(loss.item<float>());
  }
  return losses;
}

TEST(Training, a_small_model_learns_and_repeats_itself) {
  const std::vector<float> losses = learn(Device("cpu"));
  EXPECT_LT(losses.back(), 0.01f);
  EXPECT_EQ(losses, learn(Device("cpu")));
}

TEST(Training, memory_stays_flat) {
  const Device device("cpu");
  Xor net(device.autodiff());
  optim::Adam adam;
  const Tensor x = ones({4, 2}, {DType::f32, device}), y = ones({4, 1}, {DType::f32, device});
  size_t early = 0;
  for (int step = 0; step < 500; step++) {
    mse_loss(net(x), y).backward();
    adam.step(net);
    if (step == 20) {
      device.sync();
      early = device.memory().in_use;
    }
  }
  device.sync();
  EXPECT_LE(device.memory().in_use, early);
}

}  // namespace
}  // namespace fornax
