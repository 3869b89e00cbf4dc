// What a Builder keeps while it builds: open regions, variables, and the instructions already seen.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/build.h"

namespace fornax::kernel {

struct OpenRegion {
  Region region;
  bool loops = false;  // it runs again and again: what does not change may stand before it
  std::unordered_map<std::string, ValueId> seen;  // pure instructions by what they are
};

struct Builder::State {
  Kernel kernel;
  std::unordered_map<ValueId, int> parameters;  // their numbers, by value
  std::vector<OpenRegion> open;                 // the body first
  std::vector<int> level;          // by value: number of the open region that defines it
  std::vector<ValueId> same;       // by value: what it turned out to be, or itself
  std::vector<ValueId> variables;  // by slot; -1: the Variable is gone
  std::unordered_map<ValueId, int64_t> divisors;  // of loops' counters

  // The value that `value` turned out to be.
  ValueId resolve(ValueId value) const {
    while (same[size_t(value)] != value) value = same[size_t(value)];
    return value;
  }
  const ValueType& type(ValueId value) const { return kernel.type(value); }
  // The instruction that makes `value`, or none for a parameter.
  const Instruction* maker(ValueId value) const {
    const InstructionId id = kernel.values[size_t(resolve(value))].made_by;
    return id < 0 ? nullptr : &kernel.instructions[size_t(id)];
  }
  bool is_constant(ValueId value, int64_t* bits) const;

  ValueId new_value(ValueType type, InstructionId made_by, int level);
  ValueId constant(DType dtype, int64_t bits);
  // Appends to the innermost region, or farther out where a pure instruction does not change.
  std::vector<ValueId> append(Instruction instruction, std::vector<ValueType> results);

  void begin_region(bool loops);
  OpenRegion end_region();
  // One region parameter per living variable, which stands for its value inside.
  std::vector<int> bind_variables(std::vector<ValueId>& parameters);
};

// An equal value that is simpler, or -1; puts operands that commute in order.  Operands are
// resolved.  (kernel/fold.cpp)
ValueId simplify(Builder::State& state, Code code, const ValueType& type,
                 std::vector<ValueId>& operands);

}  // namespace fornax::kernel
