// The loader: what it hands out depends on data, seed and epoch, and on nothing else.
#include <fornax/data.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/errors.h"

namespace fornax::data {
namespace {

// Ten examples, or any number, that are their own positions.
struct Numbers {
  int64_t count = 10;
  int64_t fails_at = -1;
  std::atomic<int>* alive = nullptr;
  int64_t size() const { return count; }
  Example get(int64_t i) const {
    if (i == fails_at) throw std::runtime_error("example 7 is broken");
    return {full({2}, double(i), {DType::f32, Device("cpu")}),
            full({}, i, {DType::i64, Device("cpu")})};
  }
};

std::vector<std::vector<int64_t>> batches(const Loader& loader, int64_t epoch = 0) {
  std::vector<std::vector<int64_t>> all;
  for (const Batch& batch : loader.epoch(epoch)) {
    EXPECT_EQ(batch.inputs.shape(), (Shape{batch.targets.shape(0), 2}));
    all.push_back(batch.targets.to_vector<int64_t>());
    EXPECT_EQ(batch.inputs.select(1, 1).to_vector<int64_t>(), all.back());
  }
  return all;
}

TEST(Loader, C142_same_batches_for_every_worker_count) {
  for (const bool shuffle : {false, true}) {
    for (const bool drop_last : {false, true}) {
      std::vector<std::vector<int64_t>> want;
      for (const int workers : {0, 1, 3}) {
        const Loader loader(Numbers{}, {.batch_size = 4,
                                        .shuffle = shuffle,
                                        .seed = 3,
                                        .drop_last = drop_last,
                                        .workers = workers,
                                        .prefetch = 2,
                                        .device = Device("cpu")});
        const auto got = batches(loader);
        if (workers == 0) want = got;
        EXPECT_EQ(got, want);
        std::vector<size_t> sizes;
        std::set<int64_t> seen;
        for (const auto& batch : got) {
          sizes.push_back(batch.size());
          seen.insert(batch.begin(), batch.end());
        }
        EXPECT_EQ(sizes, drop_last ? (std::vector<size_t>{4, 4}) : (std::vector<size_t>{4, 4, 2}));
        EXPECT_EQ(seen.size(), drop_last ? 8u : 10u);
        EXPECT_EQ(int64_t(sizes.size()), loader.batches());
        EXPECT_EQ(int64_t(seen.size()), loader.examples());
      }
      if (!shuffle) {
        EXPECT_EQ(want[0], (std::vector<int64_t>{0, 1, 2, 3}));
      }
    }
  }
}

TEST(Loader, C144_epochs_differ_and_repeat) {
  const auto order = [](uint64_t seed, int64_t epoch) {
    return Loader(Numbers{100},
                  {.batch_size = 7, .shuffle = true, .seed = seed, .device = Device("cpu")})
        .order(epoch);
  };
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_EQ(order(1, 1), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 1), order(2, 0));
}

TEST(Loader, every_order_is_about_equally_likely) {
  std::vector<int> first(5);
  const Loader loader(Numbers{5}, {.shuffle = true, .device = Device("cpu")});
  for (int64_t epoch = 0; epoch < 5000; epoch++) first[size_t(loader.order(epoch)[0])]++;
  for (const int count : first) EXPECT_NEAR(count, 1000, 150);
}

TEST(Loader, errors_reach_the_caller_in_order) {
  for (const int workers : {0, 2}) {
    const Loader loader(Numbers{20, 7},
                        {.batch_size = 2, .workers = workers, .device = Device("cpu")});
    Epoch epoch = loader.epoch(0);
    Batch batch;
    for (int i = 0; i < 3; i++) EXPECT_TRUE(epoch.next(batch));
    EXPECT_THROW(epoch.next(batch), std::runtime_error);
    EXPECT_FALSE(epoch.next(batch));
  }
}

TEST(Loader, may_be_dropped_at_any_time) {
  for (int taken = 0; taken < 6; taken++) {
    for (const int workers : {1, 4}) {
      Epoch epoch = [&] {
        const Loader loader(
            Numbers{1000},
            {.batch_size = 3, .workers = workers, .prefetch = 2, .device = Device("cpu")});
        return loader.epoch(0);
      }();
      Batch batch;
      for (int i = 0; i < taken; i++) EXPECT_TRUE(epoch.next(batch));
    }
  }
}

TEST(Loader, prefetch_bounds_what_is_made_ahead) {
  static std::atomic<int> made;
  made = 0;
  const auto counted = map(Numbers{100}, [](Example example) {
    made++;
    return example;
  });
  const Loader loader(counted,
                      {.batch_size = 1, .workers = 2, .prefetch = 3, .device = Device("cpu")});
  Epoch epoch = loader.epoch(0);
  Batch batch;
  EXPECT_TRUE(epoch.next(batch));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(made.load(), 4);
}

TEST(Loader, empty_data_and_wrong_options) {
  EXPECT_TRUE(batches(Loader(Numbers{0}, {.device = Device("cpu")})).empty());
  const auto refusal = [](LoaderOptions o) {
    return message_of(ErrorKind::value, [&] { Loader(Numbers{}, o); });
  };
  const std::string rule = "; they must be at least 1, 0 and 1";
  expect_words(refusal({.batch_size = 0}), "loader: batch_size is 0, workers 1, prefetch 4" + rule);
  expect_words(refusal({.workers = -1}), "batch_size is 32, workers -1, prefetch 4" + rule);
  expect_words(refusal({.prefetch = 0}), "batch_size is 32, workers 1, prefetch 0" + rule);
}

TEST(Datasets, in_memory) {
  const Device cpu("cpu");
  const InMemory data(arange(12, {.device = cpu}).reshape({4, 3}), arange(4, {.device = cpu}));
  EXPECT_EQ(data.get(2).input.to_vector<int64_t>(), (std::vector<int64_t>{6, 7, 8}));
  const int64_t positions[] = {3, 0};
  const Batch batch = data.batch(positions, cpu);
  EXPECT_EQ(batch.inputs.to_vector<int64_t>(), (std::vector<int64_t>{9, 10, 11, 0, 1, 2}));
  EXPECT_EQ(batch.targets.to_vector<int64_t>(), (std::vector<int64_t>{3, 0}));
  expect_words(message_of(ErrorKind::index, [&] { data.get(4); }),
               "in_memory: there is no example 4; there are 4");
  expect_words(
      message_of(ErrorKind::shape,
                 [] {
                   InMemory(ones({4, 3}), ones({5}));
                 }),
      "in_memory: inputs are [4,3], targets [5]; both need a first axis, of the same size");
}

TEST(Datasets, pictures_are_scaled) {
  const Pictures pictures{.count = 2,
                          .channels = 1,
                          .height = 1,
                          .width = 2,
                          .mean = 0.5f,
                          .deviation = 0.25f,
                          .pixels = {0, 255, 51, 0},
                          .labels = {3, 4}};
  const int64_t positions[] = {1, 0};
  const Batch batch = pictures.batch(positions, Device("cpu"));
  EXPECT_EQ(batch.inputs.shape(), (Shape{2, 1, 1, 2}));
  const auto values = batch.inputs.to_vector<float>();
  EXPECT_FLOAT_EQ(values[0], (51.0f / 255 - 0.5f) / 0.25f);
  EXPECT_FLOAT_EQ(values[3], 2);
  EXPECT_EQ(batch.targets.to_vector<int64_t>(), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(pictures.get(0).target.item<int64_t>(), 3);
  expect_words(message_of(ErrorKind::index, [&] { pictures.get(2); }),
               "pictures: there is no example 2; there are 2");
}

}  // namespace
}  // namespace fornax::data
