// A kernel as a list of steps: places for its values, and jumps for its control flow.
#include <algorithm>

#include "graph/evaluate.h"
#include "kernel/control_steps.h"
#include "kernel/machine.h"

namespace fornax::kernel {
namespace {

struct Shape {
  uint32_t at = 0, rows = 1, columns = 1;
};

class Preparer {
 public:
  explicit Preparer(Program& program)
      : program_(program), kernel_(program.kernel), simt_(kernel_.dialect == Dialect::simt) {
    shapes_.resize(kernel_.values.size());
    memory_of_.assign(kernel_.values.size(), -1);
    shared_ = plan_shared(kernel_);
    program_.shared_bytes = shared_.bytes;
    for (size_t i = 0; i < kernel_.parameters.size(); i++) add_parameter(ValueId(i));
    steps_ = &program_.steps;
    region(kernel_.body);
  }

 private:
  void add_parameter(ValueId value) {
    const ValueType& type = kernel_.type(value);
    program_.parameters.push_back(allot(value, 1, 1).at);
    if (type.memory == Memory::none) return;
    memory_of_[size_t(value)] = int(program_.memories.size());
    program_.memories.push_back({int(value), type.dtype, 0, 0});
  }

  Shape& allot(ValueId value, uint32_t rows, uint32_t columns) {
    Shape& shape = shapes_[size_t(value)];
    shape = {program_.words, rows, columns};
    program_.words += rows * columns;
    return shape;
  }
  // By its type; in a combining region, one scalar per element of the other axis.
  Shape& allot(ValueId value) {
    const ValueType& type = kernel_.type(value);
    if (simt_) return allot(value, type.lanes, kWarp);
    if (type.tile()) return allot(value, uint32_t(type.rows), uint32_t(type.columns));
    return allot(value, 1, combined_);
  }

  Place place(ValueId value) const {
    const Shape& shape = shapes_[size_t(value)];
    return {shape.at, shape.rows == 1 ? 0 : shape.columns, shape.columns == 1 ? 0u : 1u};
  }
  std::vector<Place> places(const std::vector<ValueId>& values) const {
    std::vector<Place> list;
    for (const ValueId value : values) list.push_back(place(value));
    return list;
  }
  uint32_t here() const { return uint32_t(steps_->size()); }

  // The number of the step; others may move it, so it is found by number.
  uint32_t emit(Run run, const Shape& result, std::vector<Place> operands) {
    Step step;
    step.run = run;
    step.result = result.at;
    step.rows = result.rows;
    step.columns = result.columns;
    step.operands = std::move(operands);
    step.id = current_;
    step.instruction = current_ < 0 ? nullptr : &kernel_.at(current_);
    steps_->push_back(std::move(step));
    return here() - 1;
  }
  uint32_t emit(Run run, std::vector<Place> operands = {}) {
    return emit(run, Shape{}, std::move(operands));
  }
  Step& at(uint32_t number) { return (*steps_)[number]; }

  void copy(const Place& from, const Shape& to) {
    emit(simt_ ? copy_masked : copy_all, to, {from});
  }
  // from[i] to to[i], as if at once.
  void copy_at_once(std::vector<Place> from, const std::vector<ValueId>& to) {
    for (size_t i = 0; i < from.size(); i++) {
      const bool overwritten = std::ranges::any_of(to, [&](ValueId other) {
        return other != to[i] && shapes_[size_t(other)].at == from[i].at;
      });
      if (!overwritten) continue;
      const Shape& like = shapes_[size_t(to[i])];
      const Shape between{program_.words, like.rows, like.columns};
      program_.words += like.rows * like.columns;
      copy(from[i], between);
      from[i] = {between.at, like.rows == 1 ? 0 : like.columns, like.columns == 1 ? 0u : 1u};
    }
    for (size_t i = 0; i < from.size(); i++) {
      const Shape& target = shapes_[size_t(to[i])];
      if (target.at != from[i].at) copy(from[i], target);
    }
  }

  void region(const Region& region) {
    for (const InstructionId id : region.instructions) {
      const InstructionId outer = std::exchange(current_, id);
      instruction(kernel_.at(id));
      current_ = outer;
    }
  }

  void instruction(const Instruction& made) {
    switch (made.code) {
      case Code::if_:
        return branch(made);
      case Code::loop:
        return loop(made);
      case Code::while_:
        return repeat(made);
      case Code::reduce:
      case Code::scan:
        return combine(made);
      case Code::constant:
        return constant(made);
      case Code::shared:
        return shared(made);
      case Code::pack:
        return pack(made);
      case Code::load:
      case Code::store:
      case Code::atomic:
      case Code::compare_exchange:
      case Code::mma:
        return access(made);
      default:
        return plain(made);
    }
  }

  void constant(const Instruction& made) {
    const Shape& shape = allot(made.results[0], 1, 1);
    uint64_t bits = 0;
    store(kernel_.type(made.results[0]).dtype, &bits, 0, {uint64_t(made.attributes[0])});
    program_.constants.emplace_back(shape.at, bits);
  }

  void shared(const Instruction& made) {
    const ValueId value = made.results[0];
    memory_of_[size_t(value)] = int(program_.memories.size());
    program_.memories.push_back({-1, kernel_.type(value).dtype,
                                 shared_.offsets[size_t(kernel_.values[size_t(value)].made_by)],
                                 made.attributes[0]});
  }

  void pack(const Instruction& made) {
    const Shape whole = allot(made.results[0]);
    for (uint32_t i = 0; i < made.operands.size(); i++) {
      emit(copy_all, {whole.at + i * whole.columns, 1, whole.columns}, {place(made.operands[i])});
    }
  }

  void plain(const Instruction& made) {
    const Code code = made.code;
    Run run = control_step(code);
    DType dtype = DType::f32;
    if (!made.operands.empty()) dtype = kernel_.type(made.operands[0]).dtype;
    if (code == Code::cast) {
      run = conversion(dtype, kernel_.type(made.results[0]).dtype);
    } else if (!run) {
      run = elementwise(code, dtype);
    }
    if (!run) run = step_refuse;
    std::vector<Place> operands = places(made.operands);
    if (code == Code::extract) {
      run = copy_all;
      operands[0].at += uint32_t(made.attributes[0]) * operands[0].row;
      operands[0].row = 0;
    }
    if (code == Code::part) {
      run = copy_all;
      operands[0].at += uint32_t(made.attributes[0]) * operands[0].column;
    }
    Shape result;
    if (made.results.empty() && !made.operands.empty()) {
      for (const ValueId operand : made.operands) {  // assert_: as its operands
        const Shape& shape = shapes_[size_t(operand)];
        result.rows = std::max(result.rows, shape.rows);
        result.columns = std::max(result.columns, shape.columns);
      }
    } else if (!made.results.empty()) {
      result = allot(made.results[0]);
    }
    Step& step = at(emit(run, result, std::move(operands)));
    step.dtype = dtype;
    if (code == Code::cast) step.target = uint32_t(kernel_.type(made.results[0]).dtype);
  }

  void access(const Instruction& made) {
    const Run run = made.code == Code::load     ? run_load
                    : made.code == Code::store  ? run_store
                    : made.code == Code::atomic ? run_atomic
                    : made.code == Code::mma    ? run_mma
                                                : run_compare_exchange;
    Shape result;
    if (!made.results.empty()) {
      result = allot(made.results[0]);
    } else {
      if (simt_) result.columns = kWarp;
      for (size_t i = 1; i < made.operands.size(); i++) {
        const Shape& shape = shapes_[size_t(made.operands[i])];
        result.rows = std::max(result.rows, shape.rows);
        result.columns = std::max(result.columns, shape.columns);
      }
    }
    Step& step = at(emit(run, result, places(made.operands)));
    if (made.code == Code::mma) {
      step.dtype = kernel_.type(made.results[0]).dtype;
      step.memory = memory_of_[size_t(made.operands[1])];
      step.memory_b = memory_of_[size_t(made.operands[3])];
      return;
    }
    step.memory = memory_of_[size_t(made.operands[0])];
    step.wide_index = kernel_.type(made.operands[1]).dtype == DType::i64;
    step.consecutive = simt_ && result.rows > 1 && kernel_.type(made.operands[1]).lanes == 1;
    if (made.code == Code::load && made.operands.size() > 2) step.mask = 2, step.otherwise = 3;
    if (made.code == Code::store || made.code == Code::atomic) {
      if (made.operands.size() > 3) step.mask = 3;
    }
  }

  void branch(const Instruction& made) {
    for (const ValueId result : made.results) allot(result);
    const uint32_t enter = emit(step_if, {place(made.operands[0])});
    side(made, 0);
    const uint32_t middle = emit(step_else);
    at(enter).target = middle;
    side(made, 1);
    at(middle).target = emit(step_end);
  }
  void side(const Instruction& made, size_t number) {
    region(made.regions[number]);
    const std::vector<Place> from = places(made.regions[number].yields);
    for (size_t i = 0; i < from.size(); i++) copy(from[i], shapes_[size_t(made.results[i])]);
  }

  // The results of a loop lie where its carried values do.
  void carry(const Instruction& made, size_t operand, size_t parameter) {
    for (size_t i = 0; i < made.results.size(); i++) {
      const ValueId carried = made.regions[0].parameters[parameter + i];
      shapes_[size_t(made.results[i])] = allot(carried);
      copy(place(made.operands[operand + i]), shapes_[size_t(carried)]);
    }
  }
  void loop(const Instruction& made) {
    const std::vector<ValueId>& parameters = made.regions[0].parameters;
    const Shape counter = allot(parameters[0]);
    const DType dtype = kernel_.type(parameters[0]).dtype;
    copy(place(made.operands[0]), counter);
    carry(made, 3, 1);
    emit(step_begin);
    const uint32_t head =
        emit(loop_head(dtype), counter, {place(made.operands[1]), place(made.operands[2])});
    region(made.regions[0]);
    copy_at_once(places(made.regions[0].yields), {parameters.begin() + 1, parameters.end()});
    const uint32_t back = emit(loop_next(dtype), counter, {place(made.operands[2])});
    at(back).target = head;
    at(head).target = emit(step_end);
  }
  void repeat(const Instruction& made) {
    carry(made, 0, 0);
    emit(step_begin);
    const uint32_t head = here();
    region(made.regions[0]);
    const uint32_t test = emit(step_test, {place(made.regions[0].yields[0])});
    region(made.regions[1]);
    copy_at_once(places(made.regions[1].yields), made.regions[0].parameters);
    at(emit(step_jump)).target = head;
    at(test).target = emit(step_end);
  }

  void combine(const Instruction& made) {
    const ValueType& type = kernel_.type(made.operands[0]);
    Step step;
    step.run = step_combine;
    step.rows = uint32_t(type.rows);
    step.columns = uint32_t(type.columns);
    step.operands = places(made.operands);
    for (const ValueId result : made.results) {
      allot(result);
      step.operands.push_back(place(result));
    }
    std::vector<Step>* outer = std::exchange(steps_, &step.region);
    combined_ = uint32_t(made.attributes[0] == 0 ? type.columns : type.rows);
    for (const ValueId parameter : made.regions[0].parameters) {
      allot(parameter);
      step.region_places.push_back(place(parameter));
    }
    region(made.regions[0]);
    // A yield may be a parameter that another one overwrites.
    for (const ValueId yield : made.regions[0].yields) {
      const Shape between{program_.words, 1, combined_};
      program_.words += combined_;
      emit(copy_all, between, {place(yield)});
      step.region_places.push_back({between.at, 0, combined_ == 1 ? 0u : 1u});
    }
    combined_ = 1;
    steps_ = outer;
    step.instruction = &made;
    step.id = current_;
    steps_->push_back(std::move(step));
  }

  Program& program_;
  const Kernel& kernel_;
  const bool simt_;
  SharedPlan shared_;
  std::vector<Shape> shapes_;
  std::vector<int> memory_of_;
  std::vector<Step>* steps_ = nullptr;
  InstructionId current_ = -1;
  uint32_t combined_ = 1;  // how many elements a combining region works on at once
};

}  // namespace

std::shared_ptr<const Program> prepare(Kernel kernel) {
  auto program = std::make_shared<Program>();
  program->kernel = std::move(kernel);
  Preparer{*program};
  return program;
}

}  // namespace fornax::kernel
