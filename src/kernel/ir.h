// The kernel IR: what programs for a device are made of before they become text.
//
// A Kernel is one function in static single assignment form, with structured control flow: a list
// of instructions, some of which hold regions.  It is built by running C++ (kernel/build.h).  There
// are two dialects.  A tile kernel is written for a whole block: its values are scalars, which all
// threads know, and tiles, whose elements the threads share out.  A simt kernel is written for one
// thread, and its values are scalars and short vectors.  kernel/lower.h makes the second of the
// first; kernel/interpret.h runs both and is the authority on what they mean.
//
// A plain value, not synchronised.  Instructions and values are numbered in the order of creation.
#pragma once
#include <fornax/dtype.h>
#include <fornax/error.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fornax::kernel {

enum class Code : uint8_t {
#define FORNAX_CODE(name, ...) name,
#include "kernel/codes.def"
};
enum class Dialect : uint8_t { both, tile, simt };
enum class Effect : uint8_t { pure, place, read, write, region };
struct CodeInfo {
  std::string_view name;  // without the underscore that keeps it from being a keyword
  int operands;           // -1: varies
  Dialect dialect;
  Effect effect;
  std::string_view documentation;
};
const CodeInfo& info(Code code);
int code_count();
bool parse_code(std::string_view name, Code& out);

enum class Atomic : uint8_t { add, min, max, exchange, bit_or };
enum class Memory : uint8_t { none, global, shared, map };

// The type of a value: one element, or `lanes` of them (simt), or rows x columns (tile), or a
// memory that holds elements.
struct ValueType {
  DType dtype = DType::f32;
  Memory memory = Memory::none;
  uint8_t lanes = 1;
  int32_t rows = 0, columns = 0;  // 0, 0: no tile
  uint8_t layout = 0;             // of a tile: which of the kernel's distributions
  bool tile() const { return rows > 0; }
  bool operator==(const ValueType&) const = default;
};
// "f32", "f32x4", "f32[32,128]", in distribution 1 "f32[32,128]@1", "global f32"
std::string text_of(const ValueType& type);

// Numbers of a kernel's values and instructions.
using ValueId = int32_t;
using InstructionId = int32_t;

struct Region {
  std::vector<ValueId> parameters;
  std::vector<InstructionId> instructions;
  std::vector<ValueId> yields;
};

struct Instruction {
  Code code = Code::constant;
  bool fast = false;  // may give up some digits for speed
  std::vector<ValueId> operands, results;
  std::vector<int64_t> attributes;
  std::string text;  // of assert, print and raw
  std::vector<Region> regions;
  Site site;  // the line of the kernel's source
};

struct ValueInfo {
  ValueType type;
  InstructionId made_by = -1;  // -1: a parameter of the kernel or of a region
};

// A parameter of the kernel.  What is claimed of it is checked when the kernel is launched and
// enters the key of its code.
struct Parameter {
  std::string name;
  ValueType type;            // memory global: a buffer, given by its first element; else a number
  bool written = false;      // of a buffer: some thread stores into it
  bool aliased = false;      // of a buffer: another parameter may be the same memory
  int64_t divisor = 1;       // a number is a multiple of this, a buffer is aligned to so many bytes
  int64_t most = INT32_MAX;  // a whole number lies in [0, most]; INT64_MAX: it may be any
};

// How the threads of a block share out the elements of a tile [r, c]: thread = row thread * columns
// + column thread.  A column thread has, for each j, the `vector` columns from
// (j * columns + column thread) * vector on; a row thread in the same way `row_vector` rows at a
// time.  Along an axis of extent 1 all threads have the one element.
//
// As fragments, it is what the matrix units of compute 90 do: four warps hold 64 rows, lane l of
// warp w the rows 16 w + l / 4 and 8 more, and of each 8 columns numbers 2 (l % 4) and the next.
struct Distribution {
  int rows = 1, columns = 128;  // threads; as fragments 32 to each 64 rows of the tile, and 4
  int vector = 4;
  bool fragments = false;
  int row_vector = 1;
  int threads() const { return rows * columns; }
  bool operator==(const Distribution&) const = default;
};

struct Kernel {
  std::string name;
  Dialect dialect = Dialect::simt;
  int threads = 128;  // of a block
  int resident = 1;   // blocks that a processor must have registers for at a time
  std::vector<Distribution> distributions;  // of a tile kernel; each has all `threads`
  std::vector<Parameter> parameters;        // values 0 ...
  std::vector<ValueInfo> values;
  std::deque<Instruction> instructions;
  Region body;

  const ValueType& type(ValueId value) const { return values[size_t(value)].type; }
  const Instruction& at(InstructionId id) const { return instructions[size_t(id)]; }
};

// Checks that values are defined before use, types and dialects.  Error(internal): the first fault.
void verify(const Kernel& kernel);

// The text form; parse_kernel(text_of(k)) is the same kernel with its numbers in order.
// Error(value): the line and what is wrong there.
std::string text_of(const Kernel& kernel);
Kernel parse_kernel(std::string_view text);

// The bytes of shared memory that a block takes, and where each `shared` begins: those that are
// never live together share (by liveness over barriers).
struct SharedPlan {
  std::vector<int64_t> offsets;  // by instruction number; -1 where it is no `shared`
  int64_t bytes = 0;
};
SharedPlan plan_shared(const Kernel& kernel);

}  // namespace fornax::kernel
