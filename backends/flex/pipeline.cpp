#include "backends/flex/pipeline.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/flex/folder.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kStreamBytes = int64_t(2) << 20;  // per thread; from here on caches do not help
constexpr int64_t kUnbounded = int64_t(1) << 62;

size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Stores stores_of(int64_t bytes) {
  return bytes < kStreamBytes * thread_count() ? Stores::cached : Stores::streamed;
}

size_t Pipeline::pad_bytes() { return size_t(block_elements()) * 8; }
size_t Pipeline::tile_bytes() { return size_t(kTile + block_elements()) * 8; }

size_t Pipeline::bytes(const Code& code) {
  return rounded(code.places.size() * sizeof(Operand)) +
         code.constants.size() * size_t(kMaxVectorBytes) +
         size_t(code.slots) * size_t(kMaxVectorBytes) * 8 + code.places.size() * pad_bytes() +
         size_t(code.tiles) * tile_bytes();
}

Pipeline::Pipeline(const Code& code, char* memory) : code_(code) {
  const size_t slot_bytes = size_t(kMaxVectorBytes) * 8, count = code.places.size();
  operands_ = reinterpret_cast<Operand*>(memory);
  constants_ = memory + rounded(count * sizeof(Operand));
  slots_ = constants_ + code.constants.size() * size_t(kMaxVectorBytes);
  pads_ = slots_ + size_t(code.slots) * slot_bytes;
  tiles_ = pads_ + count * pad_bytes();
  // What lies behind the last elements of a stretch is computed with too.
  std::memset(pads_, 0, count * pad_bytes());
  for (size_t i = 0; i < count; i++) {
    const Place& place = code.places[i];
    const int64_t step = vector_bytes(size_of(place.dtype) == 8);
    const size_t index = size_t(place.index);
    Operand operand{nullptr, int64_t(size_of(place.dtype)), step};
    if (place.kind == Place::Kind::constant) operand = {constants_ + index * kMaxVectorBytes, 0, 0};
    if (place.kind == Place::Kind::slot) operand = {slots_ + index * slot_bytes, 0, step};
    new (operands_ + i) Operand(operand);
  }
  set_constant(-1, DType::bool_, Word{1});
}

void Pipeline::set_constant(int input, DType dtype, Word number) {
  for (size_t i = 0; i < code_.constants.size(); i++) {
    const Constant& constant = code_.constants[i];
    if (constant.input != input) continue;
    fill_lanes(constants_ + i * kMaxVectorBytes, constant.wide, dtype, number);
  }
}

void Pipeline::set_constant(int input, DType dtype, const char* element) {
  if (dtype != DType::f32) return set_constant(input, dtype, load(dtype, element, 0));
  float number;
  std::memcpy(&number, element, sizeof(number));
  for (size_t i = 0; i < code_.constants.size(); i++) {
    const Constant& constant = code_.constants[i];
    if (constant.input != input) continue;
    char* vector = constants_ + i * kMaxVectorBytes;
    if (constant.wide) {
      fill_lanes(vector, true, dtype, word_of(double(number)));
    } else {
      fill_lanes(vector, number);
    }
  }
}

bool Pipeline::may_point(const Code& code, int input) {
  return std::none_of(code.constants.begin(), code.constants.end(), [&](const Constant& constant) {
    return constant.input == input && constant.wide;
  });
}

std::vector<Operand*> Pipeline::operands_of_constant(int input) const {
  std::vector<Operand*> operands;
  for (size_t i = 0; i < code_.places.size(); i++) {
    const Place& place = code_.places[i];
    if (place.kind != Place::Kind::constant) continue;
    if (code_.constants[size_t(place.index)].input == input) operands.push_back(operands_ + i);
  }
  return operands;
}

// Elements begin + done ... of a stretch whose first `done` are computed; count is whole blocks.
void Pipeline::blocks(const char* const* inputs, char* const* outputs, int64_t begin, int64_t done,
                      int64_t count, Stores stores) {
  bool aligned = stores == Stores::streamed;
  for (const uint32_t i : code_.moving) {
    const auto [kind, index, dtype] = code_.places[i];
    Operand& operand = operands_[i];
    const int64_t offset = (begin + done) * operand.advance;
    if (kind == Place::Kind::input) {
      operand.base = const_cast<char*>(inputs[index]) + offset;
    } else if (kind == Place::Kind::tile) {
      operand.base = tile(index) + done * operand.advance;
    } else {
      operand.base = outputs[index] + (kind == Place::Kind::vector ? 0 : offset);
      if (kind == Place::Kind::output) {
        aligned &= reinterpret_cast<uintptr_t>(operand.base) % kMaxVectorBytes == 0;
      }
    }
  }
  for (const Segment& segment : code_.segments) {
    run_program((aligned ? segment.streamed : segment.cached).data(), operands_, count);
  }
}

// The last elements of a stretch, fewer than a block: a block in padded memory.
void Pipeline::rest(const char* const* inputs, char* const* outputs, int64_t begin, int64_t done,
                    int64_t count) {
  const auto each = [&](Place::Kind kind, auto body) {
    for (const uint32_t i : code_.moving) {
      const Place& place = code_.places[i];
      if (place.kind == kind) body(i, place.index, size_of(place.dtype));
    }
  };
  const auto to_pad = [&](size_t i, const char* from, size_t size) {
    operands_[i].base = pad(i);
    std::memcpy(pad(i), from + size_t(begin + done) * size, size_t(count) * size);
  };
  const auto from_pad = [&](size_t i, int index, size_t size) {
    std::memcpy(outputs[index] + size_t(begin + done) * size, pad(i), size_t(count) * size);
  };
  for (const Place::Kind kind : {Place::Kind::output, Place::Kind::vector}) {
    each(kind, [&](size_t i, int, size_t) { operands_[i].base = pad(i); });
  }
  each(Place::Kind::tile, [&](size_t i, int index, size_t size) {
    operands_[i].base = tile(index) + size_t(done) * size;
  });
  each(Place::Kind::input,
       [&](size_t i, int index, size_t size) { to_pad(i, inputs[index], size); });
  each(Place::Kind::folded,
       [&](size_t i, int index, size_t size) { to_pad(i, outputs[index], size); });
  for (const Segment& segment : code_.segments) {
    run_program(segment.padded.data(), operands_, block_);
  }
  each(Place::Kind::output, from_pad);
  each(Place::Kind::folded, from_pad);
  each(Place::Kind::vector, [&](size_t i, int index, size_t) {
    fold_to_vector(code_.folds[size_t(index)].fold, code_.places[i].dtype, pad(i), count,
                   outputs[index]);
  });
}

void Pipeline::stretch(const char* const* inputs, char* const* outputs, int64_t begin,
                       int64_t count, Stores stores) {
  const int64_t whole = count & -block_;
  if (whole > 0) blocks(inputs, outputs, begin, 0, whole, stores);
  if (whole < count) rest(inputs, outputs, begin, whole, count - whole);
  for (const Delayed& delayed : code_.delayed) {
    const size_t size = size_of(delayed.dtype);
    std::memcpy(outputs[delayed.output] + size_t(begin) * size, tile(delayed.tile),
                size_t(count) * size);
  }
}

void Pipeline::run(const char* const* inputs, char* const* outputs, int64_t begin, int64_t end,
                   Stores stores) {
  const int64_t longest = code_.tiles > 0 ? kTile : kUnbounded;
  for (; begin < end; begin += longest) {
    stretch(inputs, outputs, begin, std::min(longest, end - begin), stores);
  }
}

}  // namespace fornax::flex
