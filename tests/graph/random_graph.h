// Random valid graphs, with every op of the table.  For tests alone.
#pragma once
#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "graph/attributes.h"
#include "graph/graph.h"

namespace fornax::testing {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  int64_t number(int64_t low, int64_t high) {  // both included
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  DType dtype() { return DType(number(0, kDTypeCount - 1)); }
  Shape shape(int low, int high) {
    Shape shape;
    for (int64_t rank = number(low, high); rank > 0; rank--) shape.push_back(number(1, 4));
    return shape;
  }

  Graph graph(int steps) {
    Graph graph;
    while (int(graph.steps.size()) < steps) {
      add(graph, Op(number(0, op_count() - 1)));
    }
    for (int64_t i = number(0, 3); i > 0; i--) {
      graph.outputs.push_back(int(number(0, int64_t(graph.steps.size()) - 1)));
    }
    return graph;
  }

  // A step of that op, and the leaves that it reads where no earlier step fits.
  int add(Graph& graph, Op op) {
    if (is_pointwise(op)) return add_pointwise(graph, op);
    if (is_reduce(op)) return add_reduce(graph, op);
    const int x = value(graph, dtype(), shape(1, 4));
    return add_moving(graph, op, x);
  }

 private:
  // A value of that type: an earlier step, a constant or a new leaf.
  int value(Graph& graph, DType dtype, const Shape& shape) {
    const Type type{dtype, shape};
    std::vector<int> fitting;
    for (size_t i = 0; i < graph.steps.size(); i++) {
      if (graph.steps[i].type == type) fitting.push_back(int(i));
    }
    if (!fitting.empty() && chance(0.7)) {
      return fitting[size_t(number(0, int64_t(fitting.size()) - 1))];
    }
    Attributes attributes{int64_t(dtype)};
    attributes.insert(attributes.end(), shape.begin(), shape.end());
    if (chance(0.3)) return graph.add(Op::full, {}, attributes, scalar());
    return graph.add(Op::leaf, {}, attributes);
  }

  Scalar scalar() {
    switch (number(0, 3)) {
      case 0:
        return chance(0.5);
      case 1:
        return number(INT64_MIN, INT64_MAX);
      case 2:
        return uint64_t(number(INT64_MIN, INT64_MAX));
      default:
        return std::bit_cast<double>(uint64_t(number(INT64_MIN, INT64_MAX)));
    }
  }

  DType dtype_for(Rule rule) {
    for (;;) {
      const DType d = dtype();
      if (wants_floats(rule) && !is_floating(d)) continue;
      if (rule == Rule::bitwise && is_floating(d)) continue;
      if (rule == Rule::signed_same && is_boolean(d)) continue;
      return d;
    }
  }

  int add_pointwise(Graph& graph, Op op) {
    const DType dtype = dtype_for(info(op).rule);
    const Shape whole = shape(0, 4);
    std::vector<int> inputs;
    for (int i = 0; i < info(op).inputs; i++) {
      Shape part = whole;
      while (part.rank() > 0 && chance(0.2)) part.erase(0);
      if (part.rank() > 0 && chance(0.2)) part[int(number(0, part.rank() - 1))] = 1;
      const bool condition = i == 0 && info(op).rule == Rule::selected;
      inputs.push_back(value(graph, condition ? DType::bool_ : dtype, part));
    }
    return graph.add(op, inputs);
  }

  int add_reduce(Graph& graph, Op op) {
    const int x = value(graph, dtype(), shape(1, 4));
    const int rank = graph.steps[size_t(x)].type.shape.rank();
    Attributes axes;
    if (op == Op::argmax || op == Op::argmin) {
      axes = {number(0, rank - 1)};
    } else {
      for (int axis = 0; axis < rank; axis++) {
        if (chance(0.5)) axes.push_back(axis);
      }
    }
    return graph.add(op, {x}, axes);
  }

  int add_moving(Graph& graph, Op op, int x) {
    const Type type = graph.steps[size_t(x)].type;
    const Shape& shape = type.shape;
    const int rank = shape.rank();
    const int64_t axis = number(0, rank - 1);
    Attributes typed{int64_t(type.dtype)};
    typed.insert(typed.end(), shape.begin(), shape.end());
    switch (op) {
      case Op::leaf:
        return graph.add(op, {}, typed);
      case Op::full:
        return graph.add(op, {}, typed, scalar());
      case Op::arange:
        return graph.add(op, {value(graph, type.dtype, {}), value(graph, type.dtype, {})},
                         {int64_t(type.dtype), shape[0]});
      case Op::random_bits:
        return graph.add(op, {value(graph, DType::u64, {}), value(graph, DType::u64, {})},
                         Attributes(shape.begin(), shape.end()));
      case Op::cast:
        return graph.add(op, {x}, {int64_t(dtype())});
      case Op::detach:
        return graph.add(op, {x});
      case Op::reshape:
        return graph.add(op, {x}, {shape.element_count(), 1});
      case Op::permute: {
        Attributes axes(size_t(rank), 0);
        std::iota(axes.begin(), axes.end(), 0);
        std::shuffle(axes.begin(), axes.end(), random_);
        return graph.add(op, {x}, axes);
      }
      case Op::expand: {
        Attributes sizes(shape.begin(), shape.end());
        sizes.insert(sizes.begin(), number(1, 3));
        return graph.add(op, {x}, sizes);
      }
      case Op::slice:
        return graph.add(op, {x}, slice(shape));
      case Op::unfold:
        return graph.add(op, {x}, {axis, shape[int(axis)], 1, 1, shape[int(axis)]});
      case Op::fold: {
        const Attributes a{axis, shape[int(axis)], 2, 1, shape[int(axis)]};
        return graph.add(op, {graph.add(Op::unfold, {x}, a)}, a);
      }
      case Op::pad: {
        Attributes a;
        for (int i = 0; i < rank * 3; i++) a.push_back(number(0, 2));
        return graph.add(op, {x, value(graph, type.dtype, {})}, a);
      }
      case Op::cat:
        return graph.add(op, {x, x, value(graph, type.dtype, shape)}, {axis});
      case Op::gather:
        return graph.add(op, {x, value(graph, DType::i64, shape)}, {axis});
      case Op::scatter:
        return graph.add(op, {x, value(graph, DType::i32, shape), value(graph, type.dtype, shape)},
                         ScatterSettings::pack(int(axis), ScatterMode(number(0, 4))));
      case Op::argsort:
        return graph.add(op, {x}, SortSettings::pack(int(axis), chance(0.5)));
      case Op::cumsum:
      case Op::cumprod:
      case Op::cummax:
      case Op::cummin:
        return graph.add(op, {x}, {axis});
      case Op::matmul: {
        const DType d = dtype_for(Rule::signed_same);
        return graph.add(op, {value(graph, d, {2, 3, 4}), value(graph, d, {2, 4, 1})});
      }
      default:
        return add_convolution(graph, op);
    }
  }

  Attributes slice(const Shape& shape) {
    Attributes a;
    for (int64_t size : shape) {
      if (chance(0.5)) {
        a.insert(a.end(), {size - 1, size, -1});
      } else {
        const int64_t start = number(0, size - 1);
        a.insert(a.end(), {start, number(0, size - start), 1});
      }
    }
    return a;
  }

  int add_convolution(Graph& graph, Op op) {
    const DType d = dtype_for(Rule::floating);
    Window2d w;
    w.size[0] = 3, w.size[1] = 2;
    w.before[0] = number(0, 1);
    w.stride[1] = number(1, 2);
    w.extent[0] = 5, w.extent[1] = 6;
    const int64_t height = w.count(0, 5), width = w.count(1, 6);
    if (op != Op::pool_argmax) w.groups = 2;
    const Shape picture{2, 4, 5, 6}, result{2, 6, height, width}, weight{6, 2, 3, 2};
    switch (op) {
      case Op::convolve:
        return graph.add(op, {value(graph, d, picture), value(graph, d, weight)}, w.pack());
      case Op::convolve_input:
        return graph.add(op, {value(graph, d, result), value(graph, d, weight)}, w.pack());
      case Op::convolve_weight:
        return graph.add(op, {value(graph, d, picture), value(graph, d, result)}, w.pack());
      default:
        return graph.add(op, {value(graph, d, picture)}, w.pack());
    }
  }

  std::mt19937_64 random_;
};

}  // namespace fornax::testing
