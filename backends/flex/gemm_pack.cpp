// The scratch blocks that threads keep, and packing floats.
#include "backends/flex/gemm_pack.h"

#include <cstring>
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

// Vectors that every processor has: of four floats, and of two.
typedef float Four __attribute__((vector_size(16)));
typedef float Two __attribute__((vector_size(8)));

template <class Vector>
Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}
template <class Vector>
void store(Vector vector, float* to) {
  std::memcpy(to, &vector, sizeof(vector));
}

template <int kCount>
void copy_lines_of(const float* from, int64_t along, int64_t width, int64_t depth, float* to) {
  for (int64_t p = 0; p < depth; p++) {
    std::memcpy(to + p * width, from + p * along, kCount * sizeof(float));
  }
}

// The sizes of tiles; others are rare.
void copy_lines(const float* from, int64_t along, int count, int64_t width, int64_t depth,
                float* to) {
  switch (count) {
    case 5:
      return copy_lines_of<5>(from, along, width, depth, to);
    case 6:
      return copy_lines_of<6>(from, along, width, depth, to);
    case 14:
      return copy_lines_of<14>(from, along, width, depth, to);
    case 16:
      return copy_lines_of<16>(from, along, width, depth, to);
    case 32:
      return copy_lines_of<32>(from, along, width, depth, to);
    default:
      for (int64_t p = 0; p < depth; p++) {
        std::copy_n(from + p * along, count, to + p * width);
      }
  }
}

// to[p * width + i] = from[i * across + p] for four i, and p up to a multiple of four.
void interleave_four(const float* from, int64_t across, int width, int64_t depth, float* to) {
  for (int64_t p = 0; p + 4 <= depth; p += 4) {
    const Four r0 = load<Four>(from + p), r1 = load<Four>(from + across + p);
    const Four r2 = load<Four>(from + 2 * across + p), r3 = load<Four>(from + 3 * across + p);
    const Four even = __builtin_shufflevector(r0, r2, 0, 4, 1, 5);  // of p and p + 1
    const Four odd = __builtin_shufflevector(r1, r3, 0, 4, 1, 5);
    const Four even_high = __builtin_shufflevector(r0, r2, 2, 6, 3, 7);
    const Four odd_high = __builtin_shufflevector(r1, r3, 2, 6, 3, 7);
    float* out = to + p * width;
    store(__builtin_shufflevector(even, odd, 0, 4, 1, 5), out);
    store(__builtin_shufflevector(even, odd, 2, 6, 3, 7), out + width);
    store(__builtin_shufflevector(even_high, odd_high, 0, 4, 1, 5), out + 2 * width);
    store(__builtin_shufflevector(even_high, odd_high, 2, 6, 3, 7), out + 3 * width);
  }
}

// Likewise of two i.
void interleave_two(const float* from, int64_t across, int width, int64_t depth, float* to) {
  for (int64_t p = 0; p + 4 <= depth; p += 4) {
    const Four r0 = load<Four>(from + p), r1 = load<Four>(from + across + p);
    float* out = to + p * width;
    store<Two>(__builtin_shufflevector(r0, r1, 0, 4), out);
    store<Two>(__builtin_shufflevector(r0, r1, 1, 5), out + width);
    store<Two>(__builtin_shufflevector(r0, r1, 2, 6), out + 2 * width);
    store<Two>(__builtin_shufflevector(r0, r1, 3, 7), out + 3 * width);
  }
}

// Lines that are read along themselves, as far as they come in pairs; returns how many.
int interleave(const float* from, int64_t across, int width, int valid, int64_t depth, float* to) {
  int i = 0;
  for (; i + 4 <= valid; i += 4) interleave_four(from + i * across, across, width, depth, to + i);
  for (; i + 2 <= valid; i += 2) interleave_two(from + i * across, across, width, depth, to + i);
  for (int64_t p = depth / 4 * 4; p < depth; p++) {
    for (int k = 0; k < i; k++) to[p * width + k] = from[k * across + p];
  }
  return i;
}

}  // namespace

template <>
void pack_panel(const float* from, int64_t across, int64_t along, int width, int valid,
                int64_t depth, float* to) {
  int i = 0;
  if (across == 1) {
    copy_lines(from, along, valid, width, depth, to);
    i = valid;
  }
  if (i == 0 && along == 1) i = interleave(from, across, width, valid, depth, to);
  for (; i < valid; i++) {
    const float* line = from + i * across;
    for (int64_t p = 0; p < depth; p++) to[p * width + i] = line[p * along];
  }
  for (; i < width; i++) {
    for (int64_t p = 0; p < depth; p++) to[p * width + i] = 0;
  }
}

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
