// How the values of a kernel are used: by one walk in the order of the program, and one back.
#include <algorithm>

#include "emit/writer.h"

namespace fornax::c_like {
namespace {

using kernel::Code;
using kernel::Effect;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Kernel;
using kernel::Region;
using kernel::ValueId;

class Walk {
 public:
  explicit Walk(const Kernel& kernel) : kernel_(kernel), home_(kernel.values.size(), -1) {
    const size_t count = kernel.values.size();
    uses_.count.resize(count);
    uses_.local.assign(count, true);
    uses_.only_places.assign(count, true);
    derived_.resize(count);
  }
  Uses run() {
    for (size_t i = 0; i < kernel_.parameters.size(); i++) {
      home_[i] = 0;
      derived_[i] = kernel_.parameters[i].type.memory == kernel::Memory::none;
    }
    visit(kernel_.body);
    for (size_t i = order_.size(); i-- > 0;) look_back(kernel_.at(order_[i]));
    for (size_t i = 0; i < derived_.size(); i++) {
      uses_.only_places[i] = uses_.only_places[i] && derived_[i];
    }
    return std::move(uses_);
  }

 private:
  void use(ValueId value, int region) {
    uses_.count[size_t(value)]++;
    if (home_[size_t(value)] != region) uses_.local[size_t(value)] = false;
  }
  void visit(const Region& region) {
    const int number = regions_++;
    for (const ValueId value : region.parameters) home_[size_t(value)] = number;
    for (const InstructionId id : region.instructions) {
      const Instruction& instruction = kernel_.at(id);
      order_.push_back(id);
      for (const ValueId operand : instruction.operands) use(operand, number);
      if (instruction.code == Code::loop)
        derived_[size_t(instruction.regions[0].parameters[0])] = true;
      for (const Region& inner : instruction.regions) visit(inner);
      const bool derived = follows_from_places(instruction);
      for (const ValueId result : instruction.results) {
        home_[size_t(result)] = number;
        derived_[size_t(result)] = derived;
      }
    }
    for (const ValueId value : region.yields) {
      use(value, number);
      uses_.only_places[size_t(value)] = false;
    }
  }
  // Whether what the instruction gives follows from places, numbers and constants alone.
  bool follows_from_places(const Instruction& instruction) const {
    const Effect effect = info(instruction.code).effect;
    if (effect == Effect::place) return instruction.operands.empty();
    return effect == Effect::pure &&
           std::all_of(instruction.operands.begin(), instruction.operands.end(),
                       [&](ValueId operand) { return derived_[size_t(operand)]; });
  }
  // What uses of an instruction's operands say of them.
  void look_back(const Instruction& instruction) {
    for (size_t i = 0; i < instruction.operands.size(); i++) {
      if (!only_says_where(instruction, i)) {
        uses_.only_places[size_t(instruction.operands[i])] = false;
      }
    }
  }
  bool only_says_where(const Instruction& instruction, size_t operand) const {
    switch (instruction.code) {
      case Code::load:
        return operand == 1 || operand == 2;
      case Code::store:
      case Code::atomic:
        return operand == 1 || operand == 3;
      case Code::compare_exchange:
        return operand == 1;
      case Code::loop:
        return operand < 3;
      case Code::if_:
        return true;
      default:
        return info(instruction.code).effect == Effect::pure &&
               uses_.only_places[size_t(instruction.results[0])];
    }
  }

  const Kernel& kernel_;
  Uses uses_;
  std::vector<int> home_;      // by value: the region that defines it
  std::vector<char> derived_;  // by value: follows from places, numbers and constants
  std::vector<InstructionId> order_;
  int regions_ = 0;
};

}  // namespace

Uses uses_of(const Kernel& kernel) { return Walk(kernel).run(); }

}  // namespace fornax::c_like
