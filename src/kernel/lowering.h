// The pass behind kernel/lower.h.
#pragma once
#include "kernel/build.h"

namespace fornax::kernel {

// How many rows and columns of a tile one thread holds.
struct Share {
  int rows, columns;
  int count() const { return rows * columns; }
};

class Lowering {
 public:
  Lowering(const Kernel& from, int warp);
  Kernel run();

 private:
  Share extent(const ValueType& type) const;
  // Element e of a tile with extent `whole` to which `value` broadcasts.
  Value element(ValueId value, const Share& whole, int e) const;
  Value scalar(ValueId value) const { return held_[size_t(value)][0]; }
  const Distribution& distribution(const ValueType& type) const {
    return from_.distributions[type.layout];
  }
  // Which row and which column of threads this thread is in.
  Value row_thread(const Distribution& d);
  Value column_thread(const Distribution& d);
  // Where the i-th row and j-th column that a thread holds are in the tile.
  Value row(const Distribution& d, int i);
  Value column(const Distribution& d, int j);
  void keep(const Instruction& x, size_t result, Value element) {
    held_[size_t(x.results[result])].push_back(element);
  }

  bool skipped(ValueId value) const;
  bool fetches(const Instruction& x) const;
  bool only_consumers(const Instruction& x) const;
  void lower(const Region& region);
  void lower(const Instruction& x);
  void elementwise(const Instruction& x);
  void part(const Instruction& x);
  void control(const Instruction& x);
  void assertion(const Instruction& x);
  void mma(const Instruction& x);
  std::vector<Variable> variables(std::span<const ValueId> values);
  void read(std::span<const ValueId> into, const std::vector<Variable>& variables);
  void assign(std::vector<Variable>& variables, std::span<const ValueId> from);

  // kernel/lower_pipeline.cpp
  void by_roles();
  void barrier();
  void pipeline(const Instruction& x);
  void produce(const Instruction& x);
  void consume(const Instruction& x);
  void fetch(const Instruction& x);
  void mma_boxes(const Instruction& x);
  void deposit(const Instruction& x);
  void effect(Code code, std::initializer_list<Value> operands,
              std::initializer_list<int64_t> attributes = {});
  void advance();

  // kernel/lower_memory.cpp
  void load(const Instruction& x);
  void store(const Instruction& x);
  void atomic(const Instruction& x);
  // Whether this thread is the one that acts for all who hold the same elements; empty: all do.
  Value acts(const ValueType& type);
  // How many elements from the first on can be accessed at once.
  int vector_width(ValueId memory, std::span<const Value> indices, std::span<const Value> masks);

  // kernel/lower_reduce.cpp
  void reduce(const Instruction& x);
  using Elements = std::vector<Value>;  // one per operand of the reduction
  Elements combine(const Region& region, const Elements& left, const Elements& right);
  // Combines what lanes hold whose numbers differ in bits from `first` up to below `last`.
  Elements across_lanes(const Region& region, Elements own, int first, int last);
  // Combines what `parts` threads hold, each having written to its part.
  std::vector<Elements> across_warps(const Region& region, std::vector<Elements> own, Value part,
                                     int parts, const std::vector<Value>& slots, int slot_count,
                                     Value writes);

  // A kernel with a pipeline runs in two roles: one more group of four warps fetches, the others do
  // all else.  Each lowers the whole body, without the other's part.
  enum class Role { all, producer, consumer };

  const Kernel& from_;
  int warp_;
  Builder to_;
  Role role_ = Role::all;
  Value full_, empty_;  // barriers with phases, one per stage
  int stages_ = 0;
  std::vector<Variable> stage_;  // in a role: the stage's number, its parity, copies out so far
  std::vector<std::vector<Value>> held_;  // by value of `from`: the thread's elements, row by row
};

}  // namespace fornax::kernel
