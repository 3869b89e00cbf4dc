// Memory, copies, launches, times and recordings.
#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/cuda/fixture.h"

namespace fornax::cuda {
namespace {

using Words = std::vector<uint32_t>;

TEST(CudaWork, WhatIsWrittenIsRead) {
  on_runtimes([](runtime::Runtime& r) {
    // Less than a staging slot, exactly one, more than all of them.
    for (size_t bytes : {size_t(4), size_t(4) << 20, (size_t(21) << 20) + 4}) {
      Words words(bytes / 4);
      std::iota(words.begin(), words.end(), 7u);
      const Address memory = r.allocate(0, bytes);
      r.write(0, memory, words.data(), bytes);
      const Words kept = words;
      std::fill(words.begin(), words.end(), 0u);  // the device must not see this
      r.read(0, words.data(), memory, bytes);
      EXPECT_TRUE(words == kept) << bytes;
      r.release(0, memory);
    }
  });
}

TEST(CudaWork, ManySmallWritesKeepTheirBytes) {
  on_runtimes([](runtime::Runtime& r) {
    const uint32_t count = 5000;
    const Address memory = r.allocate(0, count * 4);
    for (uint32_t i = 0; i < count; i++) r.write(0, memory + i * 4, &i, 4);
    Words words(count), wanted(count);
    std::iota(wanted.begin(), wanted.end(), 0u);
    r.read(0, words.data(), memory, count * 4);
    EXPECT_EQ(words, wanted);
    r.release(0, memory);
  });
}

TEST(CudaWork, LaunchesRunInTheOrderOfTheCalls) {
  on_runtimes([](runtime::Runtime& r) {
    Bench bench(r);
    const Address a = r.allocate(0, 4000), b = r.allocate(0, 4000);
    bench.fill(a, 1000, 3);
    bench.fill(b, 1000, 4);
    bench.add(a, b, 1000);
    r.release(0, b);
    const Address c = r.allocate(0, 4000);  // the memory of b, used by what comes later only
    EXPECT_EQ(b, c);
    bench.fill(c, 1000, 9);
    EXPECT_EQ(bench.read(a, 1000), Words(1000, 7));
    EXPECT_EQ(bench.read(c, 1000), Words(1000, 9));
    r.copy(0, c, 0, a, 4000);
    EXPECT_EQ(bench.read(c, 1000), Words(1000, 7));
    r.release(0, a);
    r.release(0, c);
  });
}

TEST(CudaWork, ALaunchOfNoBlocksDoesNothing) {
  on_runtimes([](runtime::Runtime& r) {
    const Bench bench(r);
    const std::array<uint64_t, 3> arguments = {0, 0, 0};
    r.launch(0, *bench.fill_program, {0, 1, 1}, arguments);
    r.synchronize(0);
  });
}

TEST(CudaWork, CopiesBetweenDevicesAreOrdered) {
  for (const bool target_first : {false, true}) {  // whose work is waited for first
    reset();
    const auto r = make_fake();
    Bench bench(*r);
    const Address a = r->allocate(0, 4000), b = r->allocate(1, 4000);
    bench.fill(a, 1000, 5);
    r->copy(1, b, 0, a, 4000);  // after the first launch, before the second
    bench.fill(a, 1000, 6);
    if (target_first) {
      EXPECT_EQ(bench.read(b, 1000, 1), Words(1000, 5));
    }
    EXPECT_EQ(bench.read(a, 1000), Words(1000, 6));
    EXPECT_EQ(bench.read(b, 1000, 1), Words(1000, 5));
  }
}

TEST(CudaWork, MarksTellTimes) {
  on_runtimes([](runtime::Runtime& r) {
    Bench bench(r);
    const Address a = r.allocate(0, 4000);
    const auto begin = r.mark(0);
    bench.fill(a, 1000, 3);
    bench.fill(a, 1000, 3);
    const auto end = r.mark(0);
    EXPECT_GT(r.milliseconds(*begin, *end), 0);
    EXPECT_LT(r.milliseconds(*begin, *end), 1000);
    r.release(0, a);
  });
}

TEST(CudaWork, ARecordingRunsWhenItIsToldTo) {
  on_runtimes([](runtime::Runtime& r) {
    Bench bench(r);
    const Address a = r.allocate(0, 4000), b = r.allocate(0, 4000);
    bench.fill(a, 1000, 0);
    bench.fill(b, 1000, 2);
    r.begin_recording(0);
    bench.add(a, b, 1000);
    bench.add(b, b, 1000);
    std::thread([&] {  // others run meanwhile
      bench.fill(a, 1000, 10);
      EXPECT_EQ(bench.read(a, 1000), Words(1000, 10));
    })
        .join();
    EXPECT_NE(message_of([&] { r.synchronize(0); }).find("end_recording"), std::string::npos);
    const auto recording = r.end_recording(0);
    EXPECT_EQ(bench.read(a, 1000), Words(1000, 10));
    bench.fill_program.reset();
    bench.add_program.reset();  // the recording keeps what it needs
    r.run(0, *recording);
    r.run(0, *recording);
    EXPECT_EQ(bench.read(a, 1000), Words(1000, 16));
    EXPECT_EQ(bench.read(b, 1000), Words(1000, 8));
    r.release(0, a);
    r.release(0, b);
  });
}

TEST(CudaWork, AChangedRecordingRunsWithOtherArguments) {
  on_runtimes([](runtime::Runtime& r) {
    Bench bench(r);
    const Address a = r.allocate(0, 4000), b = r.allocate(0, 4000), c = r.allocate(0, 4000);
    bench.fill(c, 1000, 100);
    r.begin_recording(0);
    bench.fill(a, 1000, 1);
    bench.fill(b, 1000, 2);
    bench.add(a, b, 1000);
    const auto recording = r.end_recording(0);
    const int launches = driver().launches, graph_launches = driver().graph_launches;
    r.run(0, *recording);
    bench.add(c, a, 1000);  // what is on its way is not changed
    const std::array<uint64_t, 3> fewer = {b, 500, 5}, other = {c, b, 1000};
    r.change(0, *recording, 1, fewer);
    r.change(0, *recording, 2, other);
    r.run(0, *recording);
    EXPECT_EQ(bench.read(a, 1000), Words(1000, 1));
    Words sums(1000, 100 + 3 + 5);
    std::fill(sums.begin() + 500, sums.end(), 100u + 3 + 2);
    EXPECT_EQ(bench.read(c, 1000), sums);
    if (driver().launches > 0) {  // on the stand-in
      EXPECT_EQ(driver().launches, launches + 1);
      EXPECT_EQ(driver().graph_launches, graph_launches + 2);
      EXPECT_EQ(driver().changes, 2);
    }
    for (const Address memory : {a, b, c}) r.release(0, memory);
  });
}

TEST(CudaWork, LaunchesAreRangesForProfilers) {
  reset();
  const auto r = make_fake();
  Bench bench(*r);
  const Address a = r->allocate(0, 4000);
  bench.fill(a, 1000, 1);
  EXPECT_EQ(driver().ranges, 1);
  r->begin_recording(0);
  bench.fill(a, 1000, 2);
  bench.fill(a, 1000, 3);
  const auto recording = r->end_recording(0);
  EXPECT_EQ(driver().ranges, 1) << "what is recorded is not launched";
  r->run(0, *recording);
  EXPECT_EQ(driver().ranges, 2);
  EXPECT_EQ(driver().open_ranges, 0);
  r->release(0, a);
}

TEST(CudaWork, TensorMapsSayWhatWasAsked) {
  reset();
  const auto r = make_fake();
  runtime::TensorMapRequest request{.base = 4096, .element_bytes = 4, .tf32 = true};
  request.extents = {100, 200};
  request.pitches = {512};
  request.box = {32, 64};
  const runtime::TensorMap map = r->tensor_map(0, request);
  EXPECT_EQ(map.opaque[0], uint64_t(TensorMapType::tf32));
  EXPECT_EQ(map.opaque[1], 2u);
  EXPECT_EQ(map.opaque[2], 4096u);
  EXPECT_EQ(map.opaque[4], 200u);
  EXPECT_EQ(map.opaque[5], 512u);
  request.pitches = {500};
  EXPECT_THROW(r->tensor_map(0, request), Error);
}

TEST(CudaWork, ThreadsMayWorkAtOnce) {
  on_runtimes([](runtime::Runtime& r) {
    Bench bench(r);
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t <= 4; t++) {
      threads.emplace_back([&, t] {
        for (uint32_t round = 0; round < 50; round++) {
          const uint32_t count = t * 300 + round;
          const Address a = r.allocate(0, count * 4), b = r.allocate(0, count * 4);
          const Words words(count, round);
          bench.fill(a, count, t);
          r.write(0, b, words.data(), count * 4);
          bench.add(a, b, count);
          EXPECT_EQ(bench.read(a, count), Words(count, t + round));
          r.release(0, a);
          r.release(0, b);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(r.memory(0).in_use, 0u);
  });
}

TEST(CudaWork, NothingIsLeftBehind) {
  reset();
  {
    const auto r = make_fake();
    Bench bench(*r);
    const Address a = r->allocate(0, 4000);
    bench.fill(a, 1000, 1);
    bench.read(a, 1000);
    const auto mark = r->mark(0);
    r->begin_recording(0);
    bench.fill(a, 1000, 1);
    const auto recording = r->end_recording(0);
    bench.fill_program = r->compile(0, fill_text());  // the recording has the first one
    bench.fill(a, 1000, 1);
    bench.fill_program.reset();
    EXPECT_EQ(driver().modules, 2);  // its work may be on its way
    r->synchronize(0);
    EXPECT_EQ(driver().modules, 1);
  }
  EXPECT_EQ(driver().modules, 0);
  EXPECT_EQ(driver().graphs, 0);
  EXPECT_EQ(driver().events, 0);
  EXPECT_EQ(driver().streams, 0);
  EXPECT_EQ(driver().contexts, 0);
  EXPECT_EQ(driver().pinned, 0);
  EXPECT_EQ(driver().frees, driver().allocations);
  EXPECT_EQ(driver().early_frees, 0);
}

TEST(CudaWork, ProgramsMayOutliveTheRuntime) {
  reset();
  std::shared_ptr<runtime::Program> program;
  std::unique_ptr<runtime::Mark> mark;
  {
    const auto r = make_fake();
    Bench bench(*r);
    const Address a = r->allocate(0, 4000);
    bench.fill(a, 1000, 1);
    program = bench.fill_program;
    mark = r->mark(0);
  }
  EXPECT_EQ(driver().contexts, 1);
  mark.reset();
  program.reset();
  EXPECT_EQ(driver().contexts, 0);
  EXPECT_EQ(driver().modules, 0);
  EXPECT_EQ(driver().events, 0);
}

}  // namespace
}  // namespace fornax::cuda
