// A caching allocator over memory that is dear to get: segments are taken once and cut into blocks.
//
// Small blocks share segments of 2 MiB, middling ones segments of 20 MiB, and anything larger has a
// segment of its own; the best fitting free block is used, and cut where much would be left.  What
// is given back waits for another request of its size, and joins its free neighbours only when
// nothing else would do: work that repeats asks for just the same sizes again, and gets them
// without a search; the lowest address first, so that values that are replaced in turn move between
// two places and no more.  Blocks are multiples of 256 bytes, and aligned to them when segments
// are.
//
// Thread-safety: every function may be called from several threads at once; `take` and `give` are
// called under the pool's lock.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "runtime/runtime.h"

namespace fornax::runtime {

class Pool {
 public:
  using Take = std::function<Address(size_t bytes)>;  // 0: there is no memory left
  using Give = std::function<void(Address memory)>;
  Pool(Take take, Give give);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // 0 when there is no memory left, also after cached segments were given back.
  Address allocate(size_t bytes);
  void release(Address memory) noexcept;
  void trim();  // gives every segment back that nobody uses
  MemoryUse use();

 private:
  struct Block;
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  using FreeBlocks = std::set<Block*, BySize>;
  using RecentBlocks = std::map<size_t, std::vector<Block*>>;  // by size; heaps by address

  FreeBlocks& free_blocks(bool small) { return small ? small_ : large_; }
  static bool lies_higher(const Block* a, const Block* b);
  static bool is_worth_cutting(const Block& block, size_t bytes);
  RecentBlocks& recent_blocks(bool small) { return small ? recent_small_ : recent_large_; }
  Block* find_recent(size_t bytes, bool small);
  void settle_recent();
  void settle(Block* block);
  Block* find(size_t bytes, bool small);
  Block* new_segment(size_t bytes, bool small);
  void cut(Block* block, size_t bytes);
  void join_next(Block* block);
  void give_back_unused();

  Take take_;
  Give give_;
  std::mutex mutex_;  // of what follows
  FreeBlocks small_, large_;
  RecentBlocks recent_small_, recent_large_;  // free, in no set and not joined
  size_t recent_count_ = 0;
  std::unordered_map<Address, std::unique_ptr<Block>> blocks_;  // used and free
  MemoryUse use_;
};

}  // namespace fornax::runtime
