#include "backends/cube/epilogue.h"

#include <algorithm>

#include "backends/cube/positions.h"
#include "base/error.h"

namespace fornax::cube {

std::string EpilogueClass::key() const {
  std::string key;
  for (const ViewClass& view : views) key += fmt::format(" {}", key_of(view));
  for (size_t i = size_t(anchor) + 1; i < steps.size(); i++) {
    key += fmt::format("; {} {}", info(steps[i].op).name, name_of(steps[i].type.dtype));
    for (const int input : steps[i].inputs) key += fmt::format(" {}", input - anchor);
  }
  key += fmt::format(" {} of", anchor);
  for (const int step : read_steps) key += fmt::format(" {}", step);
  key += " ->";
  for (const int step : write_steps) key += fmt::format(" {}", step);
  return deposited < 0 ? key : key + fmt::format(" by copy {}", deposited);
}

Epilogue::Epilogue(const Group& group)
    : graph(group.graph), inputs(group.inputs), anchor(group.anchor) {
  const auto& steps = graph.steps;
  const Shape& domain = steps[size_t(anchor)].type.shape;
  for (int input = 0; input < inputs; input++) {
    const bool read = std::any_of(steps.begin() + anchor + 1, steps.end(), [&](const Step& step) {
      return std::find(step.inputs.begin(), step.inputs.end(), input) != step.inputs.end();
    });
    if (!read) continue;
    const Shape& shape = steps[size_t(input)].type.shape;
    operands.push_back(
        {Place::input(input), input, strides_over(domain, shape, group.layouts[size_t(input)])});
  }
  reads = operands.size();
  for (size_t i = 0; i < graph.outputs.size(); i++) {
    const Layout placed = group.output_layout(i);
    Operand written{Place::output(int(i)), graph.outputs[i],
                    Strides(placed.strides, placed.strides + domain.rank())};
    // An output of this type may take the input's buffer over.
    for (size_t read = 0; read < reads; read++) {
      const size_t input = size_t(operands[read].step);
      if (steps[input].op == Op::full || dtype_of(operands[read]) != dtype_of(written) ||
          !is_contiguous(domain, group.layouts[input]) || steps[input].type.shape != domain ||
          !is_contiguous(domain, placed)) {
        continue;
      }
      operands[read].aliased = written.aliased = true;
      // Read by the thread that writes it, also where an axis of extent 1 would repeat it.
      operands[read].strides = written.strides;
    }
    operands.push_back(std::move(written));
  }
}

DType Epilogue::dtype_of(const Operand& operand) const {
  return graph.steps[size_t(operand.step)].type.dtype;
}

EpilogueClass Epilogue::described(const std::vector<int64_t>& extents, int lanes) const {
  EpilogueClass known;
  for (const Step& step : graph.steps) {
    known.steps.push_back({step.op, {step.type.dtype, {}}, step.inputs, {}, {}});
  }
  known.inputs = inputs, known.anchor = anchor;
  for (size_t i = 0; i < operands.size(); i++) {
    const Operand& operand = operands[i];
    (i < reads ? known.read_steps : known.write_steps).push_back(operand.step);
    ViewClass view = view_class(dtype_of(operand), operand.strides);
    view.aliased = operand.aliased;
    view.number = graph.steps[size_t(operand.step)].op == Op::full;
    const Strides lines(operand.strides.begin(), operand.strides.end() - 1);
    const bool vectors = operand.strides.back() == 1 && extents.back() % lanes == 0 &&
                         common_power(lines, lanes) == lanes;
    if (vectors && !view.number) view.alignment = view.divisor = lanes;
    known.views.push_back(view);
  }
  return known;
}

void Epilogue::pass(Arguments& arguments, const EpilogueClass& known,
                    const std::vector<int64_t>& extents, DType index) const {
  for (size_t i = 0; i < operands.size(); i++) {
    if (known.deposited >= 0 && i == reads + size_t(known.deposited)) continue;
    pass_view(arguments, operands[i].place, known.views[i], extents, operands[i].strides, index);
  }
}

std::vector<VectorGroup::Operand> Epilogue::aligned(const EpilogueClass& known) const {
  std::vector<VectorGroup::Operand> list;
  for (size_t i = 0; i < operands.size(); i++) {
    if (known.views[i].alignment > 1) list.push_back({operands[i].place, dtype_of(operands[i]), 0});
  }
  return list;
}

std::vector<Span> Epilogue::spans(const std::vector<int64_t>& extents) const {
  std::vector<Span> list;
  for (const Operand& operand : operands) list.push_back(span_of(extents, operand.strides));
  return list;
}

std::vector<View> declare_epilogue(Builder& k, const EpilogueClass& known, DType index) {
  std::vector<View> views;
  for (size_t i = 0; i < known.views.size(); i++) {
    const size_t reads = known.read_steps.size();
    const bool written = i >= reads;
    if (written && int(i - reads) == known.deposited) {
      views.push_back({known.views[i], {}, {}, {}, {}});
      continue;
    }
    const std::string name = written ? fmt::format("y{}", i - reads) : fmt::format("x{}", i);
    views.push_back(declare_view(k, name, known.views[i], written, index));
  }
  return views;
}

namespace {

// Which elements exist of what the view has of a tile: along axes that it repeats, all do.
Value inside(const View& view, const TilePlace& place) {
  const size_t rank = view.known.strides.size();
  const auto along = [&](size_t axis, const Value& inside) {
    return view.known.strides[axis] == StrideClass::zero ? Value() : inside;
  };
  const Value rows = along(rank - 2, place.row_inside);
  const Value columns = along(rank - 1, place.column_inside);
  return rows.none() ? columns : columns.none() ? rows : rows & columns;
}

}  // namespace

Value run_epilogue(Builder& k, const EpilogueClass& known, const std::vector<View>& views,
                   Value result, const TilePlace& place) {
  const size_t reads = known.read_steps.size();
  std::vector<Value> values(known.steps.size());
  for (size_t i = 0; i < reads; i++) {
    const Value mask = views[i].number ? Value() : inside(views[i], place);
    values[size_t(known.read_steps[i])] =
        mask ? views[i].load(k, place.position, mask, 0) : views[i].load(k, place.position);
  }
  values[size_t(known.anchor)] = k.cast(result, known.steps[size_t(known.anchor)].type.dtype);
  for (size_t i = size_t(known.anchor) + 1; i < known.steps.size(); i++) {
    std::vector<Value> operands;
    for (const int input : known.steps[i].inputs) operands.push_back(values[size_t(input)]);
    const Step& step = known.steps[i];
    values[i] = step.op == Op::arange ? arange_element(k, step.type.dtype, operands[0], operands[1],
                                                       place.position.back())
                                      : run_step(k, step, operands);
  }
  Value deposited;
  for (size_t i = 0; i < known.write_steps.size(); i++) {
    const Value value = values[size_t(known.write_steps[i])];
    const View& view = views[reads + i];
    if (int(i) == known.deposited) {
      deposited = value;
    } else {
      k.store(view.memory, view.index(k, place.position), value, inside(view, place));
    }
  }
  return deposited;
}

}  // namespace fornax::cube
