// RowCode: a row plan's parts compiled, and where their inputs and outputs lie.
#include <algorithm>

#include "backends/flex/program.h"
#include "backends/flex/rows.h"
#include "graph/attributes.h"

namespace fornax::flex {
namespace {

using Feed = RowCode::Feed;
using Give = RowCode::Give;

constexpr int64_t kLongRow = 256;                // elements; shorter ones are computed together
constexpr int64_t kTogether = 2048;              // elements of short rows
constexpr int64_t kElements = 16384;             // of long rows that take turns
constexpr int64_t kMostRows = 64;                // of them
constexpr int64_t kFarthest = int64_t(1) << 30;  // bytes ahead that are asked for
constexpr int64_t kLongest = int64_t(1) << 15;   // elements of a row that caches hold

Reach reach_of(const Feed& feed, bool expanded) {
  switch (feed.kind) {
    case Feed::Kind::direct:
      return Reach::direct;
    case Feed::Kind::number:
    case Feed::Kind::constant:
      return Reach::constant;
    case Feed::Kind::element:
      return Reach::row_constant;
    case Feed::Kind::kept:
      return expanded ? Reach::near : Reach::row_constant;
    default:
      return Reach::near;
  }
}

class Maker {
 public:
  Maker(const RowPlan& plan, RowCode& code)
      : plan_(plan),
        code_(code),
        slots_(plan.level.size(), -1),
        saved_(plan.level.size(), -1),
        read_(plan.level.size(), false),
        asked_(plan.level.size(), false) {}

  void make() {
    for (int l = 0; l < int(plan_.levels.size()); l++) {
      code_.levels.emplace_back();
      make_kept(l);
      make_pass(l);
    }
  }

 private:
  const DType& dtype_of(int step) const { return plan_.step(step).type.dtype; }

  int slot_of(int step) {
    int& slot = slots_[size_t(step)];
    if (slot >= 0) return slot;
    slot = code_.slots++;
    if (step < plan_.group.inputs) {
      const auto [type, layout] = input(step);
      code_.kept_inputs.push_back({.kind = Feed::Kind::element,
                                   .index = step,
                                   .dtype = type.dtype,
                                   .spread = Spread(type, layout, plan_.group.domain)});
      code_.kept_slots.push_back(slot);
    }
    return slot;
  }
  int saved_of(int step) {
    int& saved = saved_[size_t(step)];
    if (saved >= 0) return saved;
    code_.saved.push_back(dtype_of(step));
    return saved = int(code_.saved.size()) - 1;
  }
  std::pair<Type, Layout> input(int step) const {
    return {plan_.step(step).type, plan_.group.layouts[size_t(step)]};
  }

  Feed feed_of(int step, bool for_kept) {
    const DType dtype = dtype_of(step);
    if (step >= plan_.group.inputs) {
      if (!plan_.kept[size_t(step)]) return {Feed::Kind::saved, saved_of(step), dtype};
      Feed feed{Feed::Kind::kept, slot_of(step), dtype};
      if (code_.together && !for_kept) feed.buffer = code_.buffers++;
      return feed;
    }
    Feed feed{Feed::Kind::number, step, dtype};
    if (plan_.step(step).op == Op::full) return feed;
    const auto [type, layout] = input(step);
    feed.spread = Spread(type, layout, plan_.group.domain);
    const int64_t length = code_.walk.length;
    if (feed.spread.is_constant()) {
      feed.kind = Feed::Kind::constant;
    } else if (for_kept) {
      return {Feed::Kind::kept, slot_of(step), dtype};
    } else if (code_.together ? feed.spread.is_dense() : feed.spread.has_lines(length, 1)) {
      const bool fixed = !code_.together && feed.spread.is_repeated(length);
      feed.kind = fixed ? Feed::Kind::fixed : Feed::Kind::direct;
    } else if (!code_.together && code_.walk.others == 1 && feed.spread.has_lines(length, 0)) {
      return {Feed::Kind::kept, slot_of(step), dtype};
    } else if (!code_.together && feed.spread.has_lines(length, 0)) {
      feed.kind = Feed::Kind::element;
    } else {
      feed.kind = Feed::Kind::gathered;
      feed.buffer = code_.buffers++;
      feed.repeated = feed.spread.is_repeated(length);
    }
    return feed;
  }

  // `close` gives are read again soon; the first of these are folded.
  void compile_part(RowPart& part, bool for_kept, int close, std::vector<FoldedOutput> folds,
                    RowCode::Part& to) {
    part.finish();
    std::vector<Reach> reaches;
    CompileOptions options{.apart = true, .close = close, .ahead = true};
    options.folds = std::move(folds);
    for (const int source : part.sources) {
      to.feeds.push_back(feed_of(source, for_kept));
      reaches.push_back(reach_of(to.feeds.back(), for_kept || code_.together));
      const bool again = reaches.back() == Reach::direct && was_read(source);
      if (again) reaches.back() = Reach::near;
      options.far.push_back(again ? to_next_rows(source, to.feeds.back()) : 0);
    }
    to.code = compile(part.graph, reaches, std::move(options));
    for (size_t i = 0; i < to.feeds.size(); i++) {
      Feed& feed = to.feeds[i];
      if (feed.kind != Feed::Kind::kept || for_kept || code_.together) continue;
      const bool points = size_of(feed.dtype) == 4 && Pipeline::may_point(to.code, int(i));
      if (points) feed.buffer = code_.buffers++;
    }
    if (for_kept) return;
    for (const Feed& feed : to.feeds) code_.cost += 0.08 * double(size_of(feed.dtype));
    code_.cost += to.code.cost;
  }

  // Whether memory that the group's input lies in has been read for the rows under way.
  bool was_read(int step) {
    const bool before = read_[size_t(step)];
    read_[size_t(step)] = true;
    return before;
  }

  // Bytes from the rows under way to those that are next, which are asked for where the input is
  // read a second time: while they come, there is work that memory need not wait for.
  uint32_t to_next_rows(int step, const Feed& feed) {
    if (code_.together || asked_[size_t(step)]) return 0;
    asked_[size_t(step)] = true;
    const Spread& spread = feed.spread;
    const int64_t bytes =
        (spread.at(code_.walk.start(code_.rows, 0)) - spread.at(0)) * int64_t(size_of(feed.dtype));
    return code_.rows < code_.walk.kept && bytes > 0 && bytes < kFarthest ? uint32_t(bytes) : 0;
  }

  void give_outputs(RowPart& part, int step, std::vector<Give>& gives) {
    const std::vector<int>& outputs = plan_.group.graph.outputs;
    for (int i = 0; i < int(outputs.size()); i++) {
      if (outputs[size_t(i)] != step) continue;
      part.give(part.want(step));
      gives.push_back({Give::Kind::output, i, dtype_of(step)});
    }
  }

  void make_kept(int l) {
    RowPart part(plan_, l, true);
    RowCode::Part& to = code_.levels.back().kept;
    for (const int step : plan_.levels[size_t(l)].kept) {
      part.give(part.want(step));
      to.gives.push_back({Give::Kind::slot, slot_of(step), dtype_of(step)});
      give_outputs(part, step, to.gives);
    }
    if (l > 0) {
      for (const int step : plan_.levels[size_t(l) - 1].reductions) {
        give_outputs(part, step, to.gives);
      }
    }
    if (!to.gives.empty()) compile_part(part, true, int(to.gives.size()), {}, to);
  }

  void make_pass(int l) {
    const RowPlan::Level& level = plan_.levels[size_t(l)];
    RowPart part(plan_, l, false);
    RowCode::Part& to = code_.levels.back().pass;
    std::vector<FoldedOutput> folds;
    for (const int step : level.reductions) make_folding(step);
    std::vector<RowCode::Folding>& foldings = code_.levels.back().foldings;
    for (size_t i = 0; i < foldings.size(); i++) {
      if (!foldings[i].in_passing) continue;
      part.give(part.operand(level.reductions[i]));
      to.gives.push_back({Give::Kind::folded, int(i), foldings[i].computed});
      folds.push_back({foldings[i].fold, true});
    }
    code_.levels.back().folds = !folds.empty();
    for (const int step : level.columns) {
      part.give(part.operand(step));
      to.gives.push_back(make_column(step));
      folds.push_back({code_.columns.back().fold, false});
    }
    for (const int step : level.saved) {
      part.give(part.want(step));
      to.gives.push_back({Give::Kind::saved, saved_of(step), dtype_of(step)});
    }
    for (size_t i = 0; i < foldings.size(); i++) {
      if (foldings[i].buffer < 0) continue;
      part.give(part.operand(level.reductions[i]));
      to.gives.push_back({Give::Kind::buffer, foldings[i].buffer, foldings[i].computed});
    }
    const int close = int(to.gives.size());
    for (const int step : level.whole) give_outputs(part, step, to.gives);
    if (!to.gives.empty()) compile_part(part, false, close, std::move(folds), to);
    if (close < int(to.gives.size())) {
      to.stores =
          stores_of(plan_.group.domain.element_count() * int64_t(size_of(to.gives.back().dtype)));
    }
    for (const RowCode::Folding& folding : code_.levels.back().foldings) {
      if (folding.from.kind == Feed::Kind::direct) read_[size_t(folding.from.index)] = true;
    }
  }

  Give make_column(int step) {
    const std::vector<int>& outputs = plan_.group.graph.outputs;
    const DType dtype = dtype_of(step);
    const DType computed = computed_in(plan_.step(step).op, plan_.operand_of(step).type.dtype);
    RowCode::Column column{fold_of(plan_.step(step).op),
                           computed,
                           int(std::find(outputs.begin(), outputs.end(), step) - outputs.begin()),
                           dtype,
                           {}};
    if (dtype != computed) column.cast = cast_code(computed, dtype);
    code_.columns.push_back(std::move(column));
    return {Give::Kind::column, int(code_.columns.size()) - 1, computed};
  }

  void make_folding(int reduction) {
    const Step& own = plan_.step(reduction);
    const int operand = own.inputs[0];
    const DType dtype = dtype_of(operand), computed = computed_in(own.op, dtype);
    RowCode::Folding folding;
    folding.fold = fold_of(own.op);
    folding.computed = computed;
    folding.dtype = own.type.dtype;
    folding.slot = slot_of(reduction);
    if (own.type.dtype != computed) folding.cast = cast_code(computed, own.type.dtype);
    const bool as_it_is = dtype == computed && !is_question(own.op);
    if (as_it_is && is_direct(operand)) {
      folding.from = feed_of(operand, false);
      code_.cost += 0.08 * double(size_of(dtype));
    } else if (!code_.together && computed == DType::f32) {
      folding.in_passing = true;
    } else if (as_it_is && plan_.saved[size_t(operand)]) {
      folding.from = feed_of(operand, false);
    } else {
      folding.buffer = code_.buffers++;
    }
    code_.cost += 0.1;
    code_.levels.back().foldings.push_back(std::move(folding));
  }

  bool is_direct(int step) const {
    if (step >= plan_.group.inputs || plan_.step(step).op != Op::leaf) return false;
    const auto [type, layout] = input(step);
    const Spread spread(type, layout, plan_.group.domain);
    return code_.together ? spread.is_dense() : spread.has_lines(code_.walk.length, 1);
  }

  static Code cast_code(DType from, DType to) {
    Graph graph;
    graph.steps = {{Op::leaf, {from, {}}, {}, {}, {}}, {Op::cast, {to, {}}, {0}, {}, {}}};
    graph.outputs = {1};
    return compile(graph, std::array{Reach::direct}, {.apart = true});
  }

  const RowPlan& plan_;
  RowCode& code_;
  std::vector<int> slots_, saved_;  // per step
  std::vector<bool> read_, asked_;
};

}  // namespace

Spread::Spread(const Type& type, const Layout& layout, const Shape& domain) {
  int64_t own[kMaxRank];
  broadcast_strides(type, layout, domain, own);
  for (int axis = 0; axis < domain.rank(); axis++) {
    if (domain[axis] == 1) continue;
    if (rank == 0 || strides[rank - 1] != own[axis] * domain[axis]) sizes[rank++] = 1;
    sizes[rank - 1] *= domain[axis];
    strides[rank - 1] = own[axis];
  }
}

int64_t Spread::at(int64_t element) const {
  int64_t offset = 0;
  for (int axis = rank - 1; axis > 0; axis--) {
    offset += element % sizes[axis] * strides[axis];
    element /= sizes[axis];
  }
  return rank == 0 ? 0 : offset + element * strides[0];
}

bool Spread::has_lines(int64_t length, int64_t stride) const {
  return rank == 0 || (strides[rank - 1] == stride && sizes[rank - 1] % length == 0);
}

bool Spread::is_repeated(int64_t length) const {
  int64_t elements = 1;
  int axis = rank - 1;
  while (axis >= 0 && elements < length) elements *= sizes[axis--];
  if (elements != length) return false;
  while (axis >= 0 && strides[axis] == 0) axis--;
  return axis < 0;
}

RowCode::RowCode(const RowPlan& plan)
    : walk(plan.group.domain, axes_of(plan.step(plan.group.anchor).attributes)),
      together(walk.others == 1 && walk.length < kLongRow),
      rows(together ? std::max<int64_t>(kTogether / walk.length, 1)
                    : std::clamp<int64_t>(kElements / row_elements(), 1, kMostRows)),
      cost(0) {
  Maker(plan, *this).make();
}

bool has_long_rows(const Shape& domain, const Attributes& axes) {
  const Walk walk(domain, axes);
  return !walk.empty && walk.width == 1 && walk.others == 1 && walk.length >= kLongRow &&
         walk.length <= kLongest;
}

bool has_rows(const RowPlan& plan) {
  const Walk walk(plan.group.domain, axes_of(plan.step(plan.group.anchor).attributes));
  if (walk.empty || walk.width > 1 || walk.others * walk.length > kLongest) return false;
  if (plan.has_columns() && (walk.others > 1 || walk.length < kLongRow)) return false;
  for (const RowPlan::Level& level : plan.levels) {
    for (const int reduction : level.reductions) {
      if (is_position(plan.step(reduction).op)) return false;
    }
  }
  return true;
}

}  // namespace fornax::flex
