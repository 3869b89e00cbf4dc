// The state of one walk over a kernel (emit/c_like.h says what it makes).  Serves one thread.
#pragma once
#include <fmt/core.h>

#include <set>
#include <string>
#include <vector>

#include "emit/c_like.h"

namespace fornax::c_like {

// How the values of a kernel are used.
struct Uses {
  std::vector<int> count;         // by value
  std::vector<char> local;        // by value: every use is in the region that defines it
  std::vector<char> only_places;  // by value: nothing but addresses and conditions follow from it
};
Uses uses_of(const kernel::Kernel& kernel);

class Writer {
 public:
  Writer(const Spelling& spelling, const kernel::Kernel& kernel, EmitSettings settings);
  Program run();

 private:
  using ValueId = kernel::ValueId;
  using Instruction = kernel::Instruction;
  using Region = kernel::Region;
  using ValueType = kernel::ValueType;

  // Text (c_like.cpp).
  std::string head();
  void wait_for_launch_before();
  void name_parameters();
  std::string type_name(const ValueType& type);
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    put(fmt::format(format, std::forward<Args>(args)...));
  }
  void put(std::string text);
  void note_site(const Site& site);

  // Expressions (expression.cpp).
  const Expression& of(ValueId value) const { return expressions_[size_t(value)]; }
  // The same where it may stand several times: a name or a number.
  const Expression& named(ValueId value);
  Expression lane(ValueId value, int lane);  // of a vector; a scalar is the same in every lane
  void define(ValueId value, Expression expression);  // now or where it is used
  void define_now(ValueId value, const Expression& expression);
  void pure(const Instruction& instruction);
  bool whole_vector(const Instruction& instruction);
  Expression element(const Instruction& instruction, std::span<const Expression> operands);
  bool is_index(const Instruction& instruction) const;
  Expression splat(ValueId value, const ValueType& type);

  // Statements (statement.cpp, memory.cpp).
  void region(const Region& region);
  void instruction(kernel::InstructionId id);
  void declare(ValueId value, const std::string& start);
  void assign(const std::vector<ValueId>& variables, const std::vector<ValueId>& next);
  void take_over(const std::vector<ValueId>& results, const std::vector<ValueId>& variables);
  bool stays_rolled(const Region& body) const;
  void loop(const Instruction& instruction);
  void repeat_while(const Instruction& instruction);
  void condition(const Instruction& instruction);
  void load(const Instruction& instruction);
  void load_vector(const Instruction& instruction);
  void store(const Instruction& instruction);
  void atomic(const Instruction& instruction);
  void compare_exchange(const Instruction& instruction);
  void exchange(const Instruction& instruction, std::string_view pattern, size_t operands,
                size_t mask);
  void shared(const Instruction& instruction);
  void require(const Instruction& instruction);
  void print(const Instruction& instruction);
  void raw(const Instruction& instruction);
  // Copy engine and matrix units (engine.cpp).
  void engine(const Instruction& instruction);
  void wgmma(const Instruction& instruction);
  void wgmma_wait(const Instruction& instruction);
  std::vector<std::string> accumulators(const Instruction& instruction, size_t first);
  std::vector<std::string> pointers(const Instruction& instruction, size_t count);
  std::string place(const Instruction& instruction, int lanes);  // *(T*)(p + i), or p[i]
  // The condition under which an access happens: its mask (operand number `mask`, which may be
  // absent), and in the checked mode that it is inside; empty where it always does.
  std::string when(const Instruction& instruction, size_t mask, int lanes);
  std::string inside(const Instruction& instruction, int lanes);

  const Spelling& spelling_;
  const kernel::Kernel& kernel_;
  const EmitSettings settings_;
  Uses uses_;
  kernel::SharedPlan shared_;
  std::vector<Expression> expressions_;      // by value
  std::vector<char> waits_;                  // by value: not written yet
  std::vector<std::string> parameters_;      // names
  std::set<std::pair<DType, int>> vectors_;  // declared
  std::string body_, indent_ = "  ", comment_;
  Site site_;
  bool maps_ = false;  // some parameter is one
  kernel::InstructionId current_ = -1;
};

}  // namespace fornax::c_like
