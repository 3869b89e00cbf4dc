// What lets emitted CUDA C++ run on the CPU: its keywords, the functions that the device has built
// in, and the threads of a block as fibers, which change only at barriers.  The compiled file holds
// many programs, each in a namespace of its own; tests/emit/run_test.cpp writes it.
//
// Serves one thread.
#pragma once
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <utility>
#include <vector>

#define __global__
#define __device__ static inline
#define __forceinline__
#define __noinline__
#define __launch_bounds__(...)
#define __shared__
#define __align__(n) __attribute__((aligned(n)))

struct Position {
  unsigned x = 0, y = 0, z = 0;
};
static Position threadIdx, blockIdx, gridDim;

// The threads of a block.
struct Block {
  static constexpr size_t kStack = 64 << 10;
  struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    bool done = false;
  };
  std::vector<Thread> threads;
  ucontext_t scheduler;
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  int arrived[33] = {}, turn[33] = {};  // by warp; at last of the block
  unsigned long long words[1024] = {};  // what lanes show each other
};
static Block* block;

static void run_thread() {
  block->body(block->argument);
  block->threads[threadIdx.x].done = true;
  swapcontext(&block->threads[threadIdx.x].context, &block->scheduler);
}
static void wait_for(int group, int threads) {
  const int turn = block->turn[group];
  const unsigned self = threadIdx.x;
  if (++block->arrived[group] == threads) {
    block->arrived[group] = 0;
    block->turn[group]++;
  }
  while (block->turn[group] == turn) {
    swapcontext(&block->threads[self].context, &block->scheduler);
  }
}
static void __syncthreads() { wait_for(32, int(block->threads.size())); }
static void __threadfence() {}
static void __syncwarp() {
  const int warp = int(threadIdx.x / 32), left = int(block->threads.size()) - warp * 32;
  wait_for(warp, left < 32 ? left : 32);
}

template <class F>
static void run_block(int threads, F body) {
  Block own;
  block = &own;
  own.body = [](void* f) { (*static_cast<F*>(f))(); };
  own.argument = &body;
  own.threads.resize(size_t(threads));
  for (auto& thread : own.threads) {
    thread.stack.resize(Block::kStack);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    makecontext(&thread.context, run_thread, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (size_t i = 0; i < own.threads.size(); i++) {
      if (own.threads[i].done) continue;
      left = true;
      threadIdx.x = unsigned(i);
      swapcontext(&own.scheduler, &own.threads[i].context);
    }
  }
}

template <class T>
static T from_word(unsigned long long word) {
  T value;
  memcpy(&value, &word, sizeof value);
  return value;
}
template <class... Parameters, size_t... kNumbers>
static void launch(void (*kernel)(Parameters...), int threads, unsigned blocks,
                   const unsigned long long* words, std::index_sequence<kNumbers...>) {
  gridDim = {blocks, 1, 1};
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    run_block(threads, [&] { kernel(from_word<Parameters>(words[kNumbers])...); });
  }
}
template <class... Parameters>
static void launch(void (*kernel)(Parameters...), int threads, unsigned blocks,
                   const unsigned long long* words) {
  launch(kernel, threads, blocks, words, std::index_sequence_for<Parameters...>());
}

// Lanes of a warp.
template <class T>
static T __shfl_sync(unsigned, T value, int lane) {
  memcpy(&block->words[threadIdx.x], &value, sizeof value);
  __syncwarp();
  const T result = from_word<T>(block->words[threadIdx.x / 32 * 32 + unsigned(lane & 31)]);
  __syncwarp();
  return result;
}
template <class T>
static T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return __shfl_sync(mask, value, int(threadIdx.x % 32) ^ lanes);
}
static unsigned __ballot_sync(unsigned mask, bool holds) {
  unsigned votes = 0;
  for (int lane = 0; lane < 32; lane++)
    votes |= unsigned(__shfl_sync(mask, int(holds), lane)) << lane;
  return votes;
}

// Atomics: fibers do not interrupt each other.
template <class T>
static T atomicExch(T* at, T value) {
  return std::exchange(*at, value);
}
template <class T>
static T atomicCAS(T* at, T expected, T desired) {
  const T old = *at;
  if (old == expected) *at = desired;
  return old;
}
template <class T>
static T atomicAdd(T* at, T value) {
  return std::exchange(*at, T(*at + value));
}
static int atomicAdd(int* at, int value) {
  return std::exchange(*at, int(unsigned(*at) + unsigned(value)));
}
template <class T>
static T atomicMin(T* at, T value) {
  return std::exchange(*at, value < *at ? value : *at);
}
template <class T>
static T atomicMax(T* at, T value) {
  return std::exchange(*at, *at < value ? value : *at);
}
template <class T>
static T atomicOr(T* at, T value) {
  return std::exchange(*at, *at | value);
}

// Bits.
template <class To, class From>
static To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static int __float_as_int(float x) { return same_bits<int>(x); }
static unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static float __int_as_float(int x) { return same_bits<float>(x); }
static float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static long long __double_as_longlong(double x) { return same_bits<long long>(x); }
static double __longlong_as_double(long long x) { return same_bits<double>(x); }

// Whole numbers.
template <class T>
static T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
static T max(T a, T b) {
  return a < b ? b : a;
}
static int __mulhi(int a, int b) { return int((long long)(a)*b >> 32); }
static unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((unsigned long long)(a)*b >> 32);
}
static long long __mul64hi(long long a, long long b) { return (long long)(__int128(a) * b >> 64); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)(a)*b >> 64);
}

// Conversions toward 0, saturating as PTX has them: NaN gives 0, but of or to 64 bits the least
// signed number or the unsigned one with the same bits.
template <class To, class From>
static To saturated(From x) {
  constexpr bool kSigned = To(-1) < To(0);
  constexpr int kBits = int(sizeof(To)) * 8;
  const From limit = From(ldexp(1.0, kBits - (kSigned ? 1 : 0)));
  const To most = To(kSigned ? ~(1ull << (kBits - 1)) : ~0ull), least = To(~most);
  if (x != x) return sizeof(To) == 8 || sizeof(From) == 8 ? To(1ull << (kBits - 1)) : To(0);
  if (x >= limit) return most;
  if (kSigned ? x < -limit : x <= 0) return kSigned ? least : To(0);
  return To(x);
}
static int __float2int_rz(float x) { return saturated<int>(x); }
static int __float2int_rn(float x) { return saturated<int>(nearbyintf(x)); }
static unsigned __float2uint_rz(float x) { return saturated<unsigned>(x); }
static long long __float2ll_rz(float x) { return saturated<long long>(x); }
static unsigned long long __float2ull_rz(float x) { return saturated<unsigned long long>(x); }
static int __double2int_rz(double x) { return saturated<int>(x); }
static unsigned __double2uint_rz(double x) { return saturated<unsigned>(x); }
static long long __double2ll_rz(double x) { return saturated<long long>(x); }
static unsigned long long __double2ull_rz(double x) { return saturated<unsigned long long>(x); }

// A long double holds every number that comes here.
static float toward_zero(long double x) {
  const float nearest = float(x);
  return fabsl((long double)(nearest)) > fabsl(x) ? nextafterf(nearest, 0) : nearest;
}
static float __int2float_rz(int x) { return toward_zero(x); }
static float __uint2float_rz(unsigned x) { return toward_zero(x); }
static float __ll2float_rz(long long x) { return toward_zero(x); }
static float __ull2float_rz(unsigned long long x) { return toward_zero(x); }
static float __double2float_rz(double x) { return toward_zero(x); }

// Floats.  Of two zeros the device takes the negative one for less.
static float rsqrtf(float x) { return float(1 / sqrt(double(x))); }
static double rsqrt(double x) { return 1 / sqrt(x); }
template <class T>
static T extreme(T a, T b, bool greater) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return signbit(a) == greater ? b : a;
  return (a < b) == greater ? b : a;
}
#define fminf(a, b) extreme<float>(a, b, false)
#define fmaxf(a, b) extreme<float>(a, b, true)
#define fmin(a, b) extreme<double>(a, b, false)
#define fmax(a, b) extreme<double>(a, b, true)

// In place of the helpers that are instructions of the device.
static float f16_to_f32(unsigned short x) {
  const int exponent = x >> 10 & 31, mantissa = x & 1023;
  float size =
      exponent ? ldexpf(float(mantissa + 1024), exponent - 25) : ldexpf(float(mantissa), -24);
  if (exponent == 31) size = mantissa ? NAN : INFINITY;
  return x >> 15 ? -size : size;
}
static unsigned short f32_to_f16(float x) {
  const unsigned short sign = signbit(x) ? 0x8000 : 0;
  const float size = fabsf(x);
  if (x != x) return 0x7fff;
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = size < 0x1p-14f ? -14 : ilogbf(size);
  const int steps = int(nearbyintf(ldexpf(size, 10 - exponent)));
  return (unsigned short)(sign | (((exponent + 14) << 10) + steps));
}
static float exp2_near(float x) { return exp2f(x); }
static float reciprocal_near(float x) { return 1 / x; }
static float minimum_f32(float a, float b) {
  if (a != a || b != b) return a != a ? a : b;
  return a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;
}
static float maximum_f32(float a, float b) {
  if (a != a || b != b) return a != a ? a : b;
  return a == b ? (__builtin_signbit(a) ? b : a) : a > b ? a : b;
}
static unsigned short f32_to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
