// Row programs: which kernels a group needs, and their launches.
#include "backends/cube/rows.h"

#include <algorithm>
#include <optional>

#include "backends/cube/kernels.h"
#include "backends/cube/positions.h"
#include "backends/cube/row_shape.h"
#include "backends/cube/sequence.h"
#include "backends/cube/tickets.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

constexpr int kMostNested = 64;  // shorter innermost axes are not walked by tiles of their own
constexpr int kMostSplits = 1024;
constexpr int kFewAcross = 8;  // threads along the columns of a block where there are few elements
constexpr int64_t kAligned = 256;  // bytes

struct Operand {
  Place place;
  int step;
  Type type;
  int64_t first = 0;  // element of the place
};

// A column's parts of one accumulator, from that element of scratch memory on.
struct ColumnParts {
  int step;
  DType dtype;
  int64_t first;
};

// A reduction of rows that blocks share out.
struct Shared {
  int step;
  std::vector<Place> parts;  // of its accumulators
  Place values;
};

class RowPlan {
 public:
  RowPlan(Device& device, const Group& group) : device_(device) {
    describe_steps(group);
    describe_nest(group);
    const auto& kinds = nest_.kinds;
    const int processors = device.capabilities().processors;
    if (has_columns()) {
      depth_ = rows_of_part(kept(), reduced(), processors);
      FORNAX_CHECK(depth_ > 0 && std::is_sorted(kinds.begin(), kinds.end()));
      place_parts();
    } else if (!by_rows() && std::is_sorted(kinds.rbegin(), kinds.rend())) {
      depth_ = std::max<int64_t>(rows_of_part(reduced(), kept(), processors), 1);
    }
    rows_ = reduced();
  }

  // What makes columns of the parts that `of`, a plan for the same group, leaves in `parts`.
  RowPlan(const RowPlan& of, const Group& group, Place parts) : device_(of.device_), given_(true) {
    describe_parts(of, group, parts);
    rows_ = of.kept();
    index_ = of.base(1).index;
  }

  bool empty() const { return kept() == 0; }
  bool has_columns() const {
    return std::any_of(steps_.begin(), steps_.end(), [](const RowStep& s) { return s.column; });
  }
  int64_t parts_bytes() const { return parts_bytes_; }
  void leave_parts_in(Place place) { parts_place_ = place; }

  // How many elements of the operands lie side by side and aligned, wherever a vector begins.
  int best_lanes() const {
    std::vector<int64_t> numbers = {nest_.extents.back()};
    for (size_t i = 0; i < operands_.size(); i++) {
      if (!in_vectors(i)) continue;
      const Strides& strides = nest_.strides[i];
      numbers.insert(numbers.end(), strides.begin(), strides.end() - 1);
    }
    return common_power(numbers, vector());
  }

  std::vector<VectorGroup::Operand> vector_operands() const {
    std::vector<VectorGroup::Operand> list;
    for (size_t i = 0; i < operands_.size(); i++) {
      const Operand& own = operands_[i];
      if (in_vectors(i)) list.push_back({own.place, own.type.dtype, own.first});
    }
    return list;
  }

  std::unique_ptr<PreparedGroup> make(int lanes) const {
    RowClass known = base(lanes);
    int64_t splits = 1;
    known.by_rows ? shape_rows(known, splits) : shape_columns(known, splits);
    auto list = std::make_unique<LaunchList>(device_);
    FORNAX_CHECK(!known.parts || known.single);
    if (splits == 1) {
      add(*list, known, 1, {});
      return list;
    }
    known.split = true;
    std::vector<Shared> reductions;
    for (int i = 0; i < int(steps_.size()); i++) {
      if (!is_reduce(steps_[size_t(i)].step.op)) continue;
      Shared own{i, {}, list->scratch(size_t(kept()) * size_of(steps_[size_t(i)].step.type.dtype))};
      for (const DType dtype : part_dtypes(known.index, i)) {
        own.parts.push_back(list->scratch(size_t(kept() * splits) * size_of(dtype)));
      }
      reductions.push_back(std::move(own));
    }
    // What the last reductions make of rows is stored by the launch that ends them.
    const bool all = std::any_of(outputs_.begin(), outputs_.end(), [&](int i) {
      return !steps_[size_t(i)].kept && steps_[size_t(i)].level == levels_;
    });
    const int last = all ? levels_ : levels_ - 1;
    for (known.level = 0; known.level <= last; known.level++) {
      known.more = known.level < last;
      add(*list, known, splits, reductions);
    }
    return list;
  }

 private:
  int64_t kept() const { return nest_.count(0); }
  int64_t reduced() const { return nest_.count(1); }
  bool by_rows() const { return nest_.kinds.back() == 1; }
  // Of elements that a thread holds side by side.
  int vector() const { return common_power({inner_}, kMostVector); }

  bool in_vectors(size_t operand) const { return nest_.strides[operand].back() == 1; }
  void describe_steps(const Group& group) {
    const std::vector<Step>& steps = group.graph.steps;
    inputs_ = group.inputs;
    const Attributes& anchor = steps[size_t(group.anchor)].attributes;
    axes_ = axes_of(anchor);
    for (int i = 0; i < int(steps.size()); i++) {
      const Step& step = steps[size_t(i)];
      // What has the domain's shape is stored all along it, even where it is the same there.
      const bool may_keep = lies_kept(group.domain, step.type.shape);
      RowStep own{{step.op, {step.type.dtype, {}}, step.inputs, {}, {}}, 0, may_keep};
      for (const int input : step.inputs) {
        own.level = std::max(own.level, steps_[size_t(input)].level);
        own.kept &= steps_[size_t(input)].kept;
      }
      if (i < inputs_) own.kept = step.op == Op::full || may_keep;
      own.column = is_reduce(step.op) && step.attributes != anchor;
      if (is_reduce(step.op) && !own.column) own.level++, own.kept = true;
      levels_ = std::max(levels_, own.level);
      steps_.push_back(std::move(own));
    }
  }

  // The columns' parts lie one after another.
  void place_parts() {
    const int64_t elements = ceiling(kept(), depth_) * reduced();
    const DType index = base(1).index;
    for (int i = 0; i < int(steps_.size()); i++) {
      if (!steps_[size_t(i)].column) continue;
      for (const DType dtype : part_dtypes(index, i)) {
        const auto size = int64_t(size_of(dtype));
        parts_.push_back({i, dtype, parts_bytes_ / size});
        parts_bytes_ += ceiling(elements * size, kAligned) * kAligned;
      }
    }
  }

  // Reductions of [parts, the axes that rows reduce] whose operands are the accumulators.
  void describe_parts(const RowPlan& of, const Group& group, Place place) {
    Shape domain{ceiling(of.kept(), of.depth_)};
    for (const int64_t axis : of.axes_) domain.push_back(group.domain[int(axis)]);
    std::vector<Strides> strides;
    std::vector<int> leaves;  // per step of `of`, its first
    for (const ColumnParts& own : of.parts_) {
      const Type type{own.dtype, domain};
      operands_.push_back({place, inputs_, type, own.first});
      strides.push_back(strides_over(domain, domain, row_major(domain)));
      leaves.resize(size_t(own.step) + 1, inputs_);
      steps_.push_back({{Op::leaf, {own.dtype, {}}, {}, {}, {}}});
      inputs_++;
    }
    const std::vector<int>& outputs = group.graph.outputs;
    for (size_t o = 0; o < outputs.size(); o++) {
      const RowStep& column = of.steps_[size_t(outputs[o])];
      if (!column.column) continue;
      RowStep own{column.step, 1, true};
      const size_t leaf = size_t(leaves[size_t(outputs[o])]);
      own.step.inputs = {int(leaf)};
      if (leaf + 1 < of.parts_.size() && of.parts_[leaf + 1].step == outputs[o]) {
        own.step.inputs.push_back(int(leaf) + 1);
      }
      const Type& type = group.graph.steps[size_t(outputs[o])].type;
      const Strides all = strides_over(group.domain, type.shape, group.output_layout(o));
      Strides along{0};
      for (const int64_t axis : of.axes_) along.push_back(all[size_t(axis)]);
      operands_.push_back({Place::output(int(o)), int(steps_.size()), type});
      strides.push_back(std::move(along));
      outputs_.push_back(int(steps_.size()));
      steps_.push_back(std::move(own));
    }
    levels_ = 1;
    std::vector<int> kinds(size_t(domain.rank()), 0);
    kinds[0] = 1;
    nest_ = collapse(domain, std::move(strides), std::move(kinds));
    find_inner();
  }

  // Whether a value of `shape` is the same all along the reduced axes.
  bool lies_kept(const Shape& domain, const Shape& shape) const {
    const int shift = domain.rank() - shape.rank();
    return std::all_of(axes_.begin(), axes_.end(),
                       [&](int64_t axis) { return axis < shift || shape[int(axis) - shift] == 1; });
  }

  void describe_nest(const Group& group) {
    const std::vector<Step>& steps = group.graph.steps;
    std::vector<Strides> strides;
    for (int i = 0; i < inputs_; i++) {
      const Step& step = steps[size_t(i)];
      if (step.op != Op::leaf) continue;
      operands_.push_back({Place::input(i), i, step.type});
      strides.push_back(strides_over(group.domain, step.type.shape, group.layouts[size_t(i)]));
    }
    for (size_t o = 0; o < group.graph.outputs.size(); o++) {
      const int step = group.graph.outputs[o];
      if (steps_[size_t(step)].column) continue;  // stored when its parts are combined
      outputs_.push_back(step);
      const Type& type = steps[size_t(step)].type;
      operands_.push_back({Place::output(int(o)), step, type});
      strides.push_back(strides_over(group.domain, type.shape, group.output_layout(o)));
    }
    if (has_arange(steps)) strides.push_back(last_axis_strides(group.domain));
    std::vector<int> kinds(size_t(group.domain.rank()), 0);
    for (const int64_t axis : axes_) kinds[size_t(axis)] = 1;
    nest_ = collapse(group.domain, std::move(strides), std::move(kinds));
    if (nest_.rank() == 0) {
      nest_.extents = {1};
      nest_.kinds = {1};
      for (Strides& own : nest_.strides) own = {0};
    }
    find_inner();
  }

  // The innermost axes of one kind, however the operands' strides divide them.
  void find_inner() {
    first_inner_ = nest_.rank();
    inner_ = 1;
    while (first_inner_ > 0 && nest_.kinds[size_t(first_inner_) - 1] == nest_.kinds.back()) {
      inner_ *= nest_.extents[size_t(--first_inner_)];
    }
  }

  RowClass base(int lanes) const {
    RowClass known;
    known.steps = steps_;
    known.inputs = inputs_;
    known.outputs = outputs_;
    known.kinds = nest_.kinds;
    known.by_rows = by_rows();
    known.inner = first_inner_;
    known.divisor = vector();
    std::vector<Span> spans;
    for (size_t i = 0; i < operands_.size(); i++) {
      ViewClass view = view_class(operands_[i].type.dtype, nest_.strides[i]);
      if (in_vectors(i)) view.alignment = view.divisor = lanes;
      known.views.push_back(view);
      known.view_steps.push_back(operands_[i].step);
      spans.push_back(span_of(nest_.extents, nest_.strides[i]));
    }
    known.index = index_ ? *index_ : index_dtype(nest_.count(), spans);
    known.parts = has_columns();
    known.deep = !known.by_rows && depth_ > 1;
    known.given = given_;
    return known;
  }

  // Enough blocks for every processor to have two.
  int64_t splits_for(int64_t blocks, int64_t turns, int most) const {
    const int64_t wanted = 2 * device_.capabilities().processors;
    if (blocks >= wanted / 2 || turns < 2) return 1;
    return std::min({turns, ceiling(wanted, blocks), int64_t(most), int64_t(kMostSplits)});
  }

  void shape_rows(RowClass& known, int64_t& splits) const {
    known.nested = inner_ != reduced() && inner_ >= kMostNested;
    const int64_t length = known.nested ? inner_ : reduced();
    const int lanes = vector();
    const RowShape shape = shape_of_rows(length, lanes, !known.nested);
    known.single = shape.single;
    known.distribution = {shape.down, shape.across, lanes};
    known.kept_tile = shape.down;
    known.reduced_tile = shape.across * lanes * shape.each;
    known.whole_kept = kept() % (known.kept_tile * depth_) == 0;
    known.whole_reduced = length > 0 && length % known.reduced_tile == 0;
    if (!known.single) {
      splits = splits_for(ceiling(kept(), known.kept_tile), turns(known), known.reduced_tile);
    }
  }

  // Of the elements that tiles walk over along the reduced axes, the parts of rows for one.
  int64_t positions() const { return by_rows() ? reduced() : ceiling(reduced(), depth_); }

  void shape_columns(RowClass& known, int64_t& splits) const {
    const int lanes = vector();
    const int64_t vectors = ceiling(inner_, lanes);
    int across = std::min(power_above(vectors), 32);
    // Few elements are spread over all processors.  Narrow blocks then have few parts to combine.
    const int64_t processors = device_.capabilities().processors;
    const int64_t tiles = ceiling(kept() * rows_, kColumnThreads * lanes * kWantedVectors);
    const bool few = tiles < 2 * processors;
    if (few) across = std::min(across, kFewAcross);
    const int down = kColumnThreads / across;
    const int64_t rows = ceiling(positions(), down);
    const bool by_parts = known.deep || known.given;
    known.single = !by_parts && rows <= kMostVectors;
    known.distribution = {down, across, lanes};
    known.kept_tile = across * lanes;
    int64_t each = known.single ? std::max<int64_t>(rows, 1) : kWantedVectors;
    if (few && !known.single) {
      const int64_t shares = ceiling(processors, blocks(known));
      each = std::min(each, ceiling(positions(), down * shares));
    }
    if (by_parts) each = 1;
    known.reduced_tile = down * int(each);
    known.whole_kept = inner_ % known.kept_tile == 0;
    known.whole_reduced = reduced() > 0 && reduced() % (known.reduced_tile * depth_) == 0;
    if (known.single) return;
    const int most = by_parts ? kMostSplits : known.reduced_tile;
    splits = splits_for(blocks(known), turns(known), most);
  }

  int64_t blocks(const RowClass& known) const {
    if (known.by_rows) return ceiling(kept(), known.kept_tile * depth_);
    return kept() / inner_ * ceiling(inner_, known.kept_tile);
  }
  int64_t turns(const RowClass& known) const {
    if (!known.nested) return ceiling(positions(), known.reduced_tile);
    return reduced() / inner_ * ceiling(inner_, known.reduced_tile);
  }

  std::vector<DType> part_dtypes(DType index, int i) const {
    const Step& step = steps_[size_t(i)].step;
    const DType dtype = steps_[size_t(step.inputs[0])].step.type.dtype;
    return accumulator_dtypes(step.op, dtype, step.type.dtype, index);
  }

  void add(LaunchList& list, const RowClass& known, int64_t splits,
           const std::vector<Shared>& reductions) const {
    Arguments arguments;
    for (size_t i = 0; i < operands_.size(); i++) {
      pass_view(arguments, operands_[i].place, known.views[i], nest_.extents, nest_.strides[i],
                known.index, operands_[i].first);
    }
    for (int i = 0; i < inputs_; i++) {
      const Step& step = steps_[size_t(i)].step;
      if (step.op == Op::full) arguments.scalar(i, step.type.dtype);
    }
    for (const int64_t extent : nest_.extents) {
      pass_extent(arguments, std::max<int64_t>(extent, 1), known.index);
    }
    const int64_t all = turns(known);
    arguments.number(known.index, known.by_rows ? kept() : inner_);
    arguments.number(known.index, known.nested ? inner_ : reduced());
    const int tile = known.by_rows ? known.reduced_tile : known.kept_tile;
    pass_extent(arguments, std::max<int64_t>(ceiling(inner_, tile), 1), known.index);
    const int64_t own = ceiling(all, splits);
    arguments.number(known.index, own);
    arguments.number(known.index, all);
    if (known.deep || known.parts) arguments.number(known.index, depth_);
    for (const ColumnParts& own : parts_) {
      const int64_t elements = ceiling(kept(), depth_) * reduced();
      arguments.buffer(parts_place_, own.dtype, own.first, elements);
    }
    if (known.split) {
      arguments.number(known.index, splits);
      if (!known.by_rows) arguments.number(known.index, kept());
      for (const Shared& own : reductions) pass_shared(arguments, known, own, splits);
      if (known.level < levels_) pass_tickets(arguments, blocks(known));
    }
    const runtime::Grid grid{uint32_t(blocks(known)), uint32_t(splits), 1};
    list.add(Launch(device_, {known.key(), [known] { return build_rows(known); }}, grid,
                    std::move(arguments)));
  }

  void pass_shared(Arguments& arguments, const RowClass& known, const Shared& own,
                   int64_t splits) const {
    const RowStep& s = steps_[size_t(own.step)];
    if (s.level > known.level + 1) return;
    const bool ends = s.level == known.level + 1;
    const std::vector<DType> dtypes = part_dtypes(known.index, own.step);
    for (size_t a = 0; ends && a < dtypes.size(); a++) {
      arguments.buffer(own.parts[a], dtypes[a], 0, kept() * splits);
    }
    if (!ends || known.more) arguments.buffer(own.values, s.step.type.dtype, 0, kept());
  }

  Device& device_;
  std::vector<RowStep> steps_;
  int inputs_ = 0, levels_ = 0;
  std::vector<int> outputs_;
  Attributes axes_;
  std::vector<Operand> operands_;  // inputs in memory, then outputs
  Nest nest_;
  int first_inner_ = 0;  // axis
  int64_t inner_ = 1;    // positions along it and those after it
  int64_t depth_ = 1;    // rows of a part of columns
  int64_t rows_ = 0;     // that columns reduce, also where only their parts are read
  std::vector<ColumnParts> parts_;
  int64_t parts_bytes_ = 0;
  Place parts_place_ = {};
  bool given_ = false;
  std::optional<DType> index_;  // where it must be another plan's
};

std::unique_ptr<PreparedGroup> prepare_plan(std::shared_ptr<const RowPlan> plan) {
  return std::make_unique<VectorGroup>(plan->best_lanes(), plan->vector_operands(),
                                       [plan](int lanes) { return plan->make(lanes); });
}

}  // namespace

std::string RowClass::key() const {
  std::string key = fmt::format("rows {}", name_of(index));
  for (const int kind : kinds) key += kind == 0 ? 'k' : 'r';
  key += fmt::format(" {}x{}x{} {}x{} /{}", distribution.rows, distribution.columns,
                     distribution.vector, kept_tile, reduced_tile, divisor);
  key += fmt::format(" i{}", inner);
  if (nested) key += " nested";
  if (whole_kept) key += " whole";
  if (whole_reduced) key += " full";
  if (single) key += " single";
  if (deep) key += " deep";
  if (parts) key += " parts";
  if (given) key += " given";
  if (split) key += fmt::format(" split {}{}", level, more ? "+" : "");
  for (size_t i = 0; i < views.size(); i++) {
    key += fmt::format(" {}:{}", view_steps[i], key_of(views[i]));
  }
  for (const RowStep& s : steps) {
    key += fmt::format("; {} {}", info(s.step.op).name, name_of(s.step.type.dtype));
    if (s.kept) key += '-';
    if (s.column) key += '|';
    for (const int input : s.step.inputs) key += fmt::format(" {}", input);
  }
  key += " ->";
  for (const int step : outputs) key += fmt::format(" {}", step);
  return key;
}

std::unique_ptr<PreparedGroup> prepare_rows(Device& device, const Group& group) {
  auto plan = std::make_shared<RowPlan>(device, group);
  if (plan->empty()) return std::make_unique<LaunchList>(device);
  if (!plan->has_columns()) return prepare_plan(std::move(plan));
  auto sequence = std::make_unique<ScratchSequence>(device, group);
  const Place parts = sequence->scratch(plan->parts_bytes());
  plan->leave_parts_in(parts);
  auto columns = std::make_shared<const RowPlan>(*plan, group, parts);
  sequence->add(prepare_plan(std::move(plan)));
  sequence->add(prepare_plan(std::move(columns)));
  return sequence;
}

}  // namespace fornax::cube
