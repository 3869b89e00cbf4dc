// Threads, memory, registers and small ops.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "backends/flex/pipeline.h"
#include "backends/flex/pool.h"
#include "backends/flex/small.h"
#include "base/error.h"
#include "tests/flex/group.h"

namespace fornax::flex {
namespace {

TEST(FlexPool, EveryItemRunsOnce) {
  for (int64_t count : {0, 1, 2, 7, 100, 12345}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    parallel(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) seen[size_t(i)]++;
    });
    for (auto& times : seen) EXPECT_EQ(times.load(), 1);
  }
}

TEST(FlexPool, AnExceptionReachesTheCallerAndLeavesThePoolUsable) {
  for (int round = 0; round < 50; round++) {
    EXPECT_THROW(parallel(100, 1,
                          [](int64_t begin, int64_t) {
                            if (begin > 40) throw std::runtime_error("body");
                          }),
                 std::runtime_error);
  }
  std::atomic<int64_t> sum{0};
  parallel(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum.load(), 1000);
}

TEST(FlexPool, BodiesMayNestAndCallersMayBeMany) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; t++) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; round++) {
        parallel(16, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) {
            parallel(4, 1, [&](int64_t b, int64_t e) { sum += e - b; });
          }
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 200 * 16 * 4);
}

TEST(FlexMemory, BlocksAreAlignedAndCounted) {
  const size_t before = memory_use().in_use;
  for (size_t bytes : {size_t(0), size_t(1), size_t(1984), size_t(1985), size_t(5000),
                       size_t(1) << 20, (size_t(2) << 20) + 1, size_t(9) << 20}) {
    const Ref<Buffer> buffer = allocate_buffer(0, bytes);
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(buffer->data) % (bytes >= (size_t(2) << 20) ? 1 << 21 : 64),
        0u);
    EXPECT_EQ(buffer->bytes, bytes);
    EXPECT_GE(size_class(bytes), bytes);
    EXPECT_LE(double(size_class(bytes)), double(bytes) * 1.126 + 64);
    std::memset(buffer->data, 1, buffer->bytes);
    EXPECT_EQ(memory_use().in_use, before + buffer->bytes);
    EXPECT_GE(memory_use().peak, before + buffer->bytes);
  }
  EXPECT_EQ(memory_use().in_use, before);
}

TEST(FlexMemory, FreedBlocksAreKeptUntilTrimmed) {
  trim_memory();
  const size_t reserved = memory_use().reserved;
  void* first = nullptr;
  {
    const Ref<Buffer> buffer = allocate_buffer(0, 3 << 20);
    first = buffer->data;
  }
  EXPECT_GE(memory_use().reserved, reserved + (3u << 20));
  EXPECT_EQ(allocate_buffer(0, (3 << 20) - 100)->data, first);
  trim_memory();
  EXPECT_LE(memory_use().reserved, reserved);
}

TEST(FlexMemory, WhatNoMachineHasIsAnErrorWithTheBytes) {
  try {
    allocate_buffer(0, size_t(1) << 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos);
  }
}

TEST(FlexSmall, SmallOpsEqualGroupsBitForBit) {
  std::mt19937 random(21);
  int served = 0;
  for (int i = 0; i < op_count(); i++) {
    for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
      const Op op = Op(i);
      if (!is_pointwise(op) || !takes(op, dtype)) continue;
      for (int64_t count : {1, 5, 16, 37, 512}) {
        std::vector<Tensor> operands;
        std::vector<const void*> pointers;
        bool single[3] = {};
        for (int k = 0; k < info(op).inputs; k++) {
          const bool condition = info(op).rule == Rule::selected && k == 0;
          single[k] = count > 1 && random() % 3 == 0;
          operands.push_back(random_tensor(
              {condition ? DType::bool_ : dtype, single[k] ? Shape{1} : Shape{count}}, random));
          pointers.push_back(operands.back().buffer->data);
        }
        const Tensor group = run_one(op, operands);
        Tensor small = empty({group.type.dtype, {count}});
        const SmallLoop loop = small_loops()[size_t(dtype)][size_t(op)];
        ASSERT_TRUE(loop);
        loop(count, small.buffer->data, pointers.data(), single);
        for (int64_t e = 0; e < count; e++) {
          const Word want = group.at(group.type.shape.element_count() == 1 ? 0 : e);
          ASSERT_TRUE(same_number(group.type.dtype, want, small.at(e)))
              << info(op).name << " of " << name_of(dtype) << " element " << e;
        }
        served++;
      }
    }
  }
  EXPECT_GT(served, 500);
}

#if defined(__x86_64__)
// Whether the upper half of some register is in use, as the processor sees it.
bool uses_upper_halves() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return low >> 2 & 1;
}

// Where a program left them so, the next instruction on narrow vectors would wait.
TEST(FlexPipeline, LeavesNoUpperHalvesInUse) {
  uint32_t a, b, c, d;
  if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a >> 2 & 1)) {
    GTEST_SKIP() << "the processor does not tell";
  }
  Graph graph;
  const Type type{DType::f32, {}};
  graph.steps = {{Op::leaf, type, {}, {}, {}}, {Op::neg, type, {0}, {}, {}}};
  graph.outputs = {1};
  const Code code = compile(graph, std::array{Reach::direct});
  const std::vector<float> x(4096, 1.5f);
  std::vector<float> y(x.size());
  std::vector<char> memory(Pipeline::bytes(code) + 64);
  char* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  Pipeline pipeline(code, aligned);
  const char* from = reinterpret_cast<const char*>(x.data());
  char* to = reinterpret_cast<char*>(y.data());
  pipeline.run(&from, &to, 0, int64_t(x.size()));
  const bool in_use = uses_upper_halves();
  EXPECT_FALSE(in_use);
  EXPECT_EQ(y.back(), -1.5f);
}
#endif

}  // namespace
}  // namespace fornax::flex
