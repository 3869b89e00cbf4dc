// Convolutions and their gradients as products of matrices whose elements are found where they lie:
//
//   convolve         y       [o, n oh ow]  = weight [o, c kh kw]   x  x  [c kh kw, n oh ow]
//   convolve_input   dx      [c, n h w]    = weight [c, o kh kw]   x  dy [o kh kw, n h w]
//   convolve_weight  dweight [o, c kh kw]  = dy     [o, n oh ow]   x  x  [n oh ow, c kh kw]
//
// one product for each group of channels.  The sums of a weight's gradient are long and its tiles
// few: blocks share them out, and what they found is added up afterwards, in order.
#include <algorithm>

#include "backends/cube/convolve.h"
#include "base/error.h"
#include "kernel/library/matmul.h"

namespace fornax::cube {
namespace {

using kernel::MatrixElements;

constexpr kernel::Facts kAny{.most = INT64_MAX};
constexpr kernel::PortableTiles kTiles;
constexpr int kThreads = 256;
constexpr int64_t kShortestShare = 256;  // terms that a block sums up at least

// The product, its sizes in elements.
struct Sizes {
  int64_t groups = 1, m = 0, n = 0, depth = 0;
  int64_t splits = 1, share = 0;  // of the depth, a multiple of the tile's
};
Sizes sizes_of(const Convolution& c, int processors) {
  const Shape &weight = c.weight(), &first = c.pictures.sources[0].shape;
  const Shape& result = c.pictures.result();
  const int64_t groups = c.window.groups, taps = weight[2] * weight[3];
  const int64_t inputs = weight[1], outputs = weight[0] / groups;
  Sizes s;
  s.groups = groups;
  if (c.op == Op::convolve) {
    s.m = outputs, s.n = result[0] * result[2] * result[3], s.depth = inputs * taps;
  } else if (c.op == Op::convolve_input) {
    s.m = inputs, s.n = result[0] * result[2] * result[3], s.depth = outputs * taps;
  } else {
    const Shape& dy = c.pictures.sources[1].shape;
    s.m = outputs, s.n = inputs * taps, s.depth = first[0] * dy[2] * dy[3];
    const int64_t tiles = groups * ceiling(s.m, kTiles.rows) * ceiling(s.n, kTiles.columns);
    const int64_t most = std::max<int64_t>(ceiling(s.depth, kShortestShare), 1);
    s.splits = std::clamp<int64_t>(2 * processors / tiles, 1, most);
  }
  s.share = ceiling(ceiling(s.depth, s.splits), kTiles.depth) * kTiles.depth;
  return s;
}

// All that the kernel's text follows from.
struct TilesClass {
  Op op = Op::convolve;
  Pictures pictures;
  bool unit = false;   // windows move by one element
  bool split = false;  // the result is the partial sums
  std::string key() const {
    return fmt::format("{} tiles {}{}{}", info(op).name, pictures.key(), unit ? " unit" : "",
                       split ? " split" : "");
  }
};

// The sum of two parts of a position, one known by row and one by column.
struct Where {
  Position rows, columns;
};

class TilesKernel {
 public:
  explicit TilesKernel(const TilesClass& known)
      : known_(known),
        index_(known.pictures.index),
        k_(std::string(info(known.op).name),
           kernel::portable_settings(kTiles, order_of_a(known.op), order_of_b(known.op))) {}

  kernel::Kernel build() {
    const DType dtype = known_.pictures.sources[0].dtype;
    const DType sums = kernel::compute_dtype(dtype);
    views_ = known_.pictures.declare(k_, !known_.split);
    if (known_.split) partial_ = k_.output("partial", sums);
    window_ = declare_window(k_, index_);
    inputs_ = declare_extent(k_, "inputs", index_),
    outputs_ = declare_extent(k_, "outputs", index_);
    for (const char* name : {"height", "width"}) {
      first_.push_back(k_.number(fmt::format("{}0", name), index_, kAny));
      moved_.push_back(declare_extent(k_, fmt::format("{}1", name), index_));
      taps_.push_back(declare_extent(k_, fmt::format("tap_{}", name), index_));
    }
    m_ = k_.number("m", DType::i32), n_ = k_.number("n", DType::i32);
    const Value depth = k_.number("depth", DType::i32);
    const Value share = k_.number("share", DType::i32, {.divisor = kTiles.depth});
    const std::vector<Extent> extents = declare_extents(k_, 4, DType::i32);
    if (known_.split) elements_ = k_.number("elements", index_, kAny);
    // share, group, tile down, tile across
    const Position at = position_of(k_, extents, k_.block());
    group_ = k_.cast(at[1], index_);
    const Value row = at[2] * kTiles.rows, column = at[3] * kTiles.columns;
    const Value from = at[0] * share, to = min(from + share, depth);
    const Value tile =
        kernel::portable_matmul(k_, kTiles, sums, a(to), b(to), from, to, row, column);
    store(tile, at[0], row, column);
    return k_.finish();
  }

 private:
  static kernel::CopyOrder order_of_a(Op op) { return {op != Op::convolve_input, 1}; }
  static kernel::CopyOrder order_of_b(Op op) { return {op != Op::convolve_weight, 1}; }

  Value wide(Value x) { return k_.cast(x, index_); }
  Value zero() { return k_.constant(index_, 0); }

  // Number `x` of [channel, kh, kw] and of [picture, height, width].
  Position taps_at(Value x) { return split(x, taps_); }
  Position moved_at(Value x) { return split(x, moved_); }
  Position split(Value x, const std::vector<Extent>& last) {
    const Value lines = divide(k_, last[1], x), whole = divide(k_, last[0], lines);
    return {whole, lines - whole * last[0].size, x - lines * last[1].size};
  }

  // An element whose index is the sum of that of two positions.
  Value index(const View& view, const Where& where) {
    View rest = view;
    rest.first = {};
    return wide(view.index(k_, where.rows)) + wide(rest.index(k_, where.columns));
  }

  // Rows are channels of the weight's one side, columns those of the other with their taps.
  MatrixElements weight(const View& view, bool of_outputs, Value height, Value width) {
    const auto at = [this, view, of_outputs](Value r, Value c) {
      const Value row = wide(r);
      const Position tap = taps_at(wide(c));
      const Value first = group_ * outputs_.size;
      if (of_outputs)
        return index(view,
                     {{first + row, zero(), zero(), zero()}, {zero(), tap[0], tap[1], tap[2]}});
      return index(view, {{zero(), row, zero(), zero()}, {first + tap[0], zero(), tap[1], tap[2]}});
    };
    return {view.memory, {of_outputs, 1}, at, inside(height, width)};
  }
  Function<Value(Value, Value)> inside(Value height, Value width) {
    return [height, width](Value r, Value c) { return (r < height) & (c < width); };
  }

  // What windows see of a picture: element [tap, window], or the other way round.
  MatrixElements seen(const View& view, bool taps_down, Value height, Value width) {
    const auto places = [this](const Position& tap, const Position& at, int axis) {
      return std::pair(tap[size_t(axis) + 1] * window_.dilation[axis],
                       at[size_t(axis) + 1] * window_.stride[axis].size - window_.before[axis]);
    };
    const auto parts = [this, taps_down](Value r, Value c) {
      return std::pair(taps_at(wide(taps_down ? r : c)), moved_at(wide(taps_down ? c : r)));
    };
    const auto at = [this, view, places, parts](Value r, Value c) {
      const auto [tap, moved] = parts(r, c);
      const auto [h0, h1] = places(tap, moved, 0);
      const auto [v0, v1] = places(tap, moved, 1);
      const Value channel = group_ * inputs_.size + tap[0];
      return index(view, {{zero(), channel, h0, v0}, {moved[0], zero(), h1, v1}});
    };
    const auto mask = [this, places, parts, height, width](Value r, Value c) {
      const auto [tap, moved] = parts(r, c);
      const auto [h0, h1] = places(tap, moved, 0);
      const auto [v0, v1] = places(tap, moved, 1);
      return (r < height) & (c < width) & within(h0 + h1, first_[0]) & within(v0 + v1, first_[1]);
    };
    return {view.memory, {taps_down, 1}, at, mask};
  }

  // Which window sees a place by a tap, and whether one does.
  std::pair<Value, Value> window_at(int axis, Value place, Value tap) {
    const Value start = place + window_.before[axis] - tap * window_.dilation[axis];
    if (known_.unit) return {start, within(start, first_[size_t(axis)])};
    const Extent& stride = window_.stride[axis];
    const Value number = divide(k_, stride, select(start >= 0, start, zero()));
    return {number, (number * stride.size == start) & (number < first_[size_t(axis)])};
  }
  // Element [o kh kw, n h w]: the window of dy that sees the place by the tap.
  MatrixElements sees(const View& view, Value height, Value width) {
    const auto at = [this, view](Value r, Value c) {
      const Position tap = taps_at(wide(r)), place = moved_at(wide(c));
      const Value oh = window_at(0, place[1], tap[1]).first;
      const Value ow = window_at(1, place[2], tap[2]).first;
      return view.index(k_, {place[0], group_ * outputs_.size + tap[0], oh, ow});
    };
    const auto mask = [this, height, width](Value r, Value c) {
      const Position tap = taps_at(wide(r)), place = moved_at(wide(c));
      return (r < height) & (c < width) & window_at(0, place[1], tap[1]).second &
             window_at(1, place[2], tap[2]).second;
    };
    return {view.memory, {true, 1}, at, mask};
  }

  MatrixElements a(Value to) {
    if (known_.op != Op::convolve_weight) {
      return weight(views_[1], known_.op == Op::convolve, m_, to);
    }
    const View view = views_[1];
    const auto at = [this, view](Value r, Value c) {
      const Position moved = moved_at(wide(c));
      const Value channel = group_ * outputs_.size + wide(r);
      return index(view,
                   {{zero(), channel, zero(), zero()}, {moved[0], zero(), moved[1], moved[2]}});
    };
    return {view.memory, {true, 1}, at, inside(m_, to)};
  }
  MatrixElements b(Value to) {
    if (known_.op == Op::convolve) return seen(views_[0], true, to, n_);
    if (known_.op == Op::convolve_input) return sees(views_[0], to, n_);
    return seen(views_[0], false, to, n_);
  }

  void store(Value tile, Value share, Value row, Value column) {
    const Value rows = k_.iota(0, kTiles.rows) + row, columns = k_.iota(1, kTiles.columns) + column;
    const Value mask = (rows < m_) & (columns < n_);
    const Value channel = wide(rows) + group_ * wide(m_);
    if (known_.split) {
      // [share, channel, taps], as the result lies
      const Value shares = wide(share) * elements_;
      k_.store(partial_, channel * wide(n_) + shares + wide(columns), tile, mask);
      return;
    }
    const bool of_weight = known_.op == Op::convolve_weight;
    const Position at = of_weight ? taps_at(wide(columns)) : moved_at(wide(columns));
    const Where where =
        of_weight ? Where{{channel, zero(), zero(), zero()}, {zero(), at[0], at[1], at[2]}}
                  : Where{{zero(), channel, zero(), zero()}, {at[0], zero(), at[1], at[2]}};
    k_.store(views_[2].memory, index(views_[2], where), tile, mask);
  }

  const TilesClass& known_;
  const DType index_;
  Builder k_;
  std::vector<View> views_;
  Value partial_;
  Window window_;
  Extent inputs_, outputs_;   // channels of one group of the weight
  std::vector<Value> first_;  // spatial extents of operand 0
  std::vector<Extent> moved_, taps_;
  Value m_, n_, elements_, group_;
};

// y[i] = the sum of partial[s, i] over s.
kernel::Kernel build_sum(DType dtype, DType index) {
  Builder k("partial_sums", {.threads = kThreads});
  const DType sums = kernel::compute_dtype(dtype);
  const Value partial = k.buffer("partial", sums), y = k.output("y", dtype);
  const Value count = k.number("count", index, kAny), shares = k.number("shares", index, kAny);
  const Value thread = thread_number(k, index);
  k.when(thread < count, [&] {
    kernel::Variable sum(k.load(partial, thread));
    k.loop(k.constant(index, 1), shares, 1,
           [&](Value share) { sum = sum.get() + k.load(partial, share * count + thread); });
    k.store(y, thread, sum);
  });
  return k.finish();
}

Launch launch_sum(Device& device, const Convolution& c, Place partial, int64_t shares) {
  const DType dtype = c.pictures.sources[0].dtype, index = c.pictures.index;
  const int64_t count = c.pictures.result().element_count();
  Arguments arguments;
  arguments.buffer(partial, kernel::compute_dtype(dtype), 0, shares * count);
  arguments.buffer(Place::output(0), dtype, 0, count);
  arguments.number(index, count);
  arguments.number(index, shares);
  return Launch(device,
                {fmt::format("partial sums {} {}", name_of(dtype), name_of(index)),
                 [dtype, index] { return build_sum(dtype, index); }},
                blocks_for(count, kThreads), std::move(arguments));
}

}  // namespace

bool tiles_take(const Convolution& c) {
  const Sizes s = sizes_of(c, 1);
  constexpr int64_t kFew = 8;  // a tile of fewer rows is mostly empty
  return s.m >= kFew && std::max({s.m, s.n, s.depth}) <= INT32_MAX && s.depth > 0;
}

void add_tiles(Device& device, ScratchSequence& sequence, const Convolution& c) {
  const Sizes s = sizes_of(c, device.capabilities().processors);
  const Pictures& pictures = c.pictures;
  const Shape &result = pictures.result(), &first = pictures.sources[0].shape;
  const Shape& moved = c.op == Op::convolve_weight ? pictures.sources[1].shape : result;
  const int64_t count = result.element_count();
  const bool unit = c.window.stride[0] == 1 && c.window.stride[1] == 1;
  const TilesClass known{c.op, pictures, unit, s.splits > 1};
  Arguments arguments;
  pictures.pass(arguments, !known.split);
  Place partial{};
  if (known.split) {
    const DType sums = kernel::compute_dtype(pictures.sources[0].dtype);
    partial = sequence.scratch(s.splits * count * int64_t(size_of(sums)));
    arguments.buffer(partial, sums, 0, s.splits * count);
  }
  pass_window(arguments, c.window, pictures.index);
  pass_extent(arguments, c.weight()[1], pictures.index);
  pass_extent(arguments, c.weight()[0] / s.groups, pictures.index);
  for (const int axis : {2, 3}) {
    arguments.number(pictures.index, first[axis]);
    pass_extent(arguments, moved[axis], pictures.index);
    pass_extent(arguments, c.weight()[axis], pictures.index);
  }
  for (const int64_t number : {s.m, s.n, s.depth, s.share}) arguments.number(DType::i32, number);
  const std::vector<int64_t> extents = {s.splits, s.groups, ceiling(s.m, kTiles.rows),
                                        ceiling(s.n, kTiles.columns)};
  pass_extents(arguments, extents, DType::i32);
  if (known.split) arguments.number(pictures.index, count);
  KernelRecipe recipe{known.key(), [known] { return TilesKernel(known).build(); }};
  sequence.add(Launch(device, std::move(recipe),
                      blocks_for(extents[0] * extents[1] * extents[2] * extents[3], 1),
                      std::move(arguments)));
  if (known.split) sequence.add(launch_sum(device, c, partial, s.splits));
}

}  // namespace fornax::cube
