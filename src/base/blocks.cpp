#include "base/blocks.h"

#include <array>
#include <mutex>
#include <new>
#include <vector>

namespace fornax {

constinit thread_local FreeBlocks free_blocks[kLargestBlock / kBlockStep + 1];

namespace {

constexpr size_t kSizes = kLargestBlock / kBlockStep + 1;
constexpr int kBatch = 64;         // blocks moved between a thread and the common lists at a time
constexpr int kRoom = 4 * kBatch;  // blocks of one size that a thread keeps

// 0 bytes are a block, too.
size_t size_of_block(size_t bytes) { return (bytes + kBlockStep - 1) / kBlockStep; }
size_t bytes_of(size_t size) { return size == 0 ? kBlockStep : size * kBlockStep; }

struct Free {
  Free* next;
};

// The common lists hold whole batches, so that a thread which only frees feeds one which only
// takes.
struct Common {
  std::mutex mutex;
  std::array<std::vector<Free*>, kSizes> batches;
};
Common& common() {
  static Common* lists = new Common;  // outlives every thread
  return *lists;
}

void put(size_t size, Free* batch) {
  std::lock_guard lock(common().mutex);
  common().batches[size].push_back(batch);
}

Free* take(size_t size) {
  std::lock_guard lock(common().mutex);
  auto& batches = common().batches[size];
  if (batches.empty()) return nullptr;
  Free* batch = batches.back();
  batches.pop_back();
  return batch;
}

Free* make(size_t size) {
  const size_t bytes = bytes_of(size);
  auto* memory = static_cast<char*>(::operator new(bytes* kBatch, std::align_val_t(kBlockStep)));
  Free* first = nullptr;
  for (int i = kBatch - 1; i >= 0; i--) first = new (memory + size_t(i) * bytes) Free{first};
  return first;
}

// Moves up to one batch to the common lists.
void give(size_t size) {
  FreeBlocks& list = free_blocks[size];
  auto* batch = static_cast<Free*>(list.first);
  Free* last = batch;
  int moved = 1;
  for (; moved < kBatch && last->next; moved++) last = last->next;
  list.first = last->next;
  list.room += moved;
  last->next = nullptr;
  put(size, batch);
}

// Exists while the thread may keep blocks.
struct Keeper {
  bool alive = true;
  Keeper() {
    for (FreeBlocks& list : free_blocks) list.room = kRoom;
  }
  ~Keeper() {
    alive = false;
    for (size_t size = 0; size < kSizes; size++) {
      while (free_blocks[size].first) give(size);
      free_blocks[size].room = 0;
    }
  }
};
thread_local Keeper keeper;

}  // namespace

void* allocate_block_slowly(size_t bytes) {
  if (!kPooledBlocks || bytes > kLargestBlock) {
    return ::operator new(bytes, std::align_val_t(kBlockStep));
  }
  const size_t size = size_of_block(bytes);
  if (!keeper.alive) return ::operator new(bytes_of(size), std::align_val_t(kBlockStep));
  Free* batch = take(size);
  if (!batch) batch = make(size);
  FreeBlocks& list = free_blocks[size];
  list.first = batch->next;
  for (const Free* block = batch->next; block; block = block->next) list.room--;
  return batch;
}

void free_block_slowly(void* block, size_t bytes) {
  if (!kPooledBlocks || bytes > kLargestBlock) {
    ::operator delete(block, std::align_val_t(kBlockStep));
    return;
  }
  const size_t size = size_of_block(bytes);
  if (!keeper.alive) return put(size, new (block) Free{nullptr});
  if (free_blocks[size].room <= 0) give(size);
  free_block(block, bytes);
}

}  // namespace fornax
