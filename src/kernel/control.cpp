// The Builder: regions, the Variables that cross them, and the finished kernel.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kernel/analysis.h"
#include "kernel/build.h"
#include "kernel/state.h"

namespace fornax::kernel {

Variable::Variable(Value first) : builder_(first.builder) {
  FORNAX_CHECK(builder_);
  std::vector<ValueId>& variables = builder_->state().variables;
  slot_ = int(variables.size());
  variables.push_back(first.id);
}
Variable::Variable(Variable&& other) noexcept
    : builder_(std::exchange(other.builder_, nullptr)), slot_(other.slot_) {}
Variable::~Variable() {
  if (!builder_) return;
  std::vector<ValueId>& variables = builder_->state().variables;
  variables[size_t(slot_)] = -1;
  while (!variables.empty() && variables.back() < 0) variables.pop_back();
}
void Variable::operator=(Value next) {
  Builder::State& state = builder_->state();
  const ValueType& type = state.type(state.variables[size_t(slot_)]);
  next = builder_->as(type.dtype, next);
  if (type.tile()) next = builder_->spread(next, type.rows, type.columns);
  FORNAX_CHECK(next.type() == type);
  state.variables[size_t(slot_)] = next.id;
}
Variable::operator Value() const { return {builder_, builder_->state().variables[size_t(slot_)]}; }

void Builder::State::begin_region(bool loops) {
  open.emplace_back();
  open.back().loops = loops;
}
OpenRegion Builder::State::end_region() {
  OpenRegion closed = std::move(open.back());
  open.pop_back();
  return closed;
}
std::vector<ValueId> Builder::State::bind_variables(std::vector<ValueId>& parameters) {
  std::vector<ValueId> before = variables;
  for (ValueId& variable : variables) {
    if (variable < 0) continue;
    variable = new_value(type(variable), -1, int(open.size()) - 1);
    parameters.push_back(variable);
  }
  return before;
}

namespace {

// Joins the Variables after a loop: those whose value it changes become carried values of
// `instruction`, in whose region `which` they are parameters from number `first` on.
void carry(Builder::State& state, const std::vector<ValueId>& before, Instruction& instruction,
           size_t which, size_t first, std::vector<ValueType>& results, std::vector<int>& slots) {
  std::vector<ValueId>& parameters = instruction.regions[which].parameters;
  std::vector<ValueId>& yields = instruction.regions.back().yields;
  std::vector<ValueId> kept(parameters.begin(), parameters.begin() + std::ptrdiff_t(first));
  size_t next = first;
  for (size_t slot = 0; slot < before.size(); slot++) {
    if (before[slot] < 0) continue;
    const ValueId parameter = parameters[next++];
    const ValueId after = state.resolve(state.variables[slot]);
    if (after == parameter) {
      state.same[size_t(parameter)] = before[slot];
      state.variables[slot] = before[slot];
      continue;
    }
    kept.push_back(parameter);
    instruction.operands.push_back(before[slot]);
    yields.push_back(after);
    results.push_back(state.type(parameter));
    slots.push_back(int(slot));
  }
  parameters = std::move(kept);
}

void finish_carried(Builder::State& state, Instruction instruction, std::vector<ValueType> results,
                    const std::vector<int>& slots) {
  const std::vector<ValueId> made = state.append(std::move(instruction), std::move(results));
  for (size_t i = 0; i < slots.size(); i++) state.variables[size_t(slots[i])] = made[i];
}

}  // namespace

void Builder::loop(Value from, Value to, Value step, FunctionRef<void(Value)> body) {
  State& state = *state_;
  const DType dtype = to.builder ? to.dtype() : from.builder ? from.dtype() : DType::i32;
  Instruction made;
  made.code = Code::loop;
  made.operands = {as(dtype, from).id, as(dtype, to).id, as(dtype, step).id};
  state.begin_region(true);
  std::vector<ValueId> parameters = {state.new_value({dtype}, -1, int(state.open.size()) - 1)};
  state.divisors[parameters[0]] =
      std::gcd(divisor_of(state, made.operands[0]), divisor_of(state, made.operands[2]));
  const std::vector<ValueId> before = state.bind_variables(parameters);
  body({this, parameters[0]});
  made.regions.push_back(state.end_region().region);
  made.regions[0].parameters = std::move(parameters);
  std::vector<ValueType> results;
  std::vector<int> slots;
  carry(state, before, made, 0, 1, results, slots);
  finish_carried(state, std::move(made), std::move(results), slots);
}

void Builder::repeat_while(FunctionRef<Value()> condition, FunctionRef<void()> body) {
  State& state = *state_;
  Instruction made;
  made.code = Code::while_;
  state.begin_region(true);
  std::vector<ValueId> parameters;
  const std::vector<ValueId> before = state.bind_variables(parameters);
  const Value goes_on = as(DType::bool_, condition());
  state.begin_region(true);
  body();
  Region second = state.end_region().region;
  Region first = state.end_region().region;
  first.parameters = std::move(parameters);
  first.yields = {goes_on.id};
  made.regions.push_back(std::move(first));
  made.regions.push_back(std::move(second));
  std::vector<ValueType> results;
  std::vector<int> slots;
  carry(state, before, made, 0, 0, results, slots);
  finish_carried(state, std::move(made), std::move(results), slots);
}

void Builder::pipeline(Value count, int stages, FunctionRef<void(Value, Value)> produce,
                       FunctionRef<void(Value, Value)> consume) {
  State& state = *state_;
  Instruction made;
  made.code = Code::pipeline;
  made.operands = {as(DType::i32, count).id};
  made.attributes = {stages};
  const auto counters = [&] {
    const int level = int(state.open.size()) - 1;
    return std::vector<ValueId>{state.new_value({DType::i32}, -1, level),
                                state.new_value({DType::i32}, -1, level)};
  };
  state.begin_region(true);
  std::vector<ValueId> parameters = counters();
  produce({this, parameters[0]}, {this, parameters[1]});
  made.regions.push_back(state.end_region().region);
  made.regions[0].parameters = parameters;
  state.begin_region(true);
  parameters = counters();
  const std::vector<ValueId> before = state.bind_variables(parameters);
  consume({this, parameters[0]}, {this, parameters[1]});
  made.regions.push_back(state.end_region().region);
  made.regions[1].parameters = std::move(parameters);
  std::vector<ValueType> results;
  std::vector<int> slots;
  carry(state, before, made, 1, 2, results, slots);
  finish_carried(state, std::move(made), std::move(results), slots);
}

void Builder::when(Value condition, FunctionRef<void()> then) {
  when(condition, then, [] {});
}
void Builder::when(Value condition, FunctionRef<void()> then, FunctionRef<void()> otherwise) {
  State& state = *state_;
  condition = as(DType::bool_, condition);
  int64_t known = 0;
  if (state.is_constant(condition.id, &known)) return known ? then() : otherwise();
  const std::vector<ValueId> before = state.variables;
  Instruction made;
  made.code = Code::if_;
  made.operands = {condition.id};
  std::vector<ValueId> after[2];
  for (int side = 0; side < 2; side++) {
    state.variables = before;
    state.begin_region(false);
    side == 0 ? then() : otherwise();
    made.regions.push_back(state.end_region().region);
    after[side] = state.variables;
  }
  std::vector<ValueType> results;
  std::vector<int> slots;
  for (size_t slot = 0; slot < before.size(); slot++) {
    if (before[slot] < 0) continue;
    const ValueId yes = state.resolve(after[0][slot]), no = state.resolve(after[1][slot]);
    state.variables[slot] = yes;
    if (yes == no) continue;
    made.regions[0].yields.push_back(yes);
    made.regions[1].yields.push_back(no);
    results.push_back(state.type(yes));
    slots.push_back(int(slot));
  }
  finish_carried(state, std::move(made), std::move(results), slots);
}

namespace {

std::vector<Value> combine_along(Builder& builder, Code code, int axis, std::vector<Value> tiles,
                                 Builder::Combine combine) {
  Builder::State& state = builder.state();
  Instruction made;
  made.code = code;
  made.attributes = {axis};
  std::vector<ValueType> results;
  for (const Value& tile : tiles) {
    FORNAX_CHECK(tile.type().tile() && tile.type().rows == tiles[0].type().rows &&
                 tile.type().columns == tiles[0].type().columns);
    made.operands.push_back(tile.id);
    results.push_back(tile.type());
    if (code == Code::reduce) (axis == 0 ? results.back().rows : results.back().columns) = 1;
  }
  state.begin_region(false);
  std::vector<ValueId> parameters;
  std::vector<Value> sides[2];
  for (std::vector<Value>& side : sides) {
    for (const Value& tile : tiles) {
      parameters.push_back(state.new_value({tile.dtype()}, -1, int(state.open.size()) - 1));
      side.emplace_back(&builder, parameters.back());
    }
  }
  const std::vector<Value> combined = combine(sides[0], sides[1]);
  made.regions.push_back(state.end_region().region);
  made.regions[0].parameters = std::move(parameters);
  for (size_t i = 0; i < tiles.size(); i++) {
    made.regions[0].yields.push_back(builder.as(tiles[i].dtype(), combined[i]).id);
  }
  return builder.emit(std::move(made), std::move(results));
}

}  // namespace

std::vector<Value> Builder::reduce(int axis, std::vector<Value> tiles, Combine combine) {
  return combine_along(*this, Code::reduce, axis, std::move(tiles), combine);
}
std::vector<Value> Builder::scan(int axis, std::vector<Value> tiles, Combine combine) {
  return combine_along(*this, Code::scan, axis, std::move(tiles), combine);
}

namespace {

// Copies what is needed of a kernel under construction, values resolved and numbered in order.
class Compactor {
 public:
  explicit Compactor(Builder::State& state) : state_(state), from_(state.kernel) {
    live_.resize(from_.instructions.size());
    number_.assign(from_.values.size(), -1);
  }
  Kernel run(const Region& body) {
    mark(body);
    to_.name = from_.name;
    to_.dialect = from_.dialect;
    to_.threads = from_.threads;
    to_.distributions = from_.distributions;
    to_.resident = from_.resident;
    to_.parameters = from_.parameters;
    std::vector<ValueId> own(from_.parameters.size());
    for (const auto& [value, number] : state_.parameters) own[size_t(number)] = value;
    for (const ValueId value : own) add_value(value, -1);
    to_.body = copy(body);
    return std::move(to_);
  }

 private:
  bool has_effect(const Instruction& instruction) const {
    if (info(instruction.code).effect == Effect::write) return true;
    for (const Region& region : instruction.regions) {
      for (const InstructionId id : region.instructions) {
        if (has_effect(from_.at(id))) return true;
      }
    }
    return false;
  }
  void mark(const Region& region) {
    for (const InstructionId id : region.instructions) {
      if (has_effect(from_.at(id))) need(id);
    }
  }
  void need_value(ValueId value) {
    const InstructionId id = from_.values[size_t(state_.resolve(value))].made_by;
    if (id >= 0) need(id);
  }
  void need(InstructionId id) {
    if (live_[size_t(id)]) return;
    live_[size_t(id)] = true;
    const Instruction& instruction = from_.at(id);
    for (const ValueId operand : instruction.operands) need_value(operand);
    for (const Region& region : instruction.regions) {
      mark(region);
      for (const ValueId value : region.yields) need_value(value);
    }
  }
  ValueId add_value(ValueId old, InstructionId made_by) {
    to_.values.push_back({from_.type(old), made_by});
    return number_[size_t(old)] = ValueId(to_.values.size()) - 1;
  }
  std::vector<ValueId> renumbered(const std::vector<ValueId>& values) const {
    std::vector<ValueId> result;
    for (const ValueId value : values) {
      result.push_back(number_[size_t(state_.resolve(value))]);
      FORNAX_CHECK(result.back() >= 0);
    }
    return result;
  }
  Region copy(const Region& region) {
    Region result;
    for (const ValueId parameter : region.parameters) {
      result.parameters.push_back(add_value(parameter, -1));
    }
    for (const InstructionId id : region.instructions) {
      if (live_[size_t(id)]) result.instructions.push_back(copy(from_.at(id)));
    }
    result.yields = renumbered(region.yields);
    return result;
  }
  InstructionId copy(const Instruction& old) {
    const auto id = InstructionId(to_.instructions.size());
    to_.instructions.push_back(old);
    // A reference: elements of a deque stay where they are.
    Instruction& made = to_.instructions.back();
    made.operands = renumbered(old.operands);
    for (size_t i = 0; i < old.regions.size(); i++) made.regions[i] = copy(old.regions[i]);
    for (size_t i = 0; i < old.results.size(); i++) made.results[i] = add_value(old.results[i], id);
    return id;
  }

  Builder::State& state_;
  const Kernel& from_;
  Kernel to_;
  std::vector<char> live_;
  std::vector<ValueId> number_;
};

}  // namespace

Kernel Builder::finish() {
  FORNAX_CHECK(state_->open.size() == 1);
  const Region body = state_->end_region().region;
  Kernel finished = Compactor(*state_).run(body);
  verify(finished);
  return finished;
}

}  // namespace fornax::kernel
