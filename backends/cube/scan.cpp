// cumsum, cumprod, cummax, cummin: running results along one axis.  The other axes number lines,
// which are independent.
//
// A thread walks a line on its own where lines are short, or where many lie side by side, so that
// neighbouring threads read neighbouring elements.  Otherwise a block takes a line, piece by piece:
// each thread runs over its few elements, lanes and then warps pass on what comes before them, and
// the last result is carried to the next piece.
//
// Floats are summed and multiplied in f64 and rounded at each element, so that the order of
// combination cannot overflow where the numbers do not.
#include <algorithm>

#include "backends/cube/kernels.h"
#include "backends/cube/operand.h"
#include "backends/cube/sequence.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

using kernel::Variable;

constexpr int kThreads = 256;
constexpr int kItems = 4;             // elements that a thread takes of a piece
constexpr int64_t kShortLine = 64;    // a block would have too little to do
constexpr int64_t kManyLines = 1024;  // enough to walk one each

struct ScanClass {
  Op op = Op::cumsum;
  DType result = DType::f32, index = DType::i32;
  ViewClass x, y;  // over the lines' axes and along the scanned one
  bool by_thread = false;
  int warp = 32;

  int rank() const { return int(x.strides.size()) - 1; }  // of the lines
  std::string key() const {
    return fmt::format("{} {} {} {} w{}{}", info(op).name, key_of(x), key_of(y), name_of(index),
                       warp, by_thread ? " threads" : "");
  }
  bool adds() const { return op == Op::cumsum || op == Op::cumprod; }
  // What running results are computed in.
  DType work() const {
    if (is_boolean(result)) return DType::i32;
    return adds() && is_floating(result) ? DType::f64 : kernel::compute_dtype(result);
  }
};

class ScanKernel {
 public:
  explicit ScanKernel(const ScanClass& known)
      : known_(known), k_(std::string(info(known.op).name), {.threads = kThreads}) {}

  kernel::Kernel build() {
    x_ = declare_view(k_, "x", known_.x, false, known_.index);
    y_ = declare_view(k_, "y", known_.y, true, known_.index);
    lines_ = declare_extents(k_, known_.rank(), known_.index);
    length_ = k_.number("length", known_.index, {.most = INT64_MAX});
    if (known_.by_thread) {
      const Value count = k_.number("count", known_.index, {.most = INT64_MAX});
      const Value line = thread_number(k_, known_.index);
      k_.when(line < count, [&] { walk(position_of(k_, lines_, line)); });
    } else {
      share(position_of(k_, lines_, k_.cast(k_.block(), known_.index)));
    }
    return k_.finish();
  }

 private:
  Value combine(Value before, Value x) {
    switch (known_.op) {
      case Op::cumsum:
        return before + x;
      case Op::cumprod:
        return before * x;
      case Op::cummax:
        return maximum(before, x);
      default:
        return minimum(before, x);
    }
  }
  Value index(const View& view, Position line, Value along) {
    line.push_back(along);
    return view.index(k_, line);
  }
  // An element in the dtype of the work; where `mask` is false any number.
  Value load(const Position& line, Value along, Value mask = {}) {
    const Value at = index(x_, line, along);
    const Value x = mask ? k_.load(x_.memory, at, mask, 0) : k_.load(x_.memory, at);
    return k_.cast(x, known_.work());
  }
  void store(const Position& line, Value along, Value value, Value mask = {}) {
    k_.store(y_.memory, index(y_, line, along), k_.cast(value, known_.result), mask);
  }

  void walk(const Position& line) {
    const Value start = k_.constant(known_.index, 0);
    Variable running(load(line, start));
    store(line, start, running);
    k_.loop(1, length_, 1, [&](Value along) {
      running = combine(running, load(line, along));
      store(line, along, running);
    });
  }

  // The results of all lanes up to this one, of one value each.
  Value scan_warp(Value x) {
    const Value lane = k_.thread() & (known_.warp - 1);
    for (int distance = 1; distance < known_.warp; distance *= 2) {
      const Value before = k_.shuffle(x, lane - distance);
      x = select(lane >= distance, combine(before, x), x);
    }
    return x;
  }

  void share(const Position& line) {
    const int warps = kThreads / known_.warp;
    const Value totals = k_.shared(known_.work(), warps);
    const Value lane = k_.thread() & (known_.warp - 1);
    const Value warp = k_.thread() / known_.warp;
    const Value first = k_.cast(k_.thread() * kItems, known_.index);
    Variable carry(k_.constant(known_.work(), 0));
    k_.loop(0, length_, kThreads * kItems, [&](Value piece) {
      std::vector<Value> results, masks;
      for (int i = 0; i < kItems; i++) {
        // Past the end there is any number: nothing comes after it.
        masks.push_back(piece + first + i < length_);
        const Value x = load(line, piece + first + i, masks.back());
        results.push_back(i == 0 ? x : combine(results.back(), x));
      }
      const Value up_to_here = scan_warp(results.back());
      k_.when(lane == known_.warp - 1, [&] { k_.store(totals, warp, up_to_here); });
      k_.barrier();
      // What comes before this thread, and whether anything does: pieces, warps, then lanes.
      Value before = carry, any = piece > 0, all = carry, any_total = any;
      for (int w = 0; w < warps; w++) {
        const Value total = k_.load(totals, w);
        all = select(any_total, combine(all, total), total);
        any_total = k_.constant(DType::bool_, true);
        before = select(warp > w, all, before);
      }
      any = any | (warp > 0);
      const Value lanes = k_.shuffle(up_to_here, lane - 1);
      before = select(lane > 0, select(any, combine(before, lanes), lanes), before);
      any = any | (lane > 0);
      for (int i = 0; i < kItems; i++) {
        const Value result = select(any, combine(before, results[size_t(i)]), results[size_t(i)]);
        store(line, piece + first + i, result, masks[size_t(i)]);
      }
      carry = all;
      k_.barrier();
    });
  }

  const ScanClass& known_;
  Builder k_;
  View x_, y_;
  std::vector<Extent> lines_;
  Value length_;
};

}  // namespace

std::unique_ptr<PreparedGroup> prepare_scan(Device& device, const Group& group) {
  const Step& step = group.graph.steps[size_t(group.anchor)];
  auto sequence = std::make_unique<ScratchSequence>(device, group);
  const int64_t elements = step.type.shape.element_count();
  if (elements == 0) return sequence;
  const Source x = source_of(device, *sequence, group, 0);
  const Nest nest = lines_along(x, axis_of(step.attributes));
  const int64_t length = nest.extents.back(), lines = elements / length;
  ScanClass known;
  known.op = step.op;
  known.result = step.type.dtype;
  known.x = view_class(x.dtype, nest.strides[0]);
  known.y = view_class(step.type.dtype, nest.strides[1]);
  known.index = index_dtype(elements + kThreads * kItems, {span_of(nest.extents, nest.strides[0]),
                                                           span_of(nest.extents, nest.strides[1])});
  known.by_thread = length <= kShortLine || (nest.strides[1].back() != 1 && lines >= kManyLines);
  known.warp = device.capabilities().warp;

  Arguments arguments;
  pass_view(arguments, x.place, known.x, nest.extents, nest.strides[0], known.index);
  pass_view(arguments, Place::output(0), known.y, nest.extents, nest.strides[1], known.index);
  pass_extents(arguments, {nest.extents.begin(), nest.extents.end() - 1}, known.index);
  arguments.number(known.index, length);
  if (known.by_thread) arguments.number(known.index, lines);
  sequence->add(Launch(device, {known.key(), [known] { return ScanKernel(known).build(); }},
                       blocks_for(lines, known.by_thread ? kThreads : 1), std::move(arguments)));
  return sequence;
}

}  // namespace fornax::cube
