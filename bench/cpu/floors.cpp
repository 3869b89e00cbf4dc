// What memory and processor allow: loops for each instruction set, on the pool's threads.  The
// numbers that they compute are checked when a row is made.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/cpu/floors.cpp"
#include <hwy/foreach_target.h>
#include "backends/flex/targets.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "backends/flex/math.inl"
#include "backends/flex/pool.h"
#include "bench/cpu/cpu.h"

// Lengths are multiples of kBlock.
#ifndef FORNAX_BENCH_BLOCK
#define FORNAX_BENCH_BLOCK
namespace bench {
constexpr int64_t kBlock = 2048;  // elements: two of them fit the smallest first-level cache
struct Loops {
  void (*copy)(const float* from, float* to, int64_t count);
  void (*copy_stream)(const float* from, float* to, int64_t count);
  float (*read)(const float* from, int64_t count);
  float (*multiply_add)(int64_t count);
  void (*chain)(const float* from, float* to, int64_t count);
};
}  // namespace bench
#endif

HWY_BEFORE_NAMESPACE();
namespace bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace flex = fornax::flex::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

void copy(const float* from, float* to, int64_t count) {
  const Tag d;
  for (int64_t i = 0; i < count; i += int64_t(hn::Lanes(d)))
    hn::Store(hn::Load(d, from + i), d, to + i);
}

void copy_stream(const float* from, float* to, int64_t count) {
  const Tag d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += 16) {
    hwy::Prefetch(from + i + 1024);
    for (int64_t k = 0; k < 16; k += lanes) hn::Stream(hn::Load(d, from + i + k), d, to + i + k);
  }
  hwy::FlushStream();
}

// Eight streams keep more lines of memory on their way than one.
float read(const float* from, int64_t count) {
  const Tag d;
  const int64_t part = count / 8;
  Vector s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (int64_t i = 0; i < part; i += int64_t(hn::Lanes(d))) {
    s0 = hn::Add(s0, hn::Load(d, from + i));
    s1 = hn::Add(s1, hn::Load(d, from + part + i));
    s2 = hn::Add(s2, hn::Load(d, from + 2 * part + i));
    s3 = hn::Add(s3, hn::Load(d, from + 3 * part + i));
    s4 = hn::Add(s4, hn::Load(d, from + 4 * part + i));
    s5 = hn::Add(s5, hn::Load(d, from + 5 * part + i));
    s6 = hn::Add(s6, hn::Load(d, from + 6 * part + i));
    s7 = hn::Add(s7, hn::Load(d, from + 7 * part + i));
  }
  s0 =
      hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  return hn::GetLane(hn::SumOfLanes(d, s0));
}

// x -> x / 2 + 1 in every lane of ten registers: it goes to 2.  They begin apart, as a compiler
// makes one of those that are always equal.
float multiply_add(int64_t count) {
  const Tag d;
  const Vector half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  Vector x0 = hn::Zero(d), x1 = half, x2 = one, x3 = hn::Set(d, 1.5f), x4 = hn::Set(d, 2.5f);
  Vector x5 = hn::Set(d, 3.0f), x6 = hn::Set(d, 3.5f), x7 = hn::Set(d, 4.0f);
  Vector x8 = hn::Set(d, 4.5f), x9 = hn::Set(d, 5.0f);
  for (int64_t i = 0; i < count; i += 10 * int64_t(hn::Lanes(d))) {
    x0 = hn::MulAdd(x0, half, one);
    x1 = hn::MulAdd(x1, half, one);
    x2 = hn::MulAdd(x2, half, one);
    x3 = hn::MulAdd(x3, half, one);
    x4 = hn::MulAdd(x4, half, one);
    x5 = hn::MulAdd(x5, half, one);
    x6 = hn::MulAdd(x6, half, one);
    x7 = hn::MulAdd(x7, half, one);
    x8 = hn::MulAdd(x8, half, one);
    x9 = hn::MulAdd(x9, half, one);
  }
  const Vector sum = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)),
                             hn::Add(hn::Add(hn::Add(x4, x5), hn::Add(x6, x7)), hn::Add(x8, x9)));
  return hn::GetLane(hn::SumOfLanes(d, sum)) / (10 * float(hn::Lanes(d)));
}

HWY_INLINE flex::Num<float> link(flex::Num<float> x) {
  const Tag d;
  const auto moved = hn::MulAdd(x.v, hn::Set(d, 0.5f), hn::Set(d, 0.25f));
  return flex::Num<float>(hn::Abs(flex::sin(flex::Num<float>(moved)).v));
}

void chain(const float* from, float* to, int64_t count) {
  const Tag d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += 4 * lanes) {
    flex::Num<float> x0(hn::Load(d, from + i)), x1(hn::Load(d, from + i + lanes));
    flex::Num<float> x2(hn::Load(d, from + i + 2 * lanes)), x3(hn::Load(d, from + i + 3 * lanes));
    x0 = link(link(x0)), x1 = link(link(x1)), x2 = link(link(x2)), x3 = link(link(x3));
    hn::Store(x0.v, d, to + i);
    hn::Store(x1.v, d, to + i + lanes);
    hn::Store(x2.v, d, to + i + 2 * lanes);
    hn::Store(x3.v, d, to + i + 3 * lanes);
  }
}

void fill(Loops& loops) { loops = {copy, copy_stream, read, multiply_add, chain}; }

}  // namespace HWY_NAMESPACE
}  // namespace bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bench {
namespace {
HWY_EXPORT(fill);

const Loops& loops() {
  static const Loops table = [] {
    Loops filled{};
    HWY_DYNAMIC_DISPATCH(fill)(filled);
    return filled;
  }();
  return table;
}

// A stretch of whole blocks per thread.
void spread(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body) {
  const int64_t blocks = count / kBlock, threads = fornax::flex::thread_count();
  fornax::flex::parallel(threads, 1, [&](int64_t first, int64_t last) {
    body(blocks * first / threads * kBlock, blocks * last / threads * kBlock);
  });
}

// Zeros, at the start of a line of the caches.
struct Memory {
  std::vector<float> held;
  float* data;
  explicit Memory(int64_t count) : held(size_t(count) + 16), data(held.data()) {
    while (reinterpret_cast<uintptr_t>(data) % 64 != 0) data++;
  }
};

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(what) + " is wrong");
}

using Copy = void (*)(const float* from, float* to, int64_t count);

std::function<void()> copying(int64_t count, Copy copy) {
  const auto from = std::make_shared<Memory>(count + kBlock), to = std::make_shared<Memory>(count);
  for (int64_t i = 0; i < count; i++) from->data[i] = float(i % 1021);
  const auto call = [=] {
    spread(count, [&](int64_t begin, int64_t end) {
      copy(from->data + begin, to->data + begin, end - begin);
    });
  };
  call();
  require(std::equal(to->data, to->data + count, from->data), "the copy");
  return call;
}

std::function<void()> reading(int64_t count) {
  const auto from = std::make_shared<Memory>(count);
  std::fill_n(from->data, count, 0.5f);
  const auto call = [=] {
    std::atomic<double> sum = 0;
    spread(count, [&](int64_t begin, int64_t end) {
      sum += double(loops().read(from->data + begin, end - begin));
    });
    require(sum == double(count) / 2, "the sum");
  };
  return call;
}

// Each thread goes over blocks that stay in its own first-level cache.
std::function<void()> chaining(int64_t count) {
  const auto call = [=] {
    spread(count, [](int64_t begin, int64_t end) {
      thread_local Memory from(kBlock), to(kBlock);
      for (int64_t i = begin; i < end; i += kBlock) loops().chain(from.data, to.data, kBlock);
      const double link = std::abs(std::sin(0.25)), expected = std::abs(std::sin(link / 2 + 0.25));
      require(std::abs(double(to.data[kBlock - 1]) - expected) < 1e-6, "the chain");
    });
  };
  return call;
}

std::function<void()> multiplying(int64_t count) {
  return [=] {
    spread(count, [](int64_t begin, int64_t end) {
      require(std::abs(loops().multiply_add(end - begin) - 2) < 1e-6f, "the sequence");
    });
  };
}

}  // namespace

std::function<void()> make_floor(const Work& work) {
  int64_t count = 1;
  for (const int64_t size : work.shape) count *= size;
  if (work.op == "floor_copy") return copying(count, loops().copy);
  if (work.op == "floor_copy_stream") return copying(count, loops().copy_stream);
  if (work.op == "floor_read") return reading(count);
  if (work.op == "floor_chain8_l1") return chaining(count);
  if (work.op == "floor_fma") return multiplying(count);
  return nullptr;
}

}  // namespace bench
#endif  // HWY_ONCE
