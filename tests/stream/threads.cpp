// Recording from several threads at once, and handing values from one to another.
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "tests/stream/stream_test.h"

namespace fornax {
namespace {

constexpr int kThreads = 4;

template <class Work>
void on_threads(Work work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, record_apart) {
  on_devices([](Device device) {
    on_threads([&](int t) {
      for (int round = 0; round < 30; round++) {
        Tensor x = full({600}, t, {.device = device}).copy();
        for (int i = 0; i < 20; i++) x = x + 1;
        EXPECT_EQ(x.sum().item<float>(), float(600 * (t + 20)));
      }
    });
  });
}

TEST(Threads, read_one_pending_value) {
  on_devices([](Device device) {
    for (int round = 0; round < 50; round++) {
      Tensor x = full({600}, round, {.device = device}).copy() * 2;
      const Tensor shared = x + 1;
      on_threads([&](int t) {
        EXPECT_EQ((shared + t).to_vector<float>()[599], float(2 * round + 1 + t));
        EXPECT_EQ(shared.to_vector<float>()[0], float(2 * round + 1));
      });
    }
  });
}

// A queue of tensors that still pend where they were recorded.
class Queue {
 public:
  void push(Tensor tensor) {
    std::lock_guard lock(mutex_);
    tensors_.push_back(std::move(tensor));
    filled_.notify_one();
  }
  Tensor pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !tensors_.empty(); });
    Tensor tensor = std::move(tensors_.front());
    tensors_.pop_front();
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Tensor> tensors_;
};

// Values go round a ring of threads; each adds to what it is given, and drops its own handle while
// others may be running it.
TEST(Threads, hand_pending_values_on) {
  on_devices([](Device device) {
    constexpr int kRounds = 100;
    std::array<Queue, kThreads> queues;
    std::array<float, kThreads> results{};
    for (int t = 0; t < kThreads; t++) {
      queues[size_t(t)].push(full({600}, t, {.device = device}).copy());
    }
    on_threads([&](int t) {
      for (int round = 0; round < kRounds; round++) {
        Tensor x = queues[size_t(t)].pop();
        x = x * 1 + 1;
        queues[size_t((t + 1) % kThreads)].push(std::move(x));
      }
      results[size_t(t)] = queues[size_t(t)].pop().to_vector<float>()[599];
    });
    for (int t = 0; t < kThreads; t++) {
      EXPECT_EQ(results[size_t(t)],
                float(kRounds + (t - kRounds % kThreads + kThreads) % kThreads));
    }
  });
}

TEST(Threads, sync_runs_what_others_recorded) {
  const Tensor leaf = numbers({600});
  Tensor x;
  std::thread([&] { x = leaf + 1; }).join();
  const size_t before = recorder().memory().in_use;
  recorder().sync();
  EXPECT_EQ(recorder().memory().in_use, before + 2400);
  EXPECT_EQ(x.to_vector<float>()[0], 2);
}

TEST(Threads, flush_and_sync_while_others_record) {
  on_devices([](Device device) {
    on_threads([&](int t) {
      for (int round = 0; round < 60; round++) {
        if (t == 0) {
          device.sync();
          continue;
        }
        Tensor x = full({600}, t, {.device = device}).copy(), y = x;
        for (int i = 0; i < 10; i++) y = y + x;
        x = Tensor();
        if (round % 3 == 0) device.flush();
        EXPECT_EQ(y.to_vector<float>()[1], float(11 * t));
      }
    });
  });
}

TEST(Threads, many_short_lived_ones_share_streams) {
  on_devices([](Device device) {
    for (int i = 0; i < 100; i++) {
      Tensor x;
      std::thread([&] { x = full({600}, i, {.device = device}).copy() + 1; }).join();
      EXPECT_EQ(x.to_vector<float>()[0], float(i + 1));
    }
  });
}

TEST(Threads, take_gradients_of_shared_parameters) {
  on_devices([](Device device) {
    const Tensor w = full({600}, 3, {.device = device}).copy().require_grad();
    on_threads([&](int t) {
      for (int round = 0; round < 20; round++) {
        const Tensor g = grad({(w * w * t).sum()}, {w})[0];
        EXPECT_EQ(g.to_vector<float>()[599], float(6 * t));
      }
    });
  });
}

}  // namespace
}  // namespace fornax
