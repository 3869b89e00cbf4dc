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

// Of each of `depth` lines, kWidth elements to each of `panels` panels.
template <int kWidth>
void copy_lines_of(const float* from, int64_t along, int64_t panels, int64_t depth, int64_t step,
                   float* to) {
  constexpr int64_t kAhead = 8;
  for (int64_t p = 0; p < depth; p++) {
    const float* line = from + p * along;
    const int64_t ahead = p + kAhead < depth ? kAhead * along : 0;
    float* out = to + p * kWidth;
    for (int64_t i = 0; i < panels; i++, line += kWidth, out += step) {
      __builtin_prefetch(line + ahead);
      std::memcpy(out, line, kWidth * sizeof(float));
    }
  }
}

// The sizes of tiles; others are rare.
void copy_lines(const float* from, int64_t along, int width, int64_t panels, int64_t depth,
                int64_t step, float* to) {
  switch (width) {
    case 6:
      return copy_lines_of<6>(from, along, panels, depth, step, to);
    case 14:
      return copy_lines_of<14>(from, along, panels, depth, step, to);
    case 16:
      return copy_lines_of<16>(from, along, panels, depth, step, to);
    case 32:
      return copy_lines_of<32>(from, along, panels, depth, step, to);
    default:
      for (int64_t p = 0; p < depth; p++) {
        for (int64_t i = 0; i < panels; i++) {
          std::copy_n(from + p * along + i * width, width, to + i * step + p * width);
        }
      }
  }
}

// Four lines as they are in memory, and the same by columns.
struct Square {
  Four line[4];

  Square(const float* from, int64_t across) {
    const Four r0 = load<Four>(from), r1 = load<Four>(from + across);
    const Four r2 = load<Four>(from + 2 * across), r3 = load<Four>(from + 3 * across);
    const Four even = __builtin_shufflevector(r0, r2, 0, 4, 1, 5);  // of the first two columns
    const Four odd = __builtin_shufflevector(r1, r3, 0, 4, 1, 5);
    const Four even_last = __builtin_shufflevector(r0, r2, 2, 6, 3, 7);
    const Four odd_last = __builtin_shufflevector(r1, r3, 2, 6, 3, 7);
    line[0] = __builtin_shufflevector(even, odd, 0, 4, 1, 5);
    line[1] = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
    line[2] = __builtin_shufflevector(even_last, odd_last, 0, 4, 1, 5);
    line[3] = __builtin_shufflevector(even_last, odd_last, 2, 6, 3, 7);
  }
};

// Four columns of six lines, which are six vectors of a panel that is six wide.
void interleave_six(const float* from, int64_t across, float* to) {
  const Square first(from, across);
  const Four r4 = load<Four>(from + 4 * across), r5 = load<Four>(from + 5 * across);
  const Four low = __builtin_shufflevector(r4, r5, 0, 4, 1, 5);
  const Four high = __builtin_shufflevector(r4, r5, 2, 6, 3, 7);
  store(first.line[0], to);
  store(__builtin_shufflevector(low, first.line[1], 0, 1, 4, 5), to + 4);
  store(__builtin_shufflevector(first.line[1], low, 2, 3, 6, 7), to + 8);
  store(first.line[2], to + 12);
  store(__builtin_shufflevector(high, first.line[3], 0, 1, 4, 5), to + 16);
  store(__builtin_shufflevector(first.line[3], high, 2, 3, 6, 7), to + 20);
}

// Four columns of four lines, and of two.
void interleave_four(const float* from, int64_t across, int width, float* to) {
  const Square square(from, across);
  for (int p = 0; p < 4; p++) store(square.line[p], to + p * width);
}
void interleave_two(const float* from, int64_t across, int width, float* to) {
  const Four r0 = load<Four>(from), r1 = load<Four>(from + across);
  store<Two>(__builtin_shufflevector(r0, r1, 0, 4), to);
  store<Two>(__builtin_shufflevector(r0, r1, 1, 5), to + width);
  store<Two>(__builtin_shufflevector(r0, r1, 2, 6), to + 2 * width);
  store<Two>(__builtin_shufflevector(r0, r1, 3, 7), to + 3 * width);
}

// Lines that are read along themselves, as far as they come in pairs; returns how many.
int interleave(const float* from, int64_t across, int width, int valid, int64_t depth, float* to) {
  const int pairs = valid / 2 * 2;
  // A line of the cache of each at a time: they may be in each other's way there.
  for (int64_t begin = 0; begin < depth; begin += 16) {
    const int64_t end = std::min(begin + 16, depth), whole = end - (end - begin) % 4;
    for (int i = 0; i < pairs;) {
      const int some = width == 6 && pairs == 6 ? 6 : pairs - i >= 4 ? 4 : 2;
      const float* lines = from + i * across;
      for (int64_t p = begin; p < whole; p += 4) {
        float* out = to + p * width + i;
        if (some == 6) {
          interleave_six(lines + p, across, out);
        } else if (some == 4) {
          interleave_four(lines + p, across, width, out);
        } else {
          interleave_two(lines + p, across, width, out);
        }
      }
      i += some;
    }
    for (int64_t p = whole; p < end; p++) {
      for (int i = 0; i < pairs; i++) to[p * width + i] = from[i * across + p];
    }
  }
  return pairs;
}

}  // namespace

template <>
void pack_panel(const float* from, int64_t across, int64_t along, int width, int valid,
                int64_t depth, float* to) {
  int i = 0;
  if (across == 1) {
    for (int64_t p = 0; p < depth; p++) std::copy_n(from + p * along, valid, to + p * width);
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

template <>
void pack_panels(const float* from, int64_t across, int64_t along, int width, int64_t count,
                 int64_t depth, int64_t step, float* to) {
  int64_t i = 0;
  if (across == 1) {
    copy_lines(from, along, width, count / width, depth, step, to);
    i = count / width * width;
  }
  for (; i < count; i += width) {
    const int valid = int(std::min<int64_t>(count - i, width));
    pack_panel(from + i * across, across, along, width, valid, depth, to + i / width * step);
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
