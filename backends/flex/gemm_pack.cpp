// The scratch blocks that threads keep.
#include "backends/flex/gemm_pack.h"

#include <new>

#include "base/error.h"
#include "base/sanitizer.h"

namespace fornax::flex {
namespace {

// None is kept from the address sanitizer, which could not see what is touched behind its end.
constexpr size_t kLargestKept = kAddressSanitizer ? 0 : size_t(8) << 20;
constexpr size_t kGranule = kAddressSanitizer ? 1 : size_t(4) << 10;
constexpr std::align_val_t kAlignment{64};

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

struct Blocks {
  static constexpr int kSlots = 4;
  Block slots[kSlots];
  ~Blocks() {
    for (Block& block : slots) operator delete(block.data, kAlignment);
  }
};

Blocks& kept() {
  static thread_local Blocks blocks;
  return blocks;
}

}  // namespace

Workspace::Workspace(size_t bytes) : data_(nullptr), bytes_(bytes) {
  if (bytes == 0) return;
  for (Block& block : kept().slots) {
    if (!block.data || block.bytes < bytes || block.bytes / 8 > bytes + kGranule) continue;
    data_ = block.data;
    bytes_ = block.bytes;
    block = {};
    return;
  }
  bytes_ = (bytes + kGranule - 1) / kGranule * kGranule;
  data_ = operator new(bytes_, kAlignment, std::nothrow);
  if (!data_) {
    fail(ErrorKind::out_of_memory, "flex: no memory for {} bytes of scratch; use smaller batches",
         bytes);
  }
}

Workspace::~Workspace() {
  if (!data_) return;
  if (bytes_ <= kLargestKept) {
    Block* smallest = &kept().slots[0];
    for (Block& block : kept().slots) {
      if (block.bytes < smallest->bytes) smallest = &block;
    }
    if (smallest->bytes < bytes_) {
      Block mine{data_, bytes_};
      std::swap(*smallest, mine);
      data_ = mine.data;
    }
  }
  operator delete(data_, kAlignment);
}

}  // namespace fornax::flex
