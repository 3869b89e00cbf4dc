// Drawing random graphs.
#include "tests/ops/random_graph.h"

#include <fornax/ops.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/evaluate.h"
#include "tests/ops/compare.h"
#include "tests/ops/sample.h"

namespace fornax::conformance {
namespace {

// Half of them above what runs at once, so that both ways meet.  The last two are pictures and the
// weight of a convolution.
const Shape kShapes[] = {{},    {1},        {32},   {24, 1},      {24, 32},    {32, 24},
                         {768}, {4, 6, 32}, {5, 7}, {2, 4, 6, 5}, {4, 2, 3, 3}};

constexpr int64_t kFewTerms = 8;  // so many terms of a sum pass on what smooth graphs forgive

// Where operand `k` of a trial lies for `place` from 0 to 1.
double placed(Op op, int k, double place) {
  const Domain all{-4, 4}, d = domain_of(op, k).value_or(all);
  return d.low + (d.high - d.low) * place;
}

// Whether small changes of operands in the range make small changes of the result, by trying.
bool is_smooth(Op op) {
  const int operands = info(op).inputs;
  const double step = domain_of(op, 0) ? 0x1p-10 : 0x1p-13;  // in places
  for (int i = 0; i < 4096; i++) {
    Word words[3], moved[3];
    const double at[] = {double(i % 64) / 64, double(i / 64) / 64};
    for (int k = 0; k < operands; k++) {
      words[k] = word_of(placed(op, k, at[k % 2]));
      moved[k] = word_of(placed(op, k, at[k % 2] + step));
    }
    const auto value = [&](const Word* numbers) {
      const Word* pointers[] = {numbers, numbers + 1, numbers + 2};
      Word result[1];
      evaluate(op, DType::f64, std::span(pointers, size_t(operands)), result);
      return as<double>(result[0]);
    };
    const double change = value(moved) - value(words);
    if (!(std::fabs(change) <= kSteepest * 2 * 0x1p-10)) return false;
  }
  return true;
}

bool may_use(Op op, Numbers numbers) {
  if (numbers == Numbers::all) return true;
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
  switch (op) {
    case Op::max:
    case Op::min:
    case Op::cummax:
    case Op::cumprod:
    case Op::prod:
    case Op::sum:
    case Op::arange:
    case Op::random_bits:
    case Op::cast:
      return true;
    case Op::pool_argmax:
      return false;
    default:
      return is_view(op) || info(op).family == Family::index ||
             info(op).family == Family::contract || info(op).family == Family::convolve;
  }
}

class Drawing {
 public:
  Drawing(Numbers numbers, uint64_t seed) : random_(seed) {
    graph_.numbers = numbers;
    graph_.wide = seed % 3 == 0;
    dtypes_ = {DType::f32, DType::i32, DType::bool_};
    if (graph_.wide) dtypes_ = {DType::f32, DType::i32, DType::bool_, DType::f64, DType::i64};
    for (const Shape& shape : kShapes) {
      for (DType dtype : dtypes_) add({dtype, shape});
      add({DType::f32, shape});
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
  // A value whose type `fits`; -1 where luck fails.
  template <class Fits>
  int such(Fits fits) {
    for (int attempt = 0; attempt < 40; attempt++) {
      const int i = any();
      if (fits(types_[size_t(i)])) return i;
    }
    return -1;
  }
  // One that broadcasts with `shape`.
  int like(DType dtype, const Shape& shape) {
    return such([&](const Type& type) {
      if (type.dtype != dtype) return false;
      try {
        return broadcast(type.shape, shape).element_count() <= 1024;
      } catch (const Error&) {
        return false;
      }
    });
  }
  int scalar(DType dtype) {
    return such([&](const Type& type) { return type == Type{dtype, {}}; });
  }
  // Whether floats of `dtype` are such that errors grow where many are added.
  bool grows(DType dtype) const { return graph_.numbers == Numbers::smooth && is_floating(dtype); }

  void try_one() {
    const Op op = Op(below(op_count()));
    if (!may_use(op, graph_.numbers)) return;
    Instruction step{op, {}, {}, below(8) == 0, below(24) == 0};
    if (!operands(step)) return;
    for (int input : step.inputs) {
      if (input < 0) return;
    }
    const Type word{DType::u64, {}};  // run() casts the operands of random_bits
    std::vector<const Type*> types;
    for (int input : step.inputs) {
      types.push_back(op == Op::random_bits ? &word : &types_[size_t(input)]);
    }
    Type type;
    try {
      type = infer({op, types.data(), int(types.size()), step.attributes});
    } catch (const Error&) {
      return;
    }
    if (type.shape.element_count() > 4096) return;
    type.dtype = kept_dtype(type.dtype, graph_.wide);
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
      const DType dtype = selects ? dtypes_[size_t(below(int64_t(dtypes_.size())))] : x.dtype;
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
      case Family::convolve:
        return convolve(step, x);
      case Family::index:
        return index(step, x);
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

  // Products of floats round, and pass on errors of all their factors.
  bool may_multiply(const Type& x, int64_t factors) const {
    if (!is_floating(x.dtype) || graph_.numbers == Numbers::all) return true;
    return graph_.numbers == Numbers::smooth && factors <= kFewTerms;
  }

  bool reduce(Instruction& step, const Type& x) {
    const bool one = step.op == Op::argmax || step.op == Op::argmin;
    int64_t terms = 1;
    for (int axis = 0; axis < x.shape.rank(); axis++) {
      if (below(2) != 0 || (one && !step.attributes.empty())) continue;
      step.attributes.push_back(axis);
      terms *= x.shape[axis];
    }
    if (step.op == Op::prod && !may_multiply(x, terms)) return false;
    return !step.attributes.empty();
  }

  bool scan(Instruction& step, const Type& x) {
    if (x.shape.rank() == 0) return false;
    const int axis = below(x.shape.rank());
    step.attributes = {axis};
    if (step.op == Op::argsort) step.attributes.push_back(below(2));
    return step.op != Op::cumprod || may_multiply(x, x.shape[axis]);
  }

  bool matmul(Instruction& step, const Type& x) {
    if (is_boolean(x.dtype) || x.shape.rank() != 2) return false;
    step.inputs.push_back(such([&](const Type& type) {
      return type.dtype == x.dtype && type.shape.rank() == 2 && type.shape[0] == x.shape[1];
    }));
    return true;
  }

  // x is the picture, or dy for convolve_input.
  bool convolve(Instruction& step, const Type& x) {
    if (is_boolean(x.dtype) || x.shape.rank() != 4) return false;
    Window2d w;
    w.size[0] = w.size[1] = 2;
    if (step.op != Op::pool_argmax) {
      step.inputs.push_back(
          such([&](const Type& type) { return type.dtype == x.dtype && type.shape.rank() == 4; }));
      if (step.inputs[1] < 0) return false;
    }
    const Shape& other = types_[size_t(step.inputs.back())].shape;
    for (int i = 0; i < 2; i++) {
      w.stride[i] = 1 + below(2);
      w.before[i] = below(2), w.after[i] = below(2);
      const int64_t around = w.before[i] + w.after[i];
      if (step.op == Op::convolve || step.op == Op::convolve_input) w.size[i] = other[2 + i];
      if (step.op == Op::convolve_input) {
        w.extent[i] = (x.shape[2 + i] - 1) * w.stride[i] + w.size[i] - around;
      }
      if (step.op == Op::convolve_weight) {
        w.size[i] = x.shape[2 + i] + around - (other[2 + i] - 1) * w.stride[i];
      }
    }
    if (step.op == Op::convolve && x.shape[1] % other[1] == 0) w.groups = x.shape[1] / other[1];
    step.attributes = w.pack();
    return true;
  }

  bool index(Instruction& step, const Type& x) {
    const int rank = x.shape.rank();
    if (rank == 0) return false;
    const int axis = below(rank);
    switch (step.op) {
      case Op::cat:
        step.inputs.push_back(such([&](const Type& type) { return type.dtype == x.dtype; }));
        step.attributes = {axis};
        return true;
      case Op::pad:
        step.inputs.push_back(scalar(x.dtype));
        for (int i = 0; i < rank; i++) {
          const int64_t crop = x.shape[i] > 2 ? -1 : 1;
          step.attributes.insert(step.attributes.end(), {1, crop, below(4) == 0});
        }
        return true;
      case Op::fold: {
        // The last axis holds the windows' elements.
        const int64_t size = x.shape[rank - 1], by = 1 + below(2), dilation = 1 + below(2);
        if (rank < 2 || (grows(x.dtype) && size > kFewTerms)) return false;
        const int64_t extent = (x.shape[0] - 1) * by + (size - 1) * dilation + 1;
        step.attributes = {0, size, by, dilation, extent + below(by)};
        return true;
      }
      default:
        return gather(step, x, axis);
    }
  }

  // Also scatter.  run() brings the index into the axis.
  bool gather(Instruction& step, const Type& x, int axis) {
    step.inputs.push_back(such([&](const Type& type) {
      if (!is_integer(type.dtype) || type.shape.rank() != x.shape.rank()) return false;
      for (int i = 0; i < x.shape.rank(); i++) {
        if (i != axis && type.shape[i] != x.shape[i]) return false;
      }
      return true;
    }));
    step.attributes = {axis};
    if (step.op == Op::gather || step.inputs[1] < 0) return true;
    const Type values{x.dtype, types_[size_t(step.inputs[1])].shape};
    step.inputs.push_back(such([&](const Type& type) { return type == values; }));
    const auto mode = ScatterMode(below(5));
    step.attributes = ScatterSettings::pack(axis, mode);
    return mode != ScatterMode::multiply || may_multiply(x, kFewTerms + 1);
  }

  bool other(Instruction& step, const Type& x) {
    if (step.op == Op::cast) {
      const DType target = dtypes_[size_t(below(int64_t(dtypes_.size())))];
      step.attributes = {int64_t(target)};
      return graph_.numbers != Numbers::smooth || (is_floating(x.dtype) && is_floating(target));
    }
    if (step.op == Op::arange) {
      if (is_boolean(x.dtype)) return false;
      step.inputs = {scalar(x.dtype), scalar(x.dtype)};
      step.attributes = {int64_t(x.dtype), grows(x.dtype) ? kFewTerms : 1 + below(40)};
      return true;
    }
    if (step.op != Op::random_bits) return false;
    step.inputs = {scalar(DType::i32), scalar(DType::i32)};
    const Shape& shape = kShapes[size_t(below(std::size(kShapes)))];
    step.attributes.assign(shape.begin(), shape.end());
    return true;
  }

  std::mt19937_64 random_;
  RandomGraph graph_;
  std::vector<DType> dtypes_;
  std::vector<Type> types_;
};

}  // namespace

RandomGraph random_graph(Numbers numbers, uint64_t seed, int instructions) {
  return Drawing(numbers, seed).draw(instructions);
}

}  // namespace fornax::conformance
