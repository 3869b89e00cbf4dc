// Drawing and running random graphs.
#include "tests/ops/random_graph.h"

#include <fornax/ops.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/evaluate.h"
#include "tests/ops/compare.h"

namespace fornax::conformance {
namespace {

// Half of them above what runs at once, so that both ways meet.
const Shape kShapes[] = {{}, {1}, {32}, {24, 1}, {24, 32}, {32, 24}, {768}, {4, 6, 32}, {5, 7}};

constexpr double kLargest = 4;   // what floats are cut to after each op
constexpr double kSteepest = 4;  // slope of smooth functions

// Whether small changes of operands in the range make small changes of the result, by trying.
bool is_smooth(Op op) {
  const int operands = info(op).inputs;
  constexpr double step = 0x1p-10;
  for (int i = 0; i < 4096; i++) {
    Word words[3], moved[3];
    const double at[] = {double(i % 64) / 8 - kLargest, double(i / 64) / 8 - kLargest};
    for (int k = 0; k < operands; k++) {
      words[k] = word_of(at[k % 2]);
      moved[k] = word_of(at[k % 2] + step);
    }
    const auto value = [&](const Word* numbers) {
      const Word* pointers[] = {numbers, numbers + 1, numbers + 2};
      Word result[1];
      evaluate(op, DType::f64, std::span(pointers, size_t(operands)), result);
      return as<double>(result[0]);
    };
    const double change = value(moved) - value(words);
    if (!(std::fabs(change) <= kSteepest * 2 * step)) return false;
  }
  return true;
}

bool may_use(Op op, Numbers numbers) {
  if (numbers == Numbers::all) return true;
  if (op == Op::prod || op == Op::cumprod) return false;
  if (numbers == Numbers::exact) return is_exact(op);
  const bool floating =
      is_pointwise(op) && info(op).rule != Rule::selected && takes(op, DType::f64);
  if (floating && is_floating(result_dtype(op, DType::f64))) {
    static const std::vector<char> smooth = [] {
      std::vector<char> list;
      for (int i = 0; i < op_count(); i++) {
        const bool tried = is_pointwise(Op(i)) && info(Op(i)).rule != Rule::selected &&
                           takes(Op(i), DType::f64) && is_floating(result_dtype(Op(i), DType::f64));
        list.push_back(tried && is_smooth(Op(i)));
      }
      return list;
    }();
    return smooth[size_t(op)] != 0;
  }
  // Answers of yes and no, and positions, jump.
  return is_view(op) || op == Op::sum || op == Op::max || op == Op::min || op == Op::matmul ||
         op == Op::cat || op == Op::pad || op == Op::cummax;
}

class Drawing {
 public:
  Drawing(Numbers numbers, uint64_t seed) : random_(seed) {
    graph_.numbers = numbers;
    for (const Shape& shape : kShapes) {
      for (DType dtype : {DType::f32, DType::f32, DType::i32, DType::bool_}) add({dtype, shape});
    }
    graph_.leaves = types_;
  }

  RandomGraph draw(int instructions) {
    while (int(graph_.instructions.size()) < instructions) try_one();
    graph_.last_use.assign(types_.size(), -1);
    for (size_t i = 0; i < graph_.instructions.size(); i++) {
      for (int input : graph_.instructions[i].inputs) graph_.last_use[size_t(input)] = int(i);
    }
    return std::move(graph_);
  }

 private:
  int below(int64_t limit) { return int(random_() % uint64_t(std::max<int64_t>(limit, 1))); }
  void add(Type type) { types_.push_back(std::move(type)); }

  // A value, late ones more often.
  int any() {
    const int count = int(types_.size());
    return below(2) ? below(count) : count - 1 - below(std::min(count, 12));
  }
  // A value of the dtype that broadcasts with `shape`; -1 where luck fails.
  int like(DType dtype, const Shape& shape) {
    for (int attempt = 0; attempt < 40; attempt++) {
      const int i = any();
      if (types_[size_t(i)].dtype != dtype) continue;
      try {
        if (broadcast(types_[size_t(i)].shape, shape).element_count() <= 1024) return i;
      } catch (const Error&) {
      }
    }
    return -1;
  }

  void try_one() {
    const Op op = Op(below(op_count()));
    if (!may_use(op, graph_.numbers)) return;
    Instruction step{op, {}, {}, below(8) == 0, below(24) == 0};
    if (!operands(step)) return;
    for (int input : step.inputs) {
      if (input < 0) return;
    }
    std::vector<const Type*> types;
    for (int input : step.inputs) types.push_back(&types_[size_t(input)]);
    Type type;
    try {
      type = infer({op, types.data(), int(types.size()), step.attributes});
    } catch (const Error&) {
      return;
    }
    if (type.shape.element_count() > 4096) return;
    // Sums widen to i64, which would leave the family of dtypes; run() casts them back.
    if (type.dtype == DType::i64) type.dtype = DType::i32;
    add(type);
    graph_.instructions.push_back(std::move(step));
  }

  bool operands(Instruction& step) {
    const int first = any();
    const Type& x = types_[size_t(first)];
    step.inputs = {first};
    if (is_pointwise(step.op)) {
      const bool selects = info(step.op).rule == Rule::selected;
      if (!selects && !takes(step.op, x.dtype)) return false;
      if (selects && !is_boolean(x.dtype)) return false;
      const DType dtype = selects ? DType::f32 : x.dtype;
      for (int i = 1; i < info(step.op).inputs; i++) step.inputs.push_back(like(dtype, x.shape));
      return true;
    }
    switch (info(step.op).family) {
      case Family::view:
        return view(step, x);
      case Family::reduce:
        return reduce(step, x);
      case Family::scan:
        return scan(step, x);
      case Family::contract:
        return matmul(step, x);
      default:
        return other(step, x);
    }
  }

  // The shape with some axes of size 1 fewer, or one more.
  Shape with_other_ones(const Shape& shape) {
    Shape wanted;
    for (int64_t size : shape) {
      if (size != 1 || below(2)) wanted.push_back(size);
    }
    if (wanted.rank() < 5 && below(2)) wanted.insert(below(wanted.rank() + 1), 1);
    return wanted;
  }

  bool view(Instruction& step, const Type& x) {
    const int rank = x.shape.rank();
    Attributes& a = step.attributes;
    switch (step.op) {
      case Op::detach:
        return true;
      case Op::reshape: {
        const Shape wanted =
            below(2) ? with_other_ones(x.shape) : kShapes[size_t(below(std::size(kShapes)))];
        a.assign(wanted.begin(), wanted.end());
        return true;
      }
      case Op::permute:
        for (int i = 0; i < rank; i++) a.push_back(i);
        std::shuffle(a.begin(), a.end(), random_);
        return rank > 1;
      case Op::expand:
        a = {24, 32};
        return x.shape.element_count() > 1;
      case Op::slice:
        for (int64_t size : x.shape) {
          const int64_t count = size == 0 ? 0 : 1 + below(size);
          const bool back = below(3) == 0;
          a.insert(a.end(), {back ? count - 1 : size - count, count, back ? -1 : 1});
        }
        return rank > 0;
      default:
        if (rank == 0 || x.shape[0] < 3) return false;
        a = {0, 3, 2, 1, x.shape[0]};
        return true;
    }
  }

  bool reduce(Instruction& step, const Type& x) {
    const bool one = step.op == Op::argmax || step.op == Op::argmin;
    for (int axis = 0; axis < x.shape.rank(); axis++) {
      if (below(2) == 0 && !(one && !step.attributes.empty())) step.attributes.push_back(axis);
    }
    return !step.attributes.empty();
  }

  bool scan(Instruction& step, const Type& x) {
    if (x.shape.rank() == 0) return false;
    step.attributes = {below(x.shape.rank())};
    if (step.op == Op::argsort) step.attributes.push_back(below(2));
    return true;
  }

  bool matmul(Instruction& step, const Type& x) {
    if (x.dtype != DType::f32 || x.shape.rank() != 2) return false;
    step.inputs.push_back(any());
    return types_[size_t(step.inputs[1])].dtype == DType::f32;
  }

  bool other(Instruction& step, const Type& x) {
    if (x.shape.rank() == 0) return false;
    if (step.op == Op::cat) {
      step.inputs.push_back(any());
      step.attributes = {below(x.shape.rank())};
      return true;
    }
    if (step.op == Op::cast) {
      constexpr DType targets[] = {DType::f32, DType::i32, DType::bool_};
      step.attributes = {int64_t(targets[below(3)])};
      return true;
    }
    if (step.op != Op::pad) return false;
    step.inputs.push_back(like(x.dtype, {}));
    for (int axis = 0; axis < x.shape.rank(); axis++) {
      const int64_t crop = x.shape[axis] > 2 ? -1 : 1;
      step.attributes.insert(step.attributes.end(), {1, crop, 0});
    }
    return true;
  }

  std::mt19937_64 random_;
  RandomGraph graph_;
  std::vector<Type> types_;
};

// Keeps numbers small and, where asked for, on the grid of eighths.
Tensor tamed(const Tensor& y, Numbers numbers) {
  if (y.dtype() == DType::i64) return (y % 97).cast(DType::i32);
  if (y.dtype() == DType::i32) return y % 97;
  if (y.dtype() != DType::f32) return y;
  const Tensor bounded = where(is_finite(y), y, 1).clamp(-kLargest, kLargest);
  if (numbers == Numbers::exact) return (bounded * 8).round() / 8;
  return numbers == Numbers::smooth ? bounded * (1 / (2 * kSteepest)) + 0.5 : bounded;
}

}  // namespace

RandomGraph random_graph(Numbers numbers, uint64_t seed, int instructions) {
  return Drawing(numbers, seed).draw(instructions);
}

std::vector<Tensor> run(const RandomGraph& graph, Device device) {
  std::vector<Tensor> values, kept;
  for (size_t i = 0; i < graph.leaves.size(); i++) {
    const Tensor leaf = make({graph.leaves[i]}, 0, Form::contiguous, i, device);
    values.push_back(tamed(leaf, graph.numbers));
  }
  for (size_t i = 0; i < graph.instructions.size(); i++) {
    const Instruction& step = graph.instructions[i];
    if (step.flush) device.flush();
    std::vector<Tensor> inputs;
    for (int input : step.inputs) inputs.push_back(values[size_t(input)]);
    const Tensor y = apply(step.op, inputs, step.attributes);
    values.push_back(is_view(step.op) ? y : tamed(y, graph.numbers));
    inputs.clear();
    for (int input : step.inputs) {
      if (graph.last_use[size_t(input)] == int(i)) values[size_t(input)] = Tensor();
    }
    if (step.keep) kept.push_back(values.back());
  }
  return kept;
}

}  // namespace fornax::conformance
