// The register pipeline: a program is a list of stages that tail-call each other with eight vectors
// in registers.  A block is what eight vectors hold; one run of the list computes one block.
//
// Values live in lanes of 32 bits (f32, i32, u32; narrower types and bool widened, small floats as
// f32) or, in wide programs, of 64 bits (f64, i64, u64; everything else widened).  The eight
// registers hold one value; the operands a stage reads besides lie in memory as lanes of the same
// width. Stages are compiled once per instruction set and found by the tables here: all constant,
// any thread.
#pragma once
#include <fornax/dtype.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backend/small.h"
#include "graph/evaluate.h"

namespace fornax::flex {

// Memory as a stage sees it: vector k of the block at element i starts at base + i * advance + k *
// step. A spill slot does not advance, and a constant is a single vector that does not step either.
struct Operand {
  char* base = nullptr;
  int64_t advance = 0;
  int64_t step = 0;
};

// Its real type has vectors in it, which differ between instruction sets; stages.inl has it.
using AnyStage = void (*)();

struct Instruction {
  AnyStage stage = nullptr;
  uint32_t x = 0, y = 0;  // numbers of the operands it reads or writes
};

struct Context {
  const Instruction* program;
  const Operand* operands;
  int64_t end;  // elements, a multiple of the block
};

// The dtype of the lanes that hold values of `dtype` in a wide or narrow program.  Requires: not
// both 8 bytes and narrow.
constexpr DType lane_of(DType dtype, bool wide) {
  if (is_floating(dtype)) return wide ? DType::f64 : DType::f32;
  if (is_signed(dtype) || is_boolean(dtype)) return wide ? DType::i64 : DType::i32;
  return wide ? DType::u64 : DType::u32;
}

struct OpStages {
  AnyStage stage = nullptr;    // registers hold the first operand
  AnyStage swapped = nullptr;  // registers hold the second operand, x is the first; may be null
  AnyStage loading = nullptr;  // x is the first operand, no constant, y the second; may be null
  SmallLoop small = nullptr;   // for the dtype that is the lane itself
  double cost = 0;             // nanoseconds per element, roughly
};
// What `op` is in lanes of `lane`, its operands' lane (that of b and c for where); empty where
// refused.
const OpStages& op_stages(DType lane, Op op);

// Stages that bring values in and out of registers.
enum class Move : uint8_t {
  load,      // from memory x of the dtype
  store,     // to memory x of the dtype
  stream,    // store past the caches, to vector-aligned memory; null where the dtype has none
  lanes,     // from lanes in memory x: a spill slot or a constant
  spill,     // to lanes in memory x
  prefetch,  // asks for memory x of the dtype some blocks ahead
  far,       // asks for memory x, y bytes ahead, to the L2 cache
  loop,      // last: to the next block, or out
};
AnyStage move_stage(Move move, bool wide, DType dtype);
// Brings lanes of `lane` to numbers of `to` by the rules of graph/evaluate.h: as a cast, and to
// round or wrap what an op left.  x and y of the instruction are lane and to.  Null where nothing
// changes.
AnyStage cast_stage(DType lane, DType to);

// Writes one vector whose lanes all hold `number`, a number of `dtype`.
void fill_lanes(void* vector, bool wide, DType dtype, Word number);
// Likewise, in one go: what is read next does not wait for parts.
void fill_lanes(void* vector, float number);

int64_t vector_lanes(bool wide);
inline int64_t vector_bytes(bool wide) { return vector_lanes(wide) * (wide ? 8 : 4); }
inline constexpr int64_t kMaxVectorBytes = 64;
// Elements of a block of a narrow program: a whole number of wide blocks.
inline int64_t block_elements() { return vector_lanes(false) * 8; }
void run_program(const Instruction* program, const Operand* operands, int64_t count);
std::string_view instruction_set();

}  // namespace fornax::flex
