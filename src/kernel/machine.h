// The inside of the interpreter: a kernel as a list of steps, and what executes them.
//
// Every value has a place in a context's words, one word per element: its storage bits in the low
// bytes, anything above.  A simt value is lanes x 32 words, a tile rows x columns; constants and
// parameters are one word, for all threads.
#pragma once
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/interpret.h"
#include "kernel/races.h"

namespace fornax::kernel {

inline constexpr uint32_t kWarp = 32;

struct Context;
struct Step;
using Run = void (*)(Context&, const Step&);

// Where an operand's words begin, and how far the next row and column are; 0 repeats one.
struct Place {
  uint32_t at = 0, row = 0, column = 0;
};

struct Step {
  Run run = nullptr;
  uint32_t result = 0, rows = 1, columns = 1;
  std::vector<Place> operands;
  uint32_t target = 0;               // where a jump goes
  int memory = -1, memory_b = -1;    // numbers in Program::memories
  int mask = -1, otherwise = -1;     // numbers of operands, of accesses
  bool wide_index = false;           // i64
  bool consecutive = false;          // the lanes of a vector are neighbours in memory
  DType dtype = DType::f32;          // of the elements accessed, or of the operands
  std::vector<Step> region;          // of reduce and scan
  std::vector<Place> region_places;  // its left and right parameters, then its yields
  const Instruction* instruction = nullptr;
  InstructionId id = -1;
};

// A parameter of the kernel, or shared memory that begins at `offset`.
struct MemoryPlan {
  int parameter = -1;
  DType dtype = DType::f32;
  int64_t offset = 0, count = 0;
};

struct Program {
  Kernel kernel;
  std::vector<Step> steps;
  std::vector<MemoryPlan> memories;
  std::vector<std::pair<uint32_t, uint64_t>> constants;  // word, what it holds
  std::vector<uint32_t> parameters;                      // the word of each
  uint32_t words = 0;                                    // of a context
  int64_t shared_bytes = 0;
};

struct BoundMemory {
  std::byte* base = nullptr;
  int64_t elements = 0;  // that exist
  int64_t count = 0;     // that the launch claims
  int64_t size = 1;      // bytes of an element
  DType dtype = DType::f32;
  bool watched = false;
  Races::Memory shadow;
};

struct Machine {
  const Program& program;
  const Launch& launch;
  bool simt = false;
  std::vector<BoundMemory> memories{};
  std::vector<std::byte> shared{};
  std::array<int, 3> block{};
  Status* status = nullptr;
  Races races{};

  // Notes the first failure in the status.
  void note(InstructionId id, int64_t index, int64_t count);
  void write_log(const std::string& line) const;
};

struct Frame {
  uint32_t saved, other;
};

// One warp of a simt kernel, or the block of a tile kernel.
struct Context {
  enum class State : uint8_t { running, waiting, finished };
  Machine& machine;
  int warp = 0;
  uint32_t full = 1, mask = 1;  // the lanes that exist, that take part
  uint32_t next = 0;            // the number of the step to come
  State state = State::running;
  std::vector<uint64_t> words{};
  std::vector<Frame> frames{};
};

// "kernel: add in file.cpp:3"
std::string where(const Context& context, const Step& step);

template <class T>
T get(uint64_t word) {
  if constexpr (std::is_same_v<T, bool>) {
    return (word & 0xff) != 0;
  } else {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
}
template <class T>
uint64_t put(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else {
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
}

// The element of `dtype` at `memory` as a word, and back.
uint64_t read_element(DType dtype, const void* memory);
void write_element(DType dtype, void* memory, uint64_t word);

// The steps of the codes; the table of the elementwise ones.
Run elementwise(Code code, DType dtype);  // null where there is none
Run conversion(DType from, DType to);
void copy_all(Context& context, const Step& step);
void copy_masked(Context& context, const Step& step);
void run_load(Context& context, const Step& step);
void run_store(Context& context, const Step& step);
void run_atomic(Context& context, const Step& step);
void run_compare_exchange(Context& context, const Step& step);
void run_mma(Context& context, const Step& step);

// The kernel as steps.  Requires: it is verified.
std::shared_ptr<const Program> prepare(Kernel kernel);

}  // namespace fornax::kernel
