// Work that repeats: batches of launches, and plans whose runs are replayed.
#include <fornax/grad.h>
#include <fornax/ops.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "backends/cube/batch.h"
#include "kernel/build.h"
#include "tests/cube/run.h"
#include "tests/errors.h"

namespace fornax {
namespace {

using cube::CubeTest;
using cube::LaunchBatch;

// ── Batches ──────────────────────────────────────────────────────────────────────────────────────
class BatchTest : public CubeTest {
 protected:
  // y = -x * number, as two groups.
  std::vector<double> run(LaunchBatch& batch, const cube::Tensor& x, double number) {
    Case first, second;
    first.group.graph.outputs = {first.add(Op::neg, {first.input(x)})};
    first.group.domain = x.type.shape;
    const cube::Tensor middle = empty(x.type), y = empty(x.type);
    const int a = second.input(middle), b = second.number(DType::f32, number);
    second.group.graph.outputs = {second.add(Op::mul, {a, b})};
    second.group.domain = x.type.shape;
    prepared_.push_back(prepare(first.group));
    prepared_.push_back(prepare(second.group));
    batch.begin();
    prepared_[prepared_.size() - 2]->run(first.arguments, argument(middle));
    prepared_.back()->run(second.arguments, argument(y));
    EXPECT_EQ(launched_, runtime.grids.size()) << "launched before the end";
    batch.end();
    launched_ = runtime.grids.size();
    throw_late_error(device);
    return values(y);
  }
  std::vector<Argument> argument(const cube::Tensor& tensor) {
    kept_.push_back(tensor);
    return {{tensor.buffer.get(), 0, {}}};
  }
  void release() { kept_.clear(); }

 private:
  std::vector<cube::Tensor> kept_;
  std::vector<std::unique_ptr<cube::PreparedGroup>> prepared_;
  size_t launched_ = 0;
};

TEST_F(BatchTest, WhatRepeatsIsRecordedOnceAndChanged) {
  LaunchBatch batch(device);
  const cube::Tensor x = counting({DType::f32, {64}});
  EXPECT_EQ(run(batch, x, 2)[0], 6);
  EXPECT_EQ(runtime.recordings, 1);
  EXPECT_EQ(runtime.runs, 1);
  // Other memory for every launch: a recording of its own, as long as there are few.
  for (int i = 0; i < 6; i++) EXPECT_EQ(run(batch, x, 3 + i)[0], 9 + 3 * i);
  EXPECT_EQ(runtime.recordings, 4);
  EXPECT_EQ(runtime.runs, 7);
  EXPECT_GT(runtime.changes, 0);
}

// Three launches that wait for each other otherwise in every run.
TEST_F(BatchTest, MemoryThatNeverSettlesEndsInOneOrder) {
  const cube::KernelRecipe recipe{"one number", [] {
                                    kernel::Builder k("one_number", {.threads = 1});
                                    k.store(k.output("y", DType::f32), 0, 1);
                                    return k.finish();
                                  }};
  const auto program = device.program(recipe)->get();
  const cube::Tensor y = empty({DType::f32, {1}});
  // Checked kernels are told how many elements there are and where to complain.
  const uint64_t words[] = {reinterpret_cast<uint64_t>(y.buffer->data), 1, 0};
  ASSERT_LE(program->source.parameters.size(), std::size(words));
  const std::span arguments(words, program->source.parameters.size());
  LaunchBatch batch(device);
  const auto run_once = [&](int i) {
    const auto launch = [&](int a, int b) {
      const std::vector<cube::Touch> touches = {{uint64_t(a), uint64_t(a) + 1, true},
                                                {uint64_t(b), uint64_t(b) + 1, true}};
      batch.add(program, {1, 1, 1}, arguments, touches, nullptr);
    };
    batch.begin();
    launch(0, 10);
    launch(i % 2 * 5, 20);
    launch(10 + i % 3 * 5, 20 + i % 5);
    batch.end();
  };
  for (int i = 0; i < 200; i++) run_once(i);
  EXPECT_LT(runtime.recordings, 60);
  EXPECT_EQ(runtime.runs, 200);
}

TEST_F(BatchTest, OtherLaunchesAreAnotherRecording) {
  LaunchBatch batch(device);
  for (int size : {64, 5000, 64, 5000}) {
    const cube::Tensor x = counting({DType::f32, {size}});
    EXPECT_EQ(run(batch, x, 2)[1], 4);
  }
  EXPECT_EQ(runtime.runs, 4);
}

TEST_F(BatchTest, AGroupThatThrowsIsNotLaunchedInPart) {
  LaunchBatch batch(device);
  const cube::Tensor x = counting({DType::f32, {64}}), y = empty(x.type);
  Case c;
  c.group.graph.outputs = {c.add(Op::neg, {c.input(x)})};
  c.group.domain = x.type.shape;
  const auto prepared = prepare(c.group);
  batch.begin();
  try {
    const LaunchBatch::Group group;
    prepared->run(c.arguments, argument(y));
    throw std::runtime_error("later");
  } catch (const std::runtime_error&) {
  }
  const size_t before = runtime.grids.size();
  batch.end();
  EXPECT_EQ(runtime.grids.size(), before);
  EXPECT_EQ(runtime.runs, 0);
}

// Groups that follow each other may run at once, except where that would take much memory.
TEST_F(BatchTest, ScratchMemoryGoesRoundAndIsGivenBack) {
  constexpr size_t kWays = cube::Device::kWays, kLarge = 16 << 20;
  const size_t before = runtime.memory(0).in_use;
  LaunchBatch batch(device);
  batch.begin();
  std::vector<std::vector<runtime::Address>> places(kWays + 1);
  for (std::vector<runtime::Address>& own : places) {
    const LaunchBatch::Group group;
    for (const size_t bytes : {size_t(1000), size_t(2000), kLarge}) {
      own.push_back(batch.scratch(bytes));
    }
  }
  EXPECT_EQ(places[0], places[kWays]);
  EXPECT_NE(places[0][0], places[0][1]);
  for (size_t way = 1; way < kWays; way++) {
    for (const size_t small : {0, 1}) EXPECT_NE(places[way][small], places[0][small]);
    EXPECT_EQ(places[way][2], places[0][2]);
  }
  EXPECT_GT(runtime.memory(0).in_use, before);
  batch.end();
  EXPECT_EQ(runtime.memory(0).in_use, before);
}

// ── Plans ────────────────────────────────────────────────────────────────────────────────────────
Device interpreter() { return Device("interpreter"); }

// A small model with everything that a step may hold: an index that is checked, random numbers,
// numbers that change from step to step, results that are held and results that take over memory.
struct Model {
  Device device;
  Tensor table, weight, bias;
  std::vector<Tensor> means;
  int steps = 0;

  explicit Model(Device on) : device(on) {
    device.seed(5);
    table = normal({7, 12}, 0, 1, {.device = device}).require_grad();
    weight = normal({12, 40}, 0, 0.3, {.device = device}).require_grad();
    bias = zeros({40}, {.device = device}).copy().require_grad();
    means.resize(3);
  }
  Tensor step(const Tensor& ids) {
    steps++;
    const Tensor x = table.gather(0, ids.unsqueeze(1).expand({ids.shape(0), 12}));
    const Tensor noise = uniform({ids.shape(0), 40}, 0, 1, {.device = device});
    const Tensor y = relu(x.matmul(weight) + bias) * noise.detach();
    const Tensor loss = (softmax(y) * y).mean();
    loss.backward();
    Tensor* parameters[] = {&table, &weight, &bias};
    for (int i = 0; i < 3; i++) {
      Tensor& p = *parameters[i];
      Tensor& mean = means[size_t(i)];
      const Tensor g = p.grad();
      mean = mean.defined() ? mean * 0.9 + g * 0.1 : g * 0.1;
      p = (p.detach() - mean * (0.1 / (1 - std::pow(0.9, steps)))).require_grad();
    }
    return loss.detach();
  }
  std::vector<std::vector<float>> read() const {
    return {table.to_vector<float>(), weight.to_vector<float>(), bias.to_vector<float>()};
  }
};

Tensor ids(Device device, int64_t last) {
  return from(std::vector<int64_t>{0, 3, 6, 3, last}, device);
}

// The losses of some steps, then the parameters.
std::vector<std::vector<float>> trained(Device device) {
  Model model(device);
  std::vector<Tensor> held;
  std::vector<std::vector<float>> read;
  for (int step = 0; step < 9; step++) {
    const Tensor loss = model.step(ids(device, step % 7));
    device.flush();
    if (step % 3 == 1) held.push_back(loss);  // so that results lie elsewhere
    if (step % 4 == 2) read.push_back(loss.to_vector<float>());
  }
  for (const auto& values : model.read()) read.push_back(values);
  for (const Tensor& loss : held) read.push_back(loss.to_vector<float>());
  return read;
}

TEST(Repeats, ReplayedRunsGiveTheSameBits) {
  EXPECT_EQ(trained(interpreter().fused()), trained(interpreter().eager()));
}

TEST(Repeats, AnErrorInAReplayedRunIsTold) {
  const Device device = interpreter().fused();
  const Tensor x = from(std::vector<float>{1, 2, 3}, device);
  std::vector<Tensor> results;
  int line = 0;
  for (int run = 0; run < 8; run++) {
    const Tensor index = from(std::vector<int64_t>{run == 5 ? 9 : 1, 0}, device);
    line = __LINE__ + 1;
    const Tensor picked = (x * run).gather(0, index);
    results.push_back(picked + 1);
    device.flush();
  }
  for (int run = 0; run < 8; run++) {
    if (run != 5) {
      EXPECT_EQ(results[size_t(run)].to_vector<float>()[0], float(2 * run + 1));
      continue;
    }
    const std::string text =
        message_of(ErrorKind::index, [&] { (void)results[5].to_vector<float>(); });
    expect_words(text, "gather: index 9 is outside axis 0 of f32[3]");
    expect_words(text, "repeats.cpp:" + std::to_string(line));
  }
  EXPECT_EQ(message_of([&] { device.sync(); }), "");
}

// The weights of all later steps depend on the failed one.
TEST(Repeats, AnErrorFollowsTheValuesThroughLaterRuns) {
  Model model(interpreter().fused());
  for (int step = 0; step < 8; step++) {
    (void)model.step(ids(model.device, step == 4 ? 7 : 1));
    model.device.flush();
  }
  const std::string text = message_of(ErrorKind::index, [&] { (void)model.read(); });
  expect_words(text, "index 7 is outside axis 0 of f32[7,12]");
  EXPECT_EQ(message_of([&] { (void)model.bias.to_vector<float>(); }), text);
  EXPECT_EQ(message_of([&] { model.device.sync(); }), "");
  Model other(interpreter().fused());
  (void)other.step(ids(other.device, 2));
  EXPECT_EQ(message_of([&] { (void)other.read(); }), "");
}

TEST(Repeats, MoreErrorsThanAreKeptAreNotLost) {
  const Device device = interpreter().fused();
  const Tensor x = from(std::vector<float>{1, 2, 3}, device);
  std::vector<Tensor> results;
  for (int run = 0; run < 1200; run++) {
    results.push_back(x.gather(0, from(std::vector<int64_t>{run % 100 == 7 ? 3 : 2}, device)));
    device.flush();
  }
  for (int run = 0; run < 1200; run++) {
    const std::string text = message_of([&] { (void)results[size_t(run)].to_vector<float>(); });
    EXPECT_EQ(text.empty(), run % 100 != 7) << run << ": " << text;
  }
}

// Each thread's errors stay with its own values, whoever waits for the device.
TEST(Repeats, ThreadsKeepTheirErrorsApart) {
  const Device device = interpreter().fused();
  std::atomic<int> wrong{0};
  const auto work = [&](int number) {
    const Tensor x = from(std::vector<float>{1, 2, 3}, device);
    for (int run = 0; run < 60; run++) {
      const int bad = 10 + number;
      const bool fails = (run + number) % 5 == 0;
      const Tensor index = from(std::vector<int64_t>{fails ? bad : 1}, device);
      const Tensor y = (x * run).gather(0, index) + number;
      device.flush();
      if (run % 3 != 0) continue;  // what is not read stays in doubt
      const std::string text =
          message_of([&] { wrong += y.to_vector<float>()[0] != float(2 * run + number); });
      wrong += fails != (text.find("index " + std::to_string(bad) + " ") != std::string::npos);
      wrong += !fails && !text.empty();
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; number++) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  (void)message_of([&] { device.sync(); });  // what nobody has read
}

TEST(Repeats, NothingIsHeldBetweenRuns) {
  const Device device = interpreter().fused();
  const Tensor w = full({24, 24}, 0.1, {.device = device}).copy();
  Tensor x = full({30, 24}, 1, {.device = device}).copy();
  device.sync();
  const size_t before = device.memory().in_use;
  for (int run = 0; run < 6; run++) {
    for (int layer = 0; layer < 4; layer++) x = softmax(x.matmul(w));
    device.flush();
    EXPECT_EQ(device.memory().in_use, before) << run;
  }
}

}  // namespace
}  // namespace fornax
