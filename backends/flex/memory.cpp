#include "backends/flex/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "base/blocks.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/sanitizer.h"
#include "base/settings.h"

namespace fornax::flex {
namespace {

constexpr size_t kHeader = 64;                 // a Buffer, padded so that data is aligned
constexpr size_t kHuge = size_t(2) << 20;      // from here on in huge pages
constexpr size_t kMapped = size_t(128) << 10;  // from here on straight from the system
static_assert(sizeof(Buffer) <= kHeader);

// Outlives every buffer, also those in static objects.
struct Store {
  std::mutex mutex;
  std::unordered_map<size_t, std::vector<void*>> free;  // by size class
  std::atomic<size_t> in_use{0}, reserved{0}, peak{0};
};
Store& store() {
  static Store* made = new Store;
  return *made;
}

// Bytes that may be taken from the system.
size_t memory_limit() {
  static const size_t bytes = settings().memory_limit > 0
                                  ? std::min(size_t(settings().memory_limit), granted_memory())
                                  : granted_memory();
  return bytes;
}

void count_use(size_t bytes) {
  Store& s = store();
  const size_t now = s.in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  size_t peak = s.peak.load(std::memory_order_relaxed);
  while (now > peak && !s.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}
void count_release(size_t bytes) { store().in_use.fetch_sub(bytes, std::memory_order_relaxed); }

// Small buffers come and go by the million: each thread counts its own without a locked
// instruction, and passes on what has become much.  A thread that frees what another has made
// counts below 0; the sum is right.
struct SmallCount {
  std::atomic<int64_t> bytes{0};
  SmallCount();
  ~SmallCount();
};
struct SmallCounts {
  std::mutex mutex;
  std::vector<const SmallCount*> living;
  int64_t ended = 0;  // of threads that are gone
};
SmallCounts& small_counts() {
  static auto* counts = new SmallCounts;
  return *counts;
}
// The thread's count; none before its first buffer and after its end.  Without a destructor, so
// that access takes no initialisation.
constinit thread_local SmallCount* small_count = nullptr;
SmallCount::SmallCount() {
  std::lock_guard lock(small_counts().mutex);
  small_counts().living.push_back(this);
  small_count = this;
}
SmallCount::~SmallCount() {
  std::lock_guard lock(small_counts().mutex);
  std::erase(small_counts().living, this);
  small_counts().ended += bytes.load(std::memory_order_relaxed);
  small_count = nullptr;
}

void count_in_store(int64_t bytes) {
  bytes > 0 ? count_use(size_t(bytes)) : count_release(size_t(-bytes));
}
// Where the thread has no count, or much in it.
[[gnu::noinline]] void count_small_slowly(int64_t more) {
  thread_local bool started = false;
  if (!small_count && !started) {
    started = true;
    thread_local SmallCount made;
    made.bytes.store(more, std::memory_order_relaxed);
    return;
  }
  if (small_count) more += small_count->bytes.exchange(0, std::memory_order_relaxed);
  count_in_store(more);
}
void count_small(int64_t more) {
  constexpr int64_t kMuch = 64 << 10;
  if (small_count) [[likely]] {
    const int64_t sum = small_count->bytes.load(std::memory_order_relaxed) + more;
    if (sum < kMuch && sum > -kMuch) [[likely]] {
      small_count->bytes.store(sum, std::memory_order_relaxed);
      return;
    }
  }
  count_small_slowly(more);
}

// What threads have not passed on; may be below 0.
int64_t small_bytes() {
  std::lock_guard lock(small_counts().mutex);
  int64_t sum = small_counts().ended;
  for (const SmallCount* count : small_counts().living) {
    sum += count->bytes.load(std::memory_order_relaxed);
  }
  return sum;
}

// Memory aligned to 2 MiB: more is mapped, and both ends given back.
void* map_huge(size_t bytes) {
  char* mapped = static_cast<char*>(
      mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (mapped == MAP_FAILED) return nullptr;
  const size_t before = (kHuge - reinterpret_cast<uintptr_t>(mapped) % kHuge) % kHuge;
  if (before > 0) munmap(mapped, before);
  if (before < kHuge) munmap(mapped + before + bytes, kHuge - before);
  madvise(mapped + before, bytes, MADV_HUGEPAGE);
  return mapped + before;
}

void* take_from_system(size_t bytes) {
  void* block = nullptr;
  if (bytes >= kHuge) {
    block = map_huge(bytes);
  } else if (bytes >= kMapped) {
    block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) block = nullptr;
  } else {
    block = ::operator new(bytes, std::align_val_t(64), std::nothrow);
  }
  if (block) store().reserved.fetch_add(bytes, std::memory_order_relaxed);
  return block;
}

void give_to_system(void* block, size_t bytes) {
  allow_bytes(block, bytes);
  if (bytes >= kMapped) {
    munmap(block, bytes);
  } else {
    ::operator delete(block, std::align_val_t(64));
  }
  store().reserved.fetch_sub(bytes, std::memory_order_relaxed);
}

[[noreturn]] void out_of_memory(size_t bytes) {
  fail(ErrorKind::out_of_memory,
       "cpu: no memory for {} bytes; {} are in use and the limit is {}; free tensors, use smaller "
       "batches or raise memory_limit",
       bytes, memory_use().in_use, memory_limit());
}

void* take_block(size_t bytes) {
  Store& s = store();
  {
    std::lock_guard lock(s.mutex);
    auto& blocks = s.free[bytes];
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      return block;
    }
  }
  const auto fits = [&] {
    return s.reserved.load(std::memory_order_relaxed) + bytes <= memory_limit();
  };
  // What is kept of other sizes goes before a limit is met.
  if (!fits()) trim_memory();
  if (!fits()) return nullptr;
  void* block = take_from_system(bytes);
  if (block) return block;
  trim_memory();
  return take_from_system(bytes);
}

void release_small(Buffer* buffer) {
  const size_t bytes = buffer->bytes + kHeader;
  count_small(-int64_t(buffer->bytes));
  buffer->~Buffer();
  free_block(buffer, bytes);
}

void release_large(Buffer* buffer) {
  Store& s = store();
  const size_t usable = size_class(buffer->bytes);
  count_release(buffer->bytes);
  forbid_bytes(buffer->data, usable);
  {
    std::lock_guard lock(s.mutex);
    s.free[usable].push_back(buffer->data);
  }
  buffer->~Buffer();
  free_block(buffer, kHeader);
}

}  // namespace

size_t size_class(size_t bytes) {
  const size_t least = bytes < 64 ? 64 : bytes;
  const size_t octave = std::bit_floor(least);
  size_t step = octave / 8 < 64 ? 64 : octave / 8;
  if (least >= kMapped && step < 4096) step = 4096;
  return (least + step - 1) / step * step;
}

Ref<Buffer> allocate_buffer(int device, size_t bytes) {
  if (bytes + kHeader <= kLargestBlock) {
    auto* block = static_cast<char*>(allocate_block(kHeader + bytes));
    auto* buffer = new (block) Buffer;
    buffer->device = device;
    buffer->data = block + kHeader;
    buffer->bytes = bytes;
    buffer->release = release_small;
    count_small(int64_t(bytes));
    return Ref<Buffer>::adopt(buffer);
  }
  if (bytes > memory_limit()) out_of_memory(bytes);
  const size_t usable = size_class(bytes);
  void* data = take_block(usable);
  if (!data) out_of_memory(bytes);
  forbid_bytes(data, usable);
  allow_bytes(data, bytes);
  auto* buffer = new (allocate_block(kHeader)) Buffer;
  buffer->device = device;
  buffer->data = data;
  buffer->bytes = bytes;
  buffer->release = release_large;
  count_use(bytes);
  return Ref<Buffer>::adopt(buffer);
}

MemoryUse memory_use() {
  const Store& s = store();
  const size_t in_use = s.in_use.load(std::memory_order_relaxed) + size_t(small_bytes());
  // Small blocks are not in `reserved`: they belong to base/blocks.h.
  return {in_use, std::max(in_use, s.reserved.load(std::memory_order_relaxed)),
          std::max(in_use, s.peak.load(std::memory_order_relaxed))};
}

void trim_memory() {
  Store& s = store();
  std::lock_guard lock(s.mutex);
  for (auto& [bytes, blocks] : s.free) {
    for (void* block : blocks) give_to_system(block, bytes);
    blocks.clear();
  }
}

}  // namespace fornax::flex
