#include "runtime/pool.h"

#include <algorithm>
#include <tuple>

namespace fornax::runtime {
namespace {

constexpr size_t kUnit = 256;
constexpr size_t kSmall = 1 << 20;  // the largest block of a small segment
constexpr size_t kSmallSegment = 2 << 20;
constexpr size_t kMiddling = 10 << 20;  // the largest block of a shared large segment
constexpr size_t kMiddlingSegment = 20 << 20;
constexpr size_t kLargeUnit = 2 << 20;  // of a segment for one block
constexpr size_t kMostRecent = 4096;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

// Blocks of a segment are a list in the order of their addresses.
struct Pool::Block {
  Address address;
  size_t bytes;
  bool small;
  bool used = false;
  bool recent = false;  // free, and among the recent ones
  Block* previous = nullptr;
  Block* next = nullptr;
};

bool Pool::lies_higher(const Block* a, const Block* b) { return a->address > b->address; }

bool Pool::is_worth_cutting(const Block& block, size_t bytes) {
  return block.bytes - bytes >= (block.small ? kUnit : kSmall);
}

bool Pool::BySize::operator()(const Block* a, const Block* b) const {
  return std::tie(a->bytes, a->address) < std::tie(b->bytes, b->address);
}

Pool::Pool(Take take, Give give) : take_(std::move(take)), give_(std::move(give)) {}

Pool::~Pool() {
  for (const auto& [address, block] : blocks_) {
    if (!block->previous) give_(address);
  }
}

Address Pool::allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return 0;
  bytes = round_up(std::max<size_t>(bytes, 1), kUnit);
  const bool small = bytes <= kSmall;
  const std::lock_guard lock(mutex_);
  Block* block = find_recent(bytes, small);
  if (!block) {
    block = find(bytes, small);
    if (!block) {
      settle_recent();
      block = find(bytes, small);
    }
    if (!block) block = new_segment(bytes, small);
    if (!block) return 0;
    free_blocks(small).erase(block);
    cut(block, bytes);
  }
  block->used = true;
  use_.in_use += block->bytes;
  use_.peak = std::max(use_.peak, use_.in_use);
  return block->address;
}

// A block that would not be cut.
Pool::Block* Pool::find_recent(size_t bytes, bool small) {
  RecentBlocks& recent = recent_blocks(small);
  auto found = recent.lower_bound(bytes);
  while (found != recent.end() && found->second.empty()) ++found;
  if (found == recent.end() || is_worth_cutting(*found->second.back(), bytes)) return nullptr;
  std::pop_heap(found->second.begin(), found->second.end(), lies_higher);
  Block* block = found->second.back();
  found->second.pop_back();
  recent_count_--;
  block->recent = false;
  return block;
}

void Pool::settle_recent() {
  for (RecentBlocks* recent : {&recent_small_, &recent_large_}) {
    for (const auto& [bytes, blocks] : *recent) {
      for (Block* block : blocks) settle(block);
    }
    recent->clear();
  }
  recent_count_ = 0;
}

// The smallest block that is large enough.
Pool::Block* Pool::find(size_t bytes, bool small) {
  Block wanted{.address = 0, .bytes = bytes, .small = small};
  const auto found = free_blocks(small).lower_bound(&wanted);
  return found == free_blocks(small).end() ? nullptr : *found;
}

// A free block that is a whole segment; nullptr when there is no memory left.
Pool::Block* Pool::new_segment(size_t bytes, bool small) {
  size_t segment = small                ? kSmallSegment
                   : bytes <= kMiddling ? kMiddlingSegment
                                        : round_up(bytes, kLargeUnit);
  Address address = take_(segment);
  if (!address) {
    give_back_unused();
    address = take_(segment);
  }
  if (!address) {
    segment = bytes;  // better no room for others than none for this one
    address = take_(segment);
  }
  if (!address) return nullptr;
  auto block = std::make_unique<Block>(Block{.address = address, .bytes = segment, .small = small});
  use_.reserved += segment;
  free_blocks(small).insert(block.get());
  return (blocks_[address] = std::move(block)).get();
}

// Leaves `bytes` of a block that is in no set, and the rest as a free block where it is worth it.
void Pool::cut(Block* block, size_t bytes) {
  if (!is_worth_cutting(*block, bytes)) return;
  const size_t rest = block->bytes - bytes;
  auto second = std::make_unique<Block>(
      Block{.address = block->address + bytes, .bytes = rest, .small = block->small});
  second->previous = block;
  second->next = block->next;
  if (block->next) block->next->previous = second.get();
  block->next = second.get();
  block->bytes = bytes;
  free_blocks(block->small).insert(second.get());
  blocks_[second->address] = std::move(second);
}

void Pool::release(Address memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end() || !found->second->used) return;
  Block* block = found->second.get();
  block->used = false;
  use_.in_use -= block->bytes;
  block->recent = true;
  std::vector<Block*>& alike = recent_blocks(block->small)[block->bytes];
  alike.push_back(block);
  std::push_heap(alike.begin(), alike.end(), lies_higher);
  if (++recent_count_ > kMostRecent) settle_recent();
}

// Joins a free block with its free neighbours.
void Pool::settle(Block* block) {
  const auto is_free = [](const Block* other) { return other && !other->used && !other->recent; };
  block->recent = false;
  if (is_free(block->next)) {
    free_blocks(block->small).erase(block->next);
    join_next(block);
  }
  if (is_free(block->previous)) {
    block = block->previous;
    free_blocks(block->small).erase(block);
    join_next(block);
  }
  free_blocks(block->small).insert(block);
}

// Takes the next block, which is in no set, in.
void Pool::join_next(Block* block) {
  Block* gone = block->next;
  block->bytes += gone->bytes;
  block->next = gone->next;
  if (gone->next) gone->next->previous = block;
  blocks_.erase(gone->address);
}

void Pool::give_back_unused() {
  for (FreeBlocks* blocks : {&small_, &large_}) {
    for (auto it = blocks->begin(); it != blocks->end();) {
      Block* block = *it;
      if (block->previous || block->next) {
        ++it;
        continue;
      }
      it = blocks->erase(it);
      use_.reserved -= block->bytes;
      give_(block->address);
      blocks_.erase(block->address);
    }
  }
}

void Pool::trim() {
  const std::lock_guard lock(mutex_);
  settle_recent();
  give_back_unused();
}

MemoryUse Pool::use() {
  const std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace fornax::runtime
