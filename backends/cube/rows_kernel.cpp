// The kernel of a row program, written as tiles.
#include <algorithm>
#include <map>

#include "backends/cube/positions.h"
#include "backends/cube/row_shape.h"
#include "backends/cube/rows.h"
#include "backends/cube/tickets.h"
#include "base/error.h"
#include "kernel/lower.h"

namespace fornax::cube {
namespace {

class RowKernel {
 public:
  explicit RowKernel(const RowClass& known)
      : known_(known),
        k_("rows", {.dialect = kernel::Dialect::tile, .distributions = {known.distribution}}) {}

  kernel::Kernel build() {
    declare();
    values_.resize(known_.steps.size());
    if (known_.parts) {
      compute_parts();
      return kernel::lower(k_.finish());
    }
    place_block();
    if (known_.single) {
      compute_single();
    } else if (known_.split) {
      compute_split();
    } else {
      for (int level = 0; level <= levels(); level++) sweep(level);
      store_kept();
    }
    return kernel::lower(k_.finish());
  }

 private:
  struct Pass {
    Position position;
    Value reduced;             // the linear position along the reduced axes
    Value mask, mask_reduced;  // none: all exist
    std::vector<Value> values;
  };

  bool is_reduction(const RowStep& s) const { return is_reduce(s.step.op) && !s.column; }
  const RowStep& step(int i) const { return known_.steps[size_t(i)]; }
  DType operand_dtype(const RowStep& s) const { return step(s.step.inputs[0]).step.type.dtype; }
  int levels() const {
    int most = 0;
    for (const RowStep& s : known_.steps) most = std::max(most, s.level);
    return most;
  }

  void declare() {
    for (size_t i = 0; i < known_.views.size(); i++) {
      const bool written = i + known_.outputs.size() >= known_.views.size();
      views_.push_back(declare_view(k_, fmt::format("{}{}", written ? "y" : "x", i),
                                    known_.views[i], written, known_.index));
    }
    numbers_.resize(known_.steps.size());
    for (int i = 0; i < known_.inputs; i++) {
      if (step(i).step.op != Op::full) continue;
      numbers_[size_t(i)] = declare_scalar(k_, fmt::format("number{}", i), step(i).step.type.dtype);
    }
    for (size_t axis = 0; axis < known_.kinds.size(); axis++) {
      extents_.push_back(declare_extent(k_, fmt::format("extent{}", axis), known_.index));
    }
    const auto count = [&](const char* name, int divisor) {
      return k_.number(name, known_.index, {.divisor = divisor, .most = INT64_MAX});
    };
    // Of positions that tiles walk over: along the innermost axis alone where there is a rest.
    const int kept = known_.by_rows ? 1 : known_.divisor;
    const int reduced = known_.by_rows ? known_.divisor : 1;
    kept_count_ = count("kept", known_.whole_kept ? known_.kept_tile : kept);
    reduced_count_ = count("reduced", known_.whole_reduced ? known_.reduced_tile : reduced);
    tiles_ = declare_extent(k_, "tiles", known_.index);  // along the tiled axis, of a block's walk
    turns_ = count("turns", 1);                          // of a block
    all_turns_ = count("all_turns", 1);
    if (known_.deep || known_.parts) depth_ = count("depth", kPartUnit);
    for (const int i : columns()) declare_part(i, 256);
    if (!known_.split) return;
    splits_ = count("splits", 1);
    if (!known_.by_rows) kept_all_ = count("kept_all", known_.divisor);
    for (int i = 0; i < int(known_.steps.size()); i++) {
      if (is_reduction(step(i)) && step(i).level <= known_.level + 1) declare_shared(i);
    }
    if (known_.level < levels()) tickets_ = declare_tickets(k_);
  }

  void declare_part(int i, int divisor) {
    std::vector<Value>& own = parts_[size_t(i)];
    for (const DType dtype : dtypes_of(step(i))) {
      own.push_back(
          k_.output(fmt::format("part{}_{}", i, own.size()), dtype, {.divisor = divisor}));
    }
  }

  void declare_shared(int i) {
    const RowStep& s = step(i);
    const bool ends = s.level == known_.level + 1;
    const kernel::Facts facts{.divisor = 16};
    if (ends) declare_part(i, 16);
    if (ends && !known_.more) return;
    const std::string name = fmt::format("value{}", i);
    const DType dtype = s.step.type.dtype;
    known_values_[size_t(i)] = ends ? k_.output(name, dtype, facts) : k_.buffer(name, dtype, facts);
  }

  std::vector<DType> dtypes_of(const RowStep& s) const {
    return accumulator_dtypes(s.step.op, operand_dtype(s), s.step.type.dtype, known_.index);
  }

  Value number(int64_t n) { return k_.constant(known_.index, n); }
  Value iota(bool kept) {
    const bool rows = kept == known_.by_rows;
    return k_.cast(k_.iota(rows ? 0 : 1, kept ? known_.kept_tile : known_.reduced_tile),
                   known_.index);
  }
  Value spread(Value value) { return spread(value, known_.reduced_tile); }
  Value spread(Value value, int reduced_tile) {
    return known_.by_rows ? k_.spread(value, known_.kept_tile, reduced_tile)
                          : k_.spread(value, reduced_tile, known_.kept_tile);
  }
  int reduced_axis() const { return known_.by_rows ? 1 : 0; }

  // Which kept positions are this block's: by rows, kept_tile of all; by columns, kept_tile along
  // the innermost axes at one position of the other kept axes.
  void place_block() {
    const Value block = k_.cast(k_.block(0), known_.index);
    if (known_.by_rows) return place_rows(block * known_.kept_tile + iota(true));
    const int rank = int(known_.kinds.size());
    kept_position_.resize(size_t(rank));
    const Value outer = divide(k_, tiles_, block);
    kept_ = (block - outer * tiles_.size) * known_.kept_tile + iota(true);
    decompose(outer, 0, 0, known_.inner, kept_position_);
    decompose(kept_, 0, known_.inner, rank, kept_position_);
    kept_number_ = outer * kept_count_ + kept_;
    if (!known_.whole_kept) kept_mask_ = kept_ < kept_count_;
  }
  void place_rows(Value kept) {
    kept_ = kept_number_ = kept;
    kept_position_.assign(known_.kinds.size(), {});
    decompose(kept_, 0, 0, int(known_.kinds.size()), kept_position_);
    if (!known_.whole_kept) kept_mask_ = kept_ < kept_count_;
  }

  // Positions along the axes of `kind` from `begin` up to `end`, from their linear number.
  void decompose(Value number, int kind, int begin, int end, Position& position) {
    int left = int(std::count(known_.kinds.begin() + begin, known_.kinds.begin() + end, kind));
    for (int axis = end - 1; axis >= begin; axis--) {
      if (known_.kinds[size_t(axis)] != kind) continue;
      if (--left == 0) {
        position[size_t(axis)] = number;
        return;
      }
      const Extent& extent = extents_[size_t(axis)];
      const Value quotient = divide(k_, extent, number);
      position[size_t(axis)] = number - quotient * extent.size;
      number = quotient;
    }
  }

  static Value both(Value a, Value b) { return a.none() ? b : b.none() ? a : a & b; }

  // The pass over the tile of turn `turn`.
  Pass pass_at(Value turn) {
    if (!known_.nested) return pass_over(turn * known_.reduced_tile + iota(false));
    Pass pass;
    pass.position = kept_position_;
    pass.values.resize(known_.steps.size());
    const int rank = int(known_.kinds.size());
    const Value outer = divide(k_, tiles_, turn);
    const Value inner = (turn - outer * tiles_.size) * known_.reduced_tile + iota(false);
    decompose(outer, 1, 0, known_.inner, pass.position);
    decompose(inner, 1, known_.inner, rank, pass.position);
    pass.reduced = outer * reduced_count_ + inner;
    if (!known_.whole_reduced) pass.mask_reduced = inner < reduced_count_;
    pass.mask = both(kept_mask_, pass.mask_reduced);
    return pass;
  }

  // The pass over the reduced positions with these linear numbers.
  Pass pass_over(Value reduced) {
    Pass pass;
    pass.position = kept_position_;
    pass.values.resize(known_.steps.size());
    pass.reduced = reduced;
    decompose(reduced, 1, 0, int(known_.kinds.size()), pass.position);
    if (!known_.whole_reduced) pass.mask_reduced = reduced < reduced_count_;
    pass.mask = both(kept_mask_, pass.mask_reduced);
    return pass;
  }

  Value load(int i, const Pass& pass) {
    const auto found = std::find(known_.view_steps.begin(), known_.view_steps.end(), i);
    const View& view = views_[size_t(found - known_.view_steps.begin())];
    // What the operand does not walk along has no part in its index, nor in what masks it.
    const auto walks = [&](int kind) {
      for (size_t axis = 0; axis < known_.kinds.size(); axis++) {
        if (known_.kinds[axis] == kind && view.known.strides[axis] != StrideClass::zero)
          return true;
      }
      return false;
    };
    const Value mask =
        both(walks(0) ? kept_mask_ : Value(), walks(1) ? pass.mask_reduced : Value());
    const Value index = k_.cast(view.index(k_, pass.position), known_.index);
    return mask ? k_.load(view.memory, index, mask, 0) : k_.load(view.memory, index);
  }

  // The value of step `i` in a pass, computed with what it reads where that is not there yet.
  Value value(int i, Pass& pass) {
    const RowStep& s = step(i);
    Value& known = s.kept ? values_[size_t(i)] : pass.values[size_t(i)];
    if (known) return known;
    if (i < known_.inputs) {
      const Value loaded = s.step.op == Op::full ? numbers_[size_t(i)] : load(i, pass);
      return (s.kept ? values_[size_t(i)] : pass.values[size_t(i)]) = loaded;
    }
    FORNAX_CHECK(!is_reduction(s));
    std::vector<Value> operands;
    for (const int input : s.step.inputs) operands.push_back(value(input, pass));
    const Value result =
        s.step.op == Op::arange
            ? arange_element(k_, s.step.type.dtype, operands[0], operands[1], pass.position.back())
            : run_step(k_, s.step, operands);
    return (s.kept ? values_[size_t(i)] : pass.values[size_t(i)]) = result;
  }

  // Before the loop of a pass: what there is of kept operands is asked for, and the kept values
  // that the loop's body reads are computed.
  void prepare_kept(int level) {
    Pass pass;
    pass.position = kept_position();
    for (int i = 0; i < known_.inputs; i++) {
      if (step(i).kept) value(i, pass);
    }
    for (const RowStep& s : known_.steps) {
      const bool reads = is_reduction(s) ? s.level == level + 1 : !s.kept && s.level <= level;
      if (!reads) continue;
      for (const int input : s.step.inputs) {
        if (step(input).kept) value(input, pass);
      }
    }
  }

  // Of the block's kept positions, 0 along reduced axes.
  Position kept_position() {
    Position position = kept_position_;
    for (Value& axis : position) {
      if (axis.none()) axis = number(0);
    }
    return position;
  }

  std::vector<int> steps_where(FunctionRef<bool(const RowStep&)> holds) const {
    std::vector<int> list;
    for (int i = 0; i < int(known_.steps.size()); i++) {
      if (holds(step(i))) list.push_back(i);
    }
    return list;
  }
  std::vector<int> columns() const {
    return steps_where([](const RowStep& s) { return s.column; });
  }
  std::vector<int> reductions(int level) const {
    return steps_where([&](const RowStep& s) { return is_reduction(s) && s.level == level; });
  }

  // The accumulators of a tile's elements; what is not there changes nothing.
  Accumulators accumulate(int i, Pass& pass) {
    const RowStep& s = step(i);
    Accumulators own;
    if (known_.given) {
      for (const int input : s.step.inputs) own.push_back(value(input, pass));
    } else {
      const Value position = s.column ? kept_number_ : pass.reduced;
      own = begin(k_, s.step, value(s.step.inputs[0], pass), position);
    }
    const Value mask = s.column ? kept_mask_ : pass.mask_reduced;
    if (mask.none()) return own;
    const Accumulators none = identity(k_, s.step, operand_dtype(s), known_.index);
    for (size_t a = 0; a < own.size(); a++) own[a] = select(mask, own[a], none[a]);
    return own;
  }

  Gathered begin_tile(int i, int reduced_tile) {
    Accumulators none = identity(k_, step(i).step, operand_dtype(step(i)), known_.index);
    for (Value& a : none) a = spread(a, reduced_tile);
    return {step(i).step.op, none};
  }
  using Running = std::vector<Gathered>;
  Running begin_all(const std::vector<int>& reductions) {
    Running running;
    for (const int i : reductions) running.push_back(begin_tile(i, known_.reduced_tile));
    return running;
  }

  Accumulators reduce_tile(int i, Accumulators all) {
    for (Value& a : all) a = spread(a);
    return reduce_spread(i, std::move(all));
  }
  Accumulators reduce_spread(int i, Accumulators all) {
    const Op op = step(i).step.op;
    return k_.reduce(reduced_axis(), std::move(all),
                     [&](std::span<const Value> left, std::span<const Value> right) {
                       return combine(op, {left.begin(), left.end()}, {right.begin(), right.end()});
                     });
  }

  Pass compute_single() {
    prepare_kept(0);
    Pass pass = pass_at(number(0));
    for (int level = 0; level <= levels(); level++) {
      for (const int i : reductions(level + 1)) {
        values_[size_t(i)] = finish(k_, step(i).step, reduce_tile(i, accumulate(i, pass)));
      }
    }
    for (int level = 0; level <= levels(); level++) store_all(level, pass);
    store_kept();
    return pass;
  }

  // The turns of this block; of parts, which are little to do, several at a time are loaded.
  void walk(FunctionRef<void(Pass&)> body) {
    Value first = number(0), last = turns_;
    if (known_.split) {
      first = k_.cast(k_.block(1), known_.index) * turns_;
      last = min(first + turns_, all_turns_);
    }
    const int ahead = known_.given ? 4 : 1;
    k_.loop(first, last, ahead, [&](Value turn) {
      for (int t = 0; t < ahead; t++) {
        Pass pass = pass_at(turn + t);
        if (t > 0) pass.mask_reduced = both(pass.mask_reduced, turn + t < last);
        body(pass);
      }
    });
  }

  // One pass over the reduced axes: the outputs of `level`, and the reductions that end it.
  void sweep(int level) {
    prepare_kept(level);
    const std::vector<int> own = reductions(level + 1);
    const bool stores = std::any_of(known_.outputs.begin(), known_.outputs.end(),
                                    [&](int i) { return !step(i).kept && step(i).level == level; });
    if (own.empty() && !stores) return;
    Running running = begin_all(own);
    walk([&](Pass& pass) {
      if (known_.deep) return sweep_part(level, own, running, pass.reduced);
      for (size_t r = 0; r < own.size(); r++) running[r].add(accumulate(own[r], pass));
      store_all(level, pass);
    });
    for (size_t r = 0; r < own.size(); r++) {
      const Accumulators all = reduce_tile(own[r], running[r].all());
      if (known_.split) {
        for (size_t a = 0; a < all.size(); a++) {
          const Value at = place_of_part(k_.cast(k_.block(1), known_.index));
          k_.store(parts_[size_t(own[r])][a], at, all[a], kept_mask_);
        }
      } else {
        values_[size_t(own[r])] = finish(k_, step(own[r]).step, all);
      }
    }
  }

  // A part of the rows, one row after another.
  void sweep_part(int level, const std::vector<int>& own, Running& running, Value part) {
    Running sums = begin_all(own);
    k_.loop(number(0), depth_, kPartUnit, [&](Value first) {
      for (int row = 0; row < kPartUnit; row++) {
        Pass pass = pass_over(part * depth_ + (first + row));
        for (size_t r = 0; r < own.size(); r++) sums[r].add(accumulate(own[r], pass));
        store_all(level, pass);
      }
    });
    for (size_t r = 0; r < own.size(); r++) running[r].add(sums[r].all());
  }

  // Whole rows one after another, as many as a part has, and the columns' parts after them.
  void compute_parts() {
    const std::vector<int> own = columns();
    const Value part = k_.cast(k_.block(0), known_.index) * known_.kept_tile + iota(true);
    Running running = begin_all(own);
    k_.loop(number(0), depth_, 1, [&](Value row) {
      place_rows(part * depth_ + row);
      values_.assign(known_.steps.size(), {});
      Pass pass = compute_single();
      for (size_t r = 0; r < own.size(); r++) running[r].add(accumulate(own[r], pass));
    });
    if (!known_.whole_kept) kept_mask_ = part * depth_ < kept_count_;
    const Pass pass = pass_at(number(0));
    for (size_t r = 0; r < own.size(); r++) {
      const std::vector<Value>& parts = parts_[size_t(own[r])];
      for (size_t a = 0; a < parts.size(); a++) {
        k_.store(parts[a], part * reduced_count_ + pass.reduced, running[r].all()[a], pass.mask);
      }
    }
  }

  void compute_split() {
    for (const auto& [i, values] : known_values_) {
      if (step(int(i)).level > known_.level) continue;
      values_[i] =
          kept_mask_ ? k_.load(values, kept_number_, kept_mask_, 0) : k_.load(values, kept_number_);
    }
    sweep(known_.level);
    if (known_.level == levels()) return;
    when_last(k_, tickets_, k_.block(0), splits_, [&] {
      for (const int i : reductions(known_.level + 1)) combine_parts(i);
      if (known_.level + 1 == levels()) store_kept();
    });
  }

  // Parts lie as threads walk: those of a row side by side, or those of neighbouring columns.
  Value place_of_part(Value part) const {
    return known_.by_rows ? kept_number_ * splits_ + part : part * kept_all_ + kept_number_;
  }

  // A reduction from what all blocks left of it.
  void combine_parts(int i) {
    const Accumulators none = identity(k_, step(i).step, operand_dtype(step(i)), known_.index);
    const auto load = [&](Value part) {
      Accumulators all;
      for (size_t a = 0; a < none.size(); a++) {
        const Value mask = both(kept_mask_, part < splits_);
        all.push_back(k_.load(parts_[size_t(i)][a], place_of_part(part), mask, none[a]));
      }
      return all;
    };
    Accumulators all;
    if (known_.deep || known_.given) {
      const int tile = known_.reduced_tile * kPartUnit;
      const Value within = k_.cast(k_.iota(0, tile), known_.index);
      Gathered running = begin_tile(i, tile);
      k_.loop(number(0), splits_, tile, [&](Value first) { running.add(load(first + within)); });
      all = reduce_spread(i, running.all());
    } else {
      all = reduce_tile(i, load(iota(false)));
    }
    values_[size_t(i)] = finish(k_, step(i).step, all);
    if (known_.more) {
      k_.store(known_values_[size_t(i)], kept_number_, values_[size_t(i)], kept_mask_);
    }
  }

  const View& written(size_t output) const {
    return views_[known_.views.size() - known_.outputs.size() + output];
  }

  // The outputs of `level` all along the reduced axes.
  void store_all(int level, Pass& pass) {
    for (size_t o = 0; o < known_.outputs.size(); o++) {
      const int i = known_.outputs[o];
      if (step(i).kept || step(i).level != level) continue;
      k_.store(written(o).memory, k_.cast(written(o).index(k_, pass.position), known_.index),
               spread(value(i, pass)), pass.mask);
    }
  }

  void store_kept() {
    Pass pass;
    pass.position = kept_position();
    for (size_t o = 0; o < known_.outputs.size(); o++) {
      const int i = known_.outputs[o];
      if (!step(i).kept) continue;
      const Value index = k_.cast(written(o).index(k_, pass.position), known_.index);
      k_.store(written(o).memory, index, value(i, pass), kept_mask_);
    }
  }

  const RowClass& known_;
  Builder k_;
  std::vector<View> views_;
  std::vector<Value> numbers_;  // by step
  std::vector<Extent> extents_;
  Value kept_count_, reduced_count_, turns_, all_turns_, splits_, kept_all_, depth_;
  Extent tiles_;
  std::map<size_t, std::vector<Value>> parts_;  // of reductions that end here or columns, by step
  std::map<size_t, Value> known_values_;        // of those that ended, or for launches to come
  Value tickets_;
  Value kept_, kept_number_, kept_mask_;
  Position kept_position_;     // reduced axes empty
  std::vector<Value> values_;  // kept ones, by step
};

}  // namespace

kernel::Kernel build_rows(const RowClass& known) { return RowKernel(known).build(); }

}  // namespace fornax::cube
