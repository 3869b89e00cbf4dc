// compile(): from the steps of a pointwise graph to lists of stages.
//
// One value is in registers at a time.  A step finds its first operand there or has it brought; the
// others are memory operands: inputs whose memory is lanes already, constants, or spill slots.
#include "backends/flex/compile.h"

#include <algorithm>

#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr int kNone = -1;

bool is_eight_bytes(DType dtype) { return size_of(dtype) == 8; }
// Memory that is lanes already: a stage may read it in place.
bool is_lanes(DType dtype, bool wide) { return dtype == lane_of(dtype, wide); }

// Bools are lanes of 0 and 1, for which these integer ops do what the Boolean ones mean.
Op integer_op_of_bool(Op op) {
  switch (op) {
    case Op::add:
      return Op::bitwise_or;
    case Op::mul:
      return Op::bitwise_and;
    case Op::shift_left:
    case Op::shift_right:
      return Op::greater;
    default:
      return op;
  }
}

class Compiler {
 public:
  Compiler(const Graph& graph, std::span<const Reach> reaches, CompileOptions options)
      : graph_(graph),
        inputs_(int(reaches.size())),
        count_(int(graph.steps.size())),
        reaches_(reaches),
        options_(std::move(options)),
        values_(graph.steps.size()) {}

  Code compile();

 private:
  struct Value {
    bool done = false;  // in a segment so far
    bool wide = false;
    int uses = 0;      // in the segment under way: operands and outputs that still want it
    int slot = kNone;  // in the segment under way
    int tile = kNone;  // where later segments find it
  };
  struct Waiting {
    int step, place;
  };

  void choose_widths();
  bool ready(int step) const;
  std::vector<int> take_segment(bool wide);
  std::vector<int> in_good_order(std::vector<int> steps) const;
  void compile_segment(const std::vector<int>& steps, bool wide);
  void prefetch_inputs(const std::vector<int>& steps);
  bool reads_input(int step, DType dtype) const;
  bool is_constant(int step) const;
  bool in_memory(int step) const;
  void place_result(const std::vector<int>& steps, size_t position);
  int tile_of(int step);

  int add_place(Place place);
  int constant_place(int input);
  int slot_place(int slot);
  int memory_place(int step);
  void emit(AnyStage stage, int x = 0, int y = 0);
  void emit_store(int place);
  void emit_fold(int index, DType dtype);
  void emit_cast(DType lane, DType to);

  void spill();
  void make_room();
  void bring(int step);
  bool has_lanes(int step) const;
  int lanes_in_memory(int step);
  void use(int step);
  void compute(int step);
  void compute_pointwise(const Step& step, DType lane);
  void compute_binary(const Step& step, const OpStages& stages);
  void keep_for_later(const Step& step);

  const Graph& graph_;
  const int inputs_, count_;
  std::span<const Reach> reaches_;
  const CompileOptions options_;
  std::vector<Value> values_;
  Code code_;
  bool wide_ = false;
  int in_registers_ = kNone;
  std::vector<bool> slot_taken_;
  std::vector<Waiting> waiting_;  // stores at the end of the segment
};

void Compiler::choose_widths() {
  for (int i = inputs_; i < count_; i++) {
    const Step& step = graph_.steps[size_t(i)];
    bool wide = is_eight_bytes(step.type.dtype), all_bool = is_boolean(step.type.dtype);
    bool wide_operand = false, narrow_operand = false;
    for (int input : step.inputs) {
      const DType dtype = graph_.steps[size_t(input)].type.dtype;
      wide |= is_eight_bytes(dtype);
      all_bool &= is_boolean(dtype);
      if (input >= inputs_) (values_[size_t(input)].wide ? wide_operand : narrow_operand) = true;
    }
    // Bools live in lanes of either width: stay where they come from.
    values_[size_t(i)].wide = wide || (all_bool && wide_operand && !narrow_operand);
  }
}

bool Compiler::ready(int step) const {
  for (int input : graph_.steps[size_t(step)].inputs) {
    if (input >= inputs_ && !values_[size_t(input)].done) return false;
  }
  return true;
}

// All steps that can be computed in one go in this width.
std::vector<int> Compiler::take_segment(bool wide) {
  std::vector<int> steps;
  for (int i = inputs_; i < count_; i++) {
    if (values_[size_t(i)].done || values_[size_t(i)].wide != wide || !ready(i)) continue;
    values_[size_t(i)].done = true;
    steps.push_back(i);
  }
  return steps;
}

// After a step comes one that reads it, where there is one that can: it finds it in registers.
std::vector<int> Compiler::in_good_order(std::vector<int> steps) const {
  std::vector<int> order;
  while (!steps.empty()) {
    size_t best = 0;
    bool found = false;
    for (size_t i = 0; i < steps.size(); i++) {
      bool can = true, reads_last = false;
      for (int input : graph_.steps[size_t(steps[i])].inputs) {
        can &= std::find(steps.begin(), steps.end(), input) == steps.end();
        reads_last |= !order.empty() && input == order.back();
      }
      if (!can || (found && !reads_last)) continue;
      best = i;
      found = true;
      if (reads_last) break;
    }
    order.push_back(steps[best]);
    steps.erase(steps.begin() + std::ptrdiff_t(best));
  }
  return order;
}

bool Compiler::is_constant(int step) const {
  return step < inputs_ && (reaches_[size_t(step)] == Reach::constant ||
                            reaches_[size_t(step)] == Reach::row_constant);
}

// Whether the value can be read again at any time: inputs, and values of earlier segments.
bool Compiler::in_memory(int step) const {
  return step < inputs_ || (values_[size_t(step)].tile != kNone);
}

int Compiler::add_place(Place place) {
  for (size_t i = 0; i < code_.places.size(); i++) {
    const Place& p = code_.places[i];
    if (p.kind == place.kind && p.index == place.index && p.dtype == place.dtype) return int(i);
  }
  code_.places.push_back(place);
  return int(code_.places.size()) - 1;
}

// The constant that holds `input` in lanes of the segment's width; kNone: true.
int Compiler::constant_place(int input) {
  size_t found = 0;
  while (found < code_.constants.size() &&
         (code_.constants[found].input != input || code_.constants[found].wide != wide_)) {
    found++;
  }
  if (found == code_.constants.size()) code_.constants.push_back({input, wide_});
  const DType dtype = input < 0 ? DType::bool_ : graph_.steps[size_t(input)].type.dtype;
  return add_place({Place::Kind::constant, int(found), lane_of(dtype, wide_)});
}

int Compiler::slot_place(int slot) {
  return add_place({Place::Kind::slot, slot, wide_ ? DType::i64 : DType::i32});
}

// Where an input, or a value of an earlier segment, lies in its own dtype.
int Compiler::memory_place(int step) {
  const DType dtype = graph_.steps[size_t(step)].type.dtype;
  if (step < inputs_) return add_place({Place::Kind::input, step, dtype});
  FORNAX_CHECK(values_[size_t(step)].tile != kNone);
  return add_place({Place::Kind::tile, values_[size_t(step)].tile, dtype});
}

void Compiler::emit(AnyStage stage, int x, int y) {
  FORNAX_CHECK(stage != nullptr);
  const Instruction instruction{stage, uint32_t(x), uint32_t(y)};
  Segment& segment = code_.segments.back();
  for (auto* list : {&segment.cached, &segment.streamed, &segment.padded}) {
    list->push_back(instruction);
  }
}

// Folds what is in registers into output `index`.
void Compiler::emit_fold(int index, DType dtype) {
  const DType lane = lane_of(dtype, wide_);
  const auto [fold, to_vector] = options_.folds[size_t(index)];
  FORNAX_CHECK(lane == dtype && (!to_vector || dtype == DType::f32));
  const Place::Kind kind = to_vector ? Place::Kind::vector : Place::Kind::folded;
  emit(fold_stage(fold, lane, to_vector), add_place({kind, index, dtype}));
  if (!to_vector) return;
  code_.segments.back().padded.back().stage = move_stage(Move::store, wide_, dtype);
}

void Compiler::emit_store(int place) {
  const auto [kind, index, dtype] = code_.places[size_t(place)];
  emit(move_stage(Move::store, wide_, dtype), place);
  const bool far = kind == Place::Kind::output && index >= options_.close;
  if (AnyStage stream = far ? move_stage(Move::stream, wide_, dtype) : nullptr) {
    code_.segments.back().streamed.back().stage = stream;
  }
}

void Compiler::emit_cast(DType lane, DType to) {
  if (AnyStage stage = cast_stage(lane, to)) emit(stage, int(lane), int(to));
}

// Gives what is in registers a slot, if it has none.
void Compiler::spill() {
  Value& value = values_[size_t(in_registers_)];
  if (value.slot != kNone) return;
  size_t slot = 0;
  while (slot < slot_taken_.size() && slot_taken_[slot]) slot++;
  if (slot == slot_taken_.size()) slot_taken_.push_back(false);
  slot_taken_[slot] = true;
  code_.slots = std::max(code_.slots, int(slot) + 1);
  value.slot = int(slot);
  emit(move_stage(Move::spill, wide_, DType::i8), slot_place(value.slot));
}

// Before registers get something else: saves what is in them if somebody reads it.
void Compiler::make_room() {
  if (in_registers_ != kNone && values_[size_t(in_registers_)].uses > 0 &&
      !in_memory(in_registers_)) {
    spill();
  }
}

void Compiler::bring(int step) {
  if (in_registers_ == step) return;
  make_room();
  const DType dtype = graph_.steps[size_t(step)].type.dtype;
  const Value& value = values_[size_t(step)];
  if (value.slot != kNone) {
    emit(move_stage(Move::lanes, wide_, dtype), slot_place(value.slot));
  } else if (is_constant(step)) {
    emit(move_stage(Move::lanes, wide_, dtype), constant_place(step));
  } else {
    emit(move_stage(Move::load, wide_, dtype), memory_place(step));
  }
  in_registers_ = step;
}

// Whether the value of `step` lies as lanes somewhere.
bool Compiler::has_lanes(int step) const {
  return values_[size_t(step)].slot != kNone || is_constant(step) ||
         (in_memory(step) && is_lanes(graph_.steps[size_t(step)].type.dtype, wide_));
}

// The place where the value of `step` lies as lanes.  May change what is in registers.
int Compiler::lanes_in_memory(int step) {
  const Value& value = values_[size_t(step)];
  if (value.slot != kNone) return slot_place(value.slot);
  if (is_constant(step)) return constant_place(step);
  if (in_memory(step) && is_lanes(graph_.steps[size_t(step)].type.dtype, wide_)) {
    return memory_place(step);
  }
  bring(step);
  spill();
  return slot_place(value.slot);
}

void Compiler::use(int step) {
  Value& value = values_[size_t(step)];
  if (--value.uses > 0 || value.slot == kNone) return;
  slot_taken_[size_t(value.slot)] = false;
  value.slot = kNone;
}

// Before registers change: saves the operand in them if others than this step read it.
void Compiler::keep_for_later(const Step& step) {
  const auto own = std::count(step.inputs.begin(), step.inputs.end(), in_registers_);
  if (values_[size_t(in_registers_)].uses > own && !in_memory(in_registers_)) spill();
}

void Compiler::compute_binary(const Step& step, const OpStages& stages) {
  const int a = step.inputs[0], b = step.inputs[1];
  const bool swapped = in_registers_ == b && a != b && stages.swapped;
  const int place = lanes_in_memory(swapped ? a : b);
  if (!swapped && in_registers_ != a && stages.loading && has_lanes(a) && !is_constant(a)) {
    make_room();
    return emit(stages.loading, lanes_in_memory(a), place);
  }
  bring(swapped ? b : a);
  keep_for_later(step);
  emit(swapped ? stages.swapped : stages.stage, place);
}

void Compiler::compute_pointwise(const Step& step, DType lane) {
  const bool of_bools = is_boolean(graph_.steps[size_t(step.inputs.back())].type.dtype);
  const OpStages& stages = op_stages(lane, of_bools ? integer_op_of_bool(step.op) : step.op);
  if (step.inputs.size() == 2) {
    compute_binary(step, stages);
  } else if (step.inputs.size() == 3) {
    const int yes = lanes_in_memory(step.inputs[1]), no = lanes_in_memory(step.inputs[2]);
    bring(step.inputs[0]);
    keep_for_later(step);
    emit(stages.stage, yes, no);
  } else {
    bring(step.inputs[0]);
    keep_for_later(step);
    if (of_bools && step.op == Op::bitwise_not) {
      emit(op_stages(lane, Op::bitwise_xor).stage, constant_place(kNone));
    } else {
      emit(stages.stage);
    }
  }
  // A truth value is 0 or 1 already; numbers are rounded or wrapped.
  if (!is_boolean(step.type.dtype)) emit_cast(lane, step.type.dtype);
  code_.cost += stages.cost * (wide_ ? 2 : 1);
}

void Compiler::compute(int number) {
  const Step& step = graph_.steps[size_t(number)];
  const DType lane = lane_of(graph_.steps[size_t(step.inputs.back())].type.dtype, wide_);
  if (step.op == Op::copy || step.op == Op::cast) {
    bring(step.inputs[0]);
    keep_for_later(step);
    if (step.op == Op::cast) emit_cast(lane, step.type.dtype);
  } else {
    compute_pointwise(step, lane);
  }
  for (int input : step.inputs) use(input);
  in_registers_ = number;
}

// Whether `step` reads memory that an output of `dtype` may share.
bool Compiler::reads_input(int step, DType dtype) const {
  if (options_.apart) return false;
  for (int input : graph_.steps[size_t(step)].inputs) {
    if (input >= inputs_) continue;
    const Reach reach = reaches_[size_t(input)];
    if ((reach == Reach::direct || reach == Reach::near) &&
        graph_.steps[size_t(input)].type.dtype == dtype) {
      return true;
    }
  }
  return false;
}

int Compiler::tile_of(int step) {
  int& tile = values_[size_t(step)].tile;
  if (tile == kNone) {
    tile = code_.tiles++;
    emit_store(add_place({Place::Kind::tile, tile, graph_.steps[size_t(step)].type.dtype}));
  }
  return tile;
}

// Stores the value of steps[position], which is in registers, where outputs and later segments want
// it.  An output may have the buffer of an input: it is not written before that was read.
void Compiler::place_result(const std::vector<int>& steps, size_t position) {
  const int number = steps[position];
  const DType dtype = graph_.steps[size_t(number)].type.dtype;
  bool read_here = false, read_later = false, used_later = false;
  for (size_t i = position + 1; i < steps.size(); i++) read_here |= reads_input(steps[i], dtype);
  for (int i = inputs_; i < count_; i++) {
    if (values_[size_t(i)].done) continue;
    read_later |= reads_input(i, dtype);
    const auto& inputs = graph_.steps[size_t(i)].inputs;
    used_later |= std::find(inputs.begin(), inputs.end(), number) != inputs.end();
  }
  if (used_later) tile_of(number);
  for (size_t i = 0; i < graph_.outputs.size(); i++) {
    if (graph_.outputs[i] != number) continue;
    if (i < options_.folds.size()) {
      emit_fold(int(i), dtype);
      continue;
    }
    const int place = add_place({Place::Kind::output, int(i), dtype});
    if (read_later) {
      code_.delayed.push_back({tile_of(number), int(i), dtype});
    } else if (read_here) {
      waiting_.push_back({number, place});
      values_[size_t(number)].uses++;
    } else {
      emit_store(place);
    }
  }
}

void Compiler::prefetch_inputs(const std::vector<int>& steps) {
  std::vector<bool> seen(size_t(inputs_), false);
  for (int step : steps) {
    for (int input : graph_.steps[size_t(step)].inputs) {
      if (input >= inputs_ || seen[size_t(input)]) continue;
      seen[size_t(input)] = true;
      const uint32_t far = options_.far.empty() ? 0 : options_.far[size_t(input)];
      if (far > 0) emit(move_stage(Move::far, wide_, DType::i8), memory_place(input), int(far));
      if (reaches_[size_t(input)] != Reach::direct) continue;
      const DType dtype = graph_.steps[size_t(input)].type.dtype;
      const Instruction prefetch{move_stage(Move::prefetch, wide_, dtype),
                                 uint32_t(memory_place(input)), 0};
      code_.segments.back().streamed.push_back(prefetch);
      if (options_.ahead) code_.segments.back().cached.push_back(prefetch);
      if (options_.ahead) code_.segments.back().padded.push_back(prefetch);
    }
  }
}

void Compiler::compile_segment(const std::vector<int>& steps, bool wide) {
  code_.segments.emplace_back();
  wide_ = wide;
  in_registers_ = kNone;
  slot_taken_.clear();
  for (Value& value : values_) value.uses = 0, value.slot = kNone;
  for (int step : steps) {
    for (int input : graph_.steps[size_t(step)].inputs) values_[size_t(input)].uses++;
  }
  prefetch_inputs(steps);
  for (size_t i = 0; i < steps.size(); i++) {
    compute(steps[i]);
    place_result(steps, i);
  }
  for (const Waiting& waiting : waiting_) {
    bring(waiting.step);
    emit_store(waiting.place);
    use(waiting.step);
  }
  waiting_.clear();
  emit(move_stage(Move::loop, wide_, DType::i8));
}

Code Compiler::compile() {
  choose_widths();
  code_.folds = options_.folds;
  for (bool wide = false, idle = false;; wide = !wide) {
    const std::vector<int> steps = take_segment(wide);
    if (steps.empty() && idle) break;
    idle = steps.empty();
    if (!steps.empty()) compile_segment(in_good_order(steps), wide);
  }
  for (size_t i = 0; i < code_.places.size(); i++) {
    const Place::Kind kind = code_.places[i].kind;
    const bool rests = kind == Place::Kind::constant || kind == Place::Kind::slot;
    if (!rests) code_.moving.push_back(uint32_t(i));
  }
  return std::move(code_);
}

}  // namespace

double cost_of(Op op) { return op == Op::cast ? 0.06 : op_stages(DType::f32, op).cost; }

Code compile(const Graph& graph, std::span<const Reach> reaches, CompileOptions options) {
  return Compiler(graph, reaches, std::move(options)).compile();
}

}  // namespace fornax::flex
