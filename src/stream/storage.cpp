#include "stream/storage.h"

#include <algorithm>

namespace fornax {
namespace {

constexpr int kMostRepeated = 10;  // steps to one value: GELU's derivative, with the bias

class Chooser {
 public:
  Chooser(const Segment& segment, const Grouping& grouping, const Backend& backend)
      : segment_(segment),
        grouping_(grouping),
        backend_(backend),
        leaves_(int(segment.leaves.size())) {
    const size_t count = segment.nodes.size();
    result_ = {std::vector<bool>(count), std::vector<bool>(count), std::vector<bool>(count)};
    wanted_.assign(count, 0);
  }

  Storage run() {
    find_inlined();
    if (backend_.repeats_work(Op::arange)) find_positions();
    find_stored();
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      if (wanted_[size_t(n)] > 0 && !result_.stored[size_t(n)]) choose(n);
    }
    return std::move(result_);
  }

 private:
  const SegmentNode& node(int n) const { return segment_.nodes[size_t(n)]; }
  const Type& type_of(int input) const { return segment_.type_of(input); }
  bool in_one_group(int n, int input) const {
    return grouping_.group_of(input) == grouping_.group_of(n + leaves_);
  }

  void find_inlined() {
    const auto is_cast = [&](int n) { return node(n).op == Op::cast; };
    for (const int group : grouping_.order()) {
      const std::vector<int>& nodes = grouping_.draft(group).nodes;
      if (!std::all_of(nodes.begin(), nodes.end(), is_cast)) continue;
      for (const int n : nodes) result_.inlined[size_t(n)] = !node(n).outlives;
    }
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      for (const int input : node(n).inputs) {
        if (input >= leaves_ && !reads_broadcast(n, input)) {
          result_.inlined[size_t(input - leaves_)] = false;
        }
      }
    }
  }
  bool reads_broadcast(int n, int input) const {
    const SegmentNode& x = node(n);
    return works_by_element(x.op) && !in_one_group(n, input) &&
           grouping_.shape_in_group(n) == x.type.shape &&
           type_of(input).shape.element_count() < x.type.shape.element_count();
  }

  void find_positions() {
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      const SegmentNode& x = node(n);
      if (x.op != Op::arange || type_of(n + leaves_).shape.element_count() < 2) continue;
      std::vector<int> views;
      if (!is_position(n, x.type.shape.element_count(), views)) continue;
      for (const int view : views) result_.inlined[size_t(view)] = true;
    }
  }
  // Whether all who read n, an arange or a view of it, have its `count` elements along their last
  // axis; adds n and its views to `views`.
  bool is_position(int n, int64_t count, std::vector<int>& views) const {
    const Shape& shape = node(n).type.shape;
    if (node(n).outlives || shape.element_count() != count || shape[shape.rank() - 1] != count) {
      return false;
    }
    views.push_back(n);
    for (int r = n + 1; r < int(segment_.nodes.size()); r++) {
      const SegmentNode& reader = node(r);
      if (std::find(reader.inputs.begin(), reader.inputs.end(), n + leaves_) ==
          reader.inputs.end()) {
        continue;
      }
      if (is_view(reader.op)) {
        const bool in_order = reader.op != Op::slice && reader.op != Op::unfold;
        if (!in_order || !is_position(r, count, views)) return false;
        continue;
      }
      const Shape& own = reader.type.shape;
      if (!works_by_element(reader.op) || own != grouping_.shape_in_group(r) ||
          own[own.rank() - 1] != count) {
        return false;
      }
    }
    return true;
  }

  // Values read outside their group, or by somebody after the segment, are stored; of a view what
  // it looks at.  Those that their readers might compute again are counted instead.
  void find_stored() {
    for (int n = int(segment_.nodes.size()); n-- > 0;) {
      if (node(n).outlives) result_.stored[size_t(n)] = true;
      for (const int input : node(n).inputs) {
        if (input < leaves_ || result_.inlined[size_t(input - leaves_)]) continue;
        const bool elsewhere = result_.inlined[size_t(n)] || !in_one_group(n, input);
        if (!(is_view(node(n).op) ? result_.stored[size_t(n)] : elsewhere)) continue;
        if (!result_.inlined[size_t(n)] && may_repeat(n, input)) {
          wanted_[size_t(input - leaves_)]++;
        } else {
          result_.stored[size_t(input - leaves_)] = true;
        }
      }
    }
  }

  bool repeats(int n) const {
    return works_by_element(node(n).op) && backend_.repeats_work(node(n).op);
  }

  // Whether `input` could be computed in the group of its reader n, which has it element by
  // element.
  bool may_repeat(int n, int input) const {
    const Draft& reader = grouping_.draft(grouping_.group_of(n + leaves_));
    const Shape& shape = type_of(input).shape;
    if (!repeats(input - leaves_)) return false;
    if (works_by_element(node(n).op)) {
      return node(n).type.shape == shape && grouping_.shape_in_group(n) == shape;
    }
    return is_reduce(node(n).op) && reader.domain == shape;
  }

  // What computing a value again takes: steps, and what has to be in memory for it.
  struct Cost {
    int steps = 0;
    std::vector<int> inputs, nodes;
  };
  void add_cost(int n, Cost& cost) const {
    if (std::find(cost.nodes.begin(), cost.nodes.end(), n) != cost.nodes.end()) return;
    cost.nodes.push_back(n);
    cost.steps += repeats(n) ? 1 : kMostRepeated + 1;
    if (cost.steps > kMostRepeated) return;
    for (int input : node(n).inputs) {
      if (input >= leaves_ && result_.inlined[size_t(input - leaves_)]) {
        if (node(input - leaves_).op != Op::cast) continue;
        input = node(input - leaves_).inputs[0];
      }
      if (is_repeatable_part(n, input)) {
        add_cost(input - leaves_, cost);
      } else if (std::find(cost.inputs.begin(), cost.inputs.end(), input) == cost.inputs.end()) {
        cost.inputs.push_back(input);
      }
    }
  }
  // Whether n's operand is computed with it.
  bool is_repeatable_part(int n, int input) const {
    if (input < leaves_ || result_.stored[size_t(input - leaves_)]) return false;
    const SegmentNode& x = node(input - leaves_);
    return works_by_element(x.op) && x.type.shape == node(n).type.shape &&
           (result_.repeated[size_t(input - leaves_)] || in_one_group(n, input));
  }

  int64_t bytes_of(const Type& type) const {
    return type.shape.element_count() * int64_t(size_of(type.dtype));
  }

  // Of an expanded value, what it looks at is read.
  int64_t bytes_read(int input) const {
    while (input >= leaves_ && node(input - leaves_).op == Op::expand) {
      input = node(input - leaves_).inputs[0];
    }
    return bytes_of(type_of(input));
  }

  // What the group that makes n reads for it and for nothing else.
  int64_t bytes_for_alone(int n) const {
    int64_t bytes = 0;
    const std::vector<int>& members = grouping_.draft(grouping_.group_of(n + leaves_)).nodes;
    for (const int input : node(n).inputs) {
      const auto reads = [&](int other) {
        const std::vector<int>& inputs = node(other).inputs;
        return other != n && std::find(inputs.begin(), inputs.end(), input) != inputs.end();
      };
      if (in_one_group(n, input) || std::any_of(members.begin(), members.end(), reads)) continue;
      bytes += bytes_read(input);
    }
    return bytes;
  }

  // Bytes that are written and read with the value in memory, and without.
  void choose(int n) {
    Cost cost;
    add_cost(n, cost);
    const int64_t readers = wanted_[size_t(n)];
    const int64_t with = bytes_of(node(n).type) * (1 + readers) + bytes_for_alone(n);
    int64_t without = 0;
    for (const int input : cost.inputs) {
      const int64_t bytes = bytes_read(input);
      const bool there = input < leaves_ || is_stored(input);
      without += bytes * (readers + (there ? 0 : 1));
    }
    const bool repeated = cost.steps <= kMostRepeated && without < with;
    result_.repeated[size_t(n)] = repeated;
    if (!repeated) {
      result_.stored[size_t(n)] = true;
    } else {
      for (const int input : cost.inputs) store(input);
    }
  }
  bool is_stored(int input) const {
    while (input >= leaves_ && is_view(node(input - leaves_).op)) {
      input = node(input - leaves_).inputs[0];
    }
    return input < leaves_ || result_.stored[size_t(input - leaves_)];
  }
  void store(int input) {
    while (input >= leaves_) {
      result_.stored[size_t(input - leaves_)] = true;
      if (!is_view(node(input - leaves_).op)) return;
      input = node(input - leaves_).inputs[0];
    }
  }

  const Segment& segment_;
  const Grouping& grouping_;
  const Backend& backend_;
  const int leaves_;
  Storage result_;
  std::vector<int> wanted_;  // per node, how many nodes of other groups could compute it again
};

}  // namespace

Storage choose_storage(const Segment& segment, const Grouping& grouping, const Backend& backend) {
  return Chooser(segment, grouping, backend).run();
}

}  // namespace fornax
