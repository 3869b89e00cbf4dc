#include "base/blocks.h"

#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include "base/sanitizer.h"

namespace fornax {
namespace {

constexpr bool kPooled = !kAddressSanitizer && !kThreadSanitizer;  // let those see every block

constexpr size_t kSmallest = 64;
constexpr int kClasses = 6;  // 64 ... 2048 bytes
constexpr int kBatch = 64;   // blocks moved between a thread and the common lists at a time
static_assert((kSmallest << (kClasses - 1)) == kLargestBlock);

struct Free {
  Free* next;
};

int class_of(size_t bytes) {
  return bytes <= kSmallest ? 0 : int(std::bit_width((bytes - 1) / kSmallest));
}
size_t size_of_class(int index) { return kSmallest << index; }

// The common lists hold whole batches, so that a thread which only frees feeds one which only
// takes.
struct Common {
  std::mutex mutex;
  std::array<std::vector<Free*>, kClasses> batches;
};
Common& common() {
  static Common* lists = new Common;  // outlives every thread
  return *lists;
}

struct Local {
  std::array<Free*, kClasses> head{};
  std::array<int, kClasses> count{};
  bool alive = true;
  ~Local() {
    alive = false;
    for (int index = 0; index < kClasses; index++) {
      while (head[size_t(index)]) give(index);
    }
  }

  void refill(int index);
  void give(int index);
};
constinit thread_local Local local;

void Local::refill(int index) {
  Free*& list = head[size_t(index)];
  {
    std::lock_guard lock(common().mutex);
    auto& batches = common().batches[size_t(index)];
    if (!batches.empty()) {
      list = batches.back();
      batches.pop_back();
    }
  }
  if (!list) {
    const size_t bytes = size_of_class(index);
    auto* memory = static_cast<char*>(::operator new(bytes* kBatch, std::align_val_t(64)));
    for (int i = kBatch - 1; i >= 0; i--) {
      auto* block = reinterpret_cast<Free*>(memory + size_t(i) * bytes);
      block->next = list;
      list = block;
    }
  }
  int blocks = 0;
  for (Free* block = list; block; block = block->next) blocks++;
  count[size_t(index)] = blocks;
}

// Moves up to one batch to the common lists.
void Local::give(int index) {
  Free*& list = head[size_t(index)];
  Free* batch = list;
  Free* last = batch;
  int moved = 1;
  while (moved < kBatch && last->next) {
    last = last->next;
    moved++;
  }
  list = last->next;
  last->next = nullptr;
  count[size_t(index)] -= moved;
  std::lock_guard lock(common().mutex);
  common().batches[size_t(index)].push_back(batch);
}

}  // namespace

void* allocate_block(size_t bytes) {
  if (!kPooled || bytes > kLargestBlock) return ::operator new(bytes, std::align_val_t(64));
  const int index = class_of(bytes);
  Free*& list = local.head[size_t(index)];
  if (!list) [[unlikely]]
    local.refill(index);
  local.count[size_t(index)]--;
  void* block = list;
  list = list->next;
  return block;
}

void free_block(void* block, size_t bytes) {
  if (!kPooled || bytes > kLargestBlock) {
    ::operator delete(block, std::align_val_t(64));
    return;
  }
  if (!block) return;
  const int index = class_of(bytes);
  auto* free = static_cast<Free*>(block);
  free->next = local.head[size_t(index)];
  local.head[size_t(index)] = free;
  if (++local.count[size_t(index)] >= 4 * kBatch || !local.alive) [[unlikely]]
    local.give(index);
}

}  // namespace fornax
