// The program that the kernel reads: who fills the first registers, which steps follow, what is
// written.  A thread computes one element; its registers are a column of shared memory, because the
// numbers of registers are not known when the kernel is compiled.  A bool is 0 or 1 there.
#include "backends/cube/stepwise.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "backends/cube/operand.h"

namespace fornax::cube {
namespace {

constexpr int kThreads = 128;
constexpr int kReads = 8, kNumbers = 8, kWrites = 4;
constexpr int kRank = 4;
constexpr int kRegisters = 48;  // 24 KiB of shared memory

// Where a part of the program begins, in words.  An operand in memory is a register and a stride
// per axis, a step is what it does and three registers; it fills the register after the last
// step's.
constexpr int kOperandWords = 1 + kRank, kStepWords = 4;
constexpr int kReadsAt = 0;
constexpr int kWritesAt = kReadsAt + kReads * kOperandWords;
constexpr int kNumbersAt = kWritesAt + kWrites * kOperandWords;
constexpr int kStepsAt = kNumbersAt + kNumbers;

// Seldom used, and together they would take a compiler longer than all the others.
constexpr Op kRare[] = {Op::tan,       Op::asin,  Op::acos,         Op::atan,  Op::sinh,
                        Op::cosh,      Op::asinh, Op::acosh,        Op::atanh, Op::floor_divide,
                        Op::remainder, Op::fmod,  Op::trunc_divide, Op::pow,   Op::atan2};

// What an op takes and gives; `none`: it is not done here.
enum class Kind : uint8_t { none, numbers, question, logic, choice };
Kind kind_of(Op op) {
  const bool rare = std::find(std::begin(kRare), std::end(kRare), op) != std::end(kRare);
  if (rare || !is_pointwise(op) || op == Op::shift_left || op == Op::shift_right) {
    return Kind::none;
  }
  switch (info(op).rule) {
    case Rule::same:
    case Rule::signed_same:
    case Rule::floating:
    case Rule::exponential:
      return Kind::numbers;
    case Rule::boolean:
    case Rule::floating_boolean:
      return Kind::question;
    case Rule::bitwise:
      return Kind::logic;
    case Rule::selected:
      return Kind::choice;
    default:
      return Kind::none;
  }
}

// All that it does, in the order of the numbers in programs.
const std::vector<Op>& known_ops() {
  static const std::vector<Op> known = [] {
    std::vector<Op> list;
    for (int op = 0; op < op_count(); op++) {
      if (kind_of(Op(op)) != Kind::none) list.push_back(Op(op));
    }
    return list;
  }();
  return known;
}

class StepwiseKernel {
 public:
  kernel::Kernel build() {
    declare();
    k_.when(element_ < count_, [&] {
      const Position at = position_of(k_, extents_, element_);
      for (int i = 0; i < kReads; i++) {
        k_.when(reads_ > i, [&] {
          set(word(kReadsAt + i * kOperandWords), k_.load(x_[i], place(at, kReadsAt, i)));
        });
      }
      for (int i = 0; i < kNumbers; i++) {
        k_.when(numbers_ > i, [&] { set(word(kNumbersAt + i), number_[i]); });
      }
      k_.loop(0, steps_, 1, [&](Value step) {
        const Value begin = step * kStepWords + kStepsAt;
        const auto operand = [&](int i) { return get(k_.load(program_, begin + (1 + i))); };
        kernel::Variable result(k_.constant(DType::f32, 0));
        choose(k_.load(program_, begin), {operand(0), operand(1), operand(2)}, 0,
               int(known_ops().size()), result);
        set(first_ + step, result);
      });
      for (int i = 0; i < kWrites; i++) {
        k_.when(writes_ > i, [&] {
          k_.store(y_[i], place(at, kWritesAt, i), get(word(kWritesAt + i * kOperandWords)));
        });
      }
    });
    return k_.finish();
  }

 private:
  void declare() {
    const kernel::Facts shared_memory{.aliased = true};  // a result may take an input's over
    program_ = k_.buffer("program", DType::i32);
    for (int i = 0; i < kReads; i++) {
      x_.push_back(k_.buffer(fmt::format("x{}", i), DType::f32, shared_memory));
    }
    for (int i = 0; i < kWrites; i++) {
      y_.push_back(k_.output(fmt::format("y{}", i), DType::f32, shared_memory));
    }
    for (int i = 0; i < kNumbers; i++) {
      number_.push_back(declare_scalar(k_, fmt::format("number{}", i), DType::f32));
    }
    reads_ = k_.number("reads", DType::i32);
    writes_ = k_.number("writes", DType::i32);
    numbers_ = k_.number("numbers", DType::i32);
    first_ = k_.number("first", DType::i32);
    steps_ = k_.number("steps", DType::i32);
    extents_ = declare_extents(k_, kRank, DType::i32);
    count_ = k_.number("count", DType::i32);
    registers_ = k_.shared(DType::f32, kRegisters * kThreads);
    element_ = thread_number(k_, DType::i32);
  }

  Value word(int at) { return k_.load(program_, k_.constant(DType::i32, at)); }
  Value get(Value number) { return k_.load(registers_, number * kThreads + k_.thread()); }
  void set(Value number, Value value) {
    k_.store(registers_, number * kThreads + k_.thread(), value);
  }
  // The element of operand number `i`, whose words begin with those at `first`.
  Value place(const Position& at, int first, int i) {
    Value index = k_.constant(DType::i32, 0);
    for (int axis = 0; axis < kRank; axis++) {
      index = index + at[size_t(axis)] * word(first + i * kOperandWords + 1 + axis);
    }
    return index;
  }

  // Halves the ops between `begin` and `end` until `op` is one.
  void choose(Value op, const std::vector<Value>& operands, int begin, int end,
              kernel::Variable& result) {
    if (end - begin == 1) {
      result = value_of(known_ops()[size_t(begin)], operands);
      return;
    }
    const int middle = (begin + end) / 2;
    k_.when(
        op < middle, [&] { choose(op, operands, begin, middle, result); },
        [&] { choose(op, operands, middle, end, result); });
  }

  Value value_of(Op op, std::vector<Value> operands) {
    operands.resize(size_t(info(op).inputs));
    const Kind kind = kind_of(op);
    for (size_t i = 0; i < operands.size(); i++) {
      if (kind == Kind::logic || (kind == Kind::choice && i == 0)) operands[i] = operands[i] != 0;
    }
    const Value value = kernel::evaluate(k_, op, operands);
    return value.dtype() == DType::f32 ? value : k_.cast(value, DType::f32);
  }

  Builder k_{"stepwise", {.threads = kThreads}};
  Value program_, reads_, writes_, numbers_, first_, steps_, count_, registers_, element_;
  std::vector<Value> x_, y_, number_;
  std::vector<Extent> extents_;
};

// Whether the step is one of those, on operands of the dtypes that it has there.
bool is_known(const Graph& graph, const Step& step) {
  const Kind kind = kind_of(step.op);
  if (kind == Kind::none) return false;
  const bool gives_bool = kind == Kind::question || kind == Kind::logic;
  if (step.type.dtype != (gives_bool ? DType::bool_ : DType::f32)) return false;
  for (size_t i = 0; i < step.inputs.size(); i++) {
    const bool takes_bool = kind == Kind::logic || (kind == Kind::choice && i == 0);
    const DType dtype = graph.steps[size_t(step.inputs[i])].type.dtype;
    if (dtype != (takes_bool ? DType::bool_ : DType::f32)) return false;
  }
  return true;
}

// Some work as a program and as the arguments of its launch.
class Listing {
 public:
  Listing(const Elementwise& work) : work_(work), graph_(work.graph) {
    operands_ = work.reads;
    operands_.insert(operands_.end(), work.writes.begin(), work.writes.end());
    std::vector<Strides> strides;
    for (const ElementwiseOperand& operand : operands_) strides.push_back(operand.strides);
    nest_ = collapse(work.domain, std::move(strides));
    while (nest_.rank() < kRank) {
      nest_.extents.insert(nest_.extents.begin(), 1);
      for (Strides& list : nest_.strides) list.insert(list.begin(), 0);
    }
    for (size_t i = 0; i < operands_.size(); i++) {
      const bool read = i < work.reads.size();
      (read ? is_number(i) ? numbers_ : reads_ : writes_).push_back(i);
    }
  }

  bool possible() const {
    if (nest_.rank() > kRank || reads_.size() > kReads || writes_.size() > kWrites ||
        numbers_.size() > kNumbers || graph_.steps.size() > kRegisters) {
      return false;
    }
    std::vector<Span> spans;
    for (size_t i = 0; i < operands_.size(); i++) {
      const DType dtype = graph_.steps[size_t(operands_[i].step)].type.dtype;
      spans.push_back(span_of(nest_.extents, nest_.strides[i]));
      if (dtype != DType::f32 || spans.back().lowest < 0) return false;
    }
    return index_dtype(nest_.count(), spans) == DType::i32 &&
           std::all_of(graph_.steps.begin() + work_.inputs, graph_.steps.end(),
                       [&](const Step& step) { return is_known(graph_, step); });
  }

  std::vector<int32_t> words() const {
    std::vector<int32_t> words(size_t(kStepsAt), 0);
    const auto put = [&](int at, const std::vector<size_t>& list) {
      for (const size_t operand : list) {
        words[size_t(at)] = operands_[operand].step;
        for (int axis = 0; axis < kRank; axis++) {
          words[size_t(at + 1 + axis)] = int32_t(nest_.strides[operand][size_t(axis)]);
        }
        at += kOperandWords;
      }
    };
    put(kReadsAt, reads_);
    put(kWritesAt, writes_);
    for (size_t i = 0; i < numbers_.size(); i++) {
      words[kNumbersAt + i] = operands_[numbers_[i]].step;
    }
    for (size_t i = size_t(work_.inputs); i < graph_.steps.size(); i++) {
      const Step& step = graph_.steps[i];
      const auto at = std::lower_bound(known_ops().begin(), known_ops().end(), step.op);
      words.push_back(int32_t(at - known_ops().begin()));
      for (size_t k = 0; k < 3; k++) words.push_back(k < step.inputs.size() ? step.inputs[k] : 0);
    }
    return words;
  }

  // The program is scratch memory number 0; so is what is never touched.
  Arguments arguments(size_t words) const {
    Arguments arguments;
    const Place program = Place::scratch(0);
    arguments.buffer(program, DType::i32, 0, int64_t(words));
    const auto pass = [&](const std::vector<size_t>& list, int most) {
      for (const size_t i : list) {
        arguments.buffer(operands_[i].place, DType::f32, operands_[i].first,
                         span_of(nest_.extents, nest_.strides[i]).count);
      }
      for (int i = int(list.size()); i < most; i++) arguments.buffer(program, DType::f32, 0, 0);
    };
    pass(reads_, kReads);
    pass(writes_, kWrites);
    for (const size_t i : numbers_) arguments.scalar(operands_[i].place.number, DType::f32);
    for (int i = int(numbers_.size()); i < kNumbers; i++) arguments.number(DType::f32, 0);
    for (const size_t count : {reads_.size(), writes_.size(), numbers_.size(), size_t(work_.inputs),
                               graph_.steps.size() - size_t(work_.inputs)}) {
      arguments.number(DType::i32, int64_t(count));
    }
    pass_extents(arguments, nest_.extents, DType::i32);
    arguments.number(DType::i32, nest_.count());
    return arguments;
  }

  int64_t count() const { return nest_.count(); }

 private:
  bool is_number(size_t operand) const {
    return graph_.steps[size_t(operands_[operand].step)].op == Op::full;
  }

  const Elementwise& work_;
  const Graph& graph_;
  std::vector<ElementwiseOperand> operands_;  // reads, then writes
  Nest nest_;
  std::vector<size_t> reads_, writes_, numbers_;  // which operands
};

}  // namespace

std::unique_ptr<Stepwise> prepare_stepwise(Device& device, const Elementwise& work) {
  const Listing listing(work);
  if (!listing.possible()) return nullptr;
  std::vector<int32_t> words = listing.words();
  const KernelRecipe recipe{"stepwise", [] { return StepwiseKernel().build(); }};
  Launch launch(device, recipe, blocks_for(listing.count(), kThreads),
                listing.arguments(words.size()));
  return std::unique_ptr<Stepwise>(new Stepwise(device, std::move(words), std::move(launch)));
}

Stepwise::~Stepwise() {
  if (program_) device_.runtime().release(device_.ordinal(), program_);
}

void Stepwise::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  write_once_([this] {
    const size_t bytes = words_.size() * sizeof(int32_t);
    if (!program_) program_ = device_.runtime().allocate(device_.ordinal(), bytes);
    device_.runtime().write(device_.ordinal(), program_, words_.data(), bytes);
  });
  launch_.run(device_, inputs, outputs, {&program_, 1});
}

void Meanwhile::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  const bool waits = own_->waits() && stepwise_->ready();
  const PreparedGroup& chosen = waits ? static_cast<const PreparedGroup&>(*stepwise_) : *own_;
  chosen.run(inputs, outputs);
}

}  // namespace fornax::cube
