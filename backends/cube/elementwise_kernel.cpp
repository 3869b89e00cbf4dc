// Elementwise kernels of two shapes.  In the usual one a thread computes a vector of neighbouring
// elements of the domain, and what is left over of whole vectors has a thread per element.  In the
// other one a block computes a square of 32 x 32 positions along two axes: operands that lie
// closely along the outer one of them are read along it, and turned in shared memory.
#include "backends/cube/elementwise_kernel.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/cube/positions.h"

namespace fornax::cube {

std::string ElementwiseClass::key() const {
  std::string key = fmt::format("{} {}{} r{}", name, key_of(vectors), rows ? "" : " split", rank);
  if (across >= 0) key += fmt::format(" across {}", across);
  for (size_t i = 0; i < views.size(); i++) {
    key += fmt::format(" {}{}", key_of(views[i]), "/1v-s"[size_t(accesses[i])]);
  }
  for (const Step& step : steps) {
    key += fmt::format("; {} {}", info(step.op).name, name_of(step.type.dtype));
    for (const int input : step.inputs) key += fmt::format(" {}", input);
  }
  key += " ->";
  for (const int step : write_steps) key += fmt::format(" {}", step);
  return key;
}

namespace {

class ElementwiseKernel {
 public:
  explicit ElementwiseKernel(const ElementwiseClass& known)
      : known_(known), k_(known.name, {.threads = kElementwiseThreads}) {}

  kernel::Kernel build() {
    const size_t reads = known_.read_steps.size();
    for (size_t i = 0; i < known_.views.size(); i++) {
      const bool written = i >= reads;
      const std::string name =
          written ? fmt::format("y{}", i - reads) : fmt::format("x{}", known_.read_steps[i]);
      views_.push_back(declare_view(k_, name, known_.views[i], written, known_.vectors.index));
    }
    extents_ = declare_extents(k_, known_.rank, known_.vectors.index);
    if (known_.across >= 0) {
      compute_square();
    } else {
      for_vectors(k_, known_.vectors,
                  [&](std::span<const Value> elements, int lanes) { compute(elements, lanes); });
    }
    return k_.finish();
  }

 private:
  // The positions of `lanes` elements from `element` on, one for all where they share a row.
  std::vector<Position> positions(Value element, int lanes) {
    const bool reached = std::any_of(known_.accesses.begin(), known_.accesses.end(), [](Access a) {
      return a == Access::vector || a == Access::strided;
    });
    const bool needed = reached || has_arange(known_.steps);
    std::vector<Position> list;
    if (!needed) return list;
    for (int lane = 0; lane < (known_.rows ? 1 : lanes); lane++) {
      list.push_back(position_of(k_, extents_, element + lane));
    }
    return list;
  }

  Value index_of_lane(size_t view, const std::vector<Position>& at, int lane) {
    if (!known_.rows) return views_[view].index(k_, at[size_t(lane)]);
    Position position = at[0];
    position.back() = position.back() + lane;
    return views_[view].index(k_, position);
  }

  Value load(size_t view, Value element, const std::vector<Position>& at, int lanes) {
    if (views_[view].number) return views_[view].number;
    const Value memory = views_[view].memory;
    switch (known_.accesses[view]) {
      case Access::flat:
        return k_.load_vector(memory, element, lanes);
      case Access::single:
        return k_.load(memory, k_.constant(known_.vectors.index, 0));
      case Access::vector:
        return k_.load_vector(memory, views_[view].index(k_, at[0]), lanes);
      case Access::strided:
      case Access::staged:
        break;
    }
    if (known_.rows && known_.views[view].strides.back() == StrideClass::zero) {
      return views_[view].load(k_, at[0]);
    }
    std::vector<Value> elements;
    for (int lane = 0; lane < lanes; lane++) {
      elements.push_back(k_.load(memory, index_of_lane(view, at, lane)));
    }
    return k_.pack(elements);
  }

  void store(size_t view, Value element, const std::vector<Position>& at, Value value, int lanes) {
    const Value memory = views_[view].memory;
    switch (known_.accesses[view]) {
      case Access::flat:
        k_.store(memory, element, widen(k_, value, lanes));
        return;
      case Access::single:
        k_.store(memory, k_.constant(known_.vectors.index, 0), value);
        return;
      case Access::vector:
        k_.store(memory, views_[view].index(k_, at[0]), widen(k_, value, lanes));
        return;
      case Access::strided:
      case Access::staged:
        for (int lane = 0; lane < lanes; lane++) {
          k_.store(memory, index_of_lane(view, at, lane), k_.extract(value, lane));
        }
    }
  }

  // The steps on the operands that `load_operand(view)` gives, and the values that are to be
  // written; `places` are the positions of the lanes along the innermost axis.
  std::vector<Value> evaluate(FunctionRef<Value(size_t view)> load_operand,
                              const std::vector<Value>& places) {
    std::vector<Value> values(size_t(known_.inputs));
    for (size_t i = 0; i < known_.read_steps.size(); i++) {
      values[size_t(known_.read_steps[i])] = load_operand(i);
    }
    for (size_t i = size_t(known_.inputs); i < known_.steps.size(); i++) {
      const Step& step = known_.steps[i];
      std::vector<Value> operands;
      for (const int input : step.inputs) operands.push_back(values[size_t(input)]);
      if (step.op == Op::arange) {
        std::vector<Value> lanes;
        for (const Value& place : places) {
          lanes.push_back(arange_element(k_, step.type.dtype, operands[0], operands[1], place));
        }
        values.push_back(k_.pack(lanes));
        continue;
      }
      values.push_back(run_step(k_, step, operands));
    }
    std::vector<Value> results;
    for (const int step : known_.write_steps) results.push_back(values[size_t(step)]);
    return results;
  }

  // Reads all vectors before it computes: their loads are under way together.
  void compute(std::span<const Value> elements, int lanes) {
    const size_t reads = known_.read_steps.size();
    std::vector<std::vector<Position>> at;
    std::vector<std::vector<Value>> read(elements.size());
    for (size_t n = 0; n < elements.size(); n++) {
      at.push_back(positions(elements[n], lanes));
      for (size_t i = 0; i < reads; i++) read[n].push_back(load(i, elements[n], at[n], lanes));
    }
    for (size_t n = 0; n < elements.size(); n++) {
      std::vector<Value> places;
      for (int lane = 0; lane < lanes && !at[n].empty(); lane++) {
        places.push_back(known_.rows ? at[n][0].back() + lane : at[n][size_t(lane)].back());
      }
      const std::vector<Value> results =
          evaluate([&](size_t view) { return read[n][view]; }, places);
      for (size_t i = 0; i < results.size(); i++) {
        store(reads + i, elements[n], at[n], results[i], lanes);
      }
    }
  }

  // A place in the block's square: `row` along the axis `across`, `column` along the innermost one.
  struct Place2d {
    Position position;
    Value inside;
  };
  Place2d place_in_square(const Position& block, Value row, Value column) {
    const size_t across = size_t(known_.across), last = size_t(known_.rank) - 1;
    Place2d place{block, {}};
    place.position[across] = block[across] * kSquare + row;
    place.position[last] = block[last] * kSquare + column;
    place.inside = (place.position[across] < extents_[across].size) &
                   (place.position[last] < extents_[last].size);
    return place;
  }

  // One position more than the side, so that columns lie in different banks.
  static constexpr int kPitch = kSquare + 1;

  void compute_square() {
    const DType index = known_.vectors.index;
    std::vector<Extent> grid;
    for (int axis = 0; axis < known_.rank; axis++) {
      grid.push_back(declare_extent(k_, fmt::format("blocks{}", axis), index));
    }
    const Position block = position_of(k_, grid, k_.cast(k_.block(), index));
    const Value near = k_.thread() & (kSquare - 1), far = k_.thread() >> 5;
    constexpr int kFar = kElementwiseThreads / kSquare;
    std::vector<Value> squares(views_.size());
    for (size_t view = 0; view < views_.size(); view++) {
      if (known_.accesses[view] != Access::staged) continue;
      const DType dtype = known_.views[view].dtype;
      squares[view] = k_.shared(dtype, kSquare * kPitch);
      for (int begin = 0; begin < kSquare; begin += kFar) {
        const Value column = far + begin;
        const Place2d at = place_in_square(block, k_.cast(near, index), k_.cast(column, index));
        const Value x = views_[view].load(k_, at.position, at.inside, k_.constant(dtype, 0));
        k_.store(squares[view], column * kPitch + near, x);
      }
    }
    k_.barrier();
    for (int begin = 0; begin < kSquare; begin += kFar) {
      const Value row = far + begin;
      const Place2d at = place_in_square(block, k_.cast(row, index), k_.cast(near, index));
      k_.when(at.inside, [&] {
        const auto load_operand = [&](size_t view) {
          return squares[view] ? k_.load(squares[view], near * kPitch + row)
                               : views_[view].load(k_, at.position);
        };
        const std::vector<Value> results = evaluate(load_operand, {at.position.back()});
        for (size_t i = 0; i < results.size(); i++) {
          views_[known_.read_steps.size() + i].store(k_, at.position, results[i]);
        }
      });
    }
  }

  const ElementwiseClass& known_;
  Builder k_;
  std::vector<View> views_;
  std::vector<Extent> extents_;
};

}  // namespace

kernel::Kernel build_elementwise(const ElementwiseClass& known) {
  return ElementwiseKernel(known).build();
}

}  // namespace fornax::cube
