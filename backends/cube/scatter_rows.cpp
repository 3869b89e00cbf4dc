#include "backends/cube/scatter_rows.h"

#include <algorithm>
#include <bit>

#include "backends/cube/indices.h"
#include "base/error.h"

namespace fornax::cube {
namespace {

using kernel::Variable;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kLooked = 4;                  // places that a thread looks up at once
constexpr int kPiece = kThreads * kLooked;  // places between two barriers
constexpr int kListed = 2 * kPiece;         // that a block lists before it adds their values up
constexpr int kAhead = 4;                   // values that a thread loads at once
constexpr int kMostRows = kThreads / 2;     // of a block: each row has a thread that sorts
constexpr int kBlocks = 5;                  // that a processor holds at a time
constexpr int kLeastColumns = 32;           // of a row
constexpr int64_t kMostMeeting = 64;        // values in a row, on average

// Lines across the axis as (outer axes, columns), the columns those along which places repeat.
struct Rows {
  std::vector<int64_t> outer;  // extents
  int64_t columns = 0, length = 0, size = 0;
  // Over the outer axes, along the axis, along the columns.
  Strides index, values, base, results;
};

Rows rows_of(const Anchor& scatter) {
  const int axis = ScatterSettings(scatter.attributes).axis;
  const Input &base = scatter.inputs[0], &index = scatter.inputs[1], &values = scatter.inputs[2];
  const Shape &shape = scatter.result.shape, &domain = values.type.shape;
  std::vector<Strides> strides{
      strides_over(domain, domain, index.layout), strides_over(domain, domain, values.layout),
      strides_over(shape, shape, base.layout), row_major_strides({shape.begin(), shape.end()})};
  std::vector<int64_t> along;
  for (Strides& own : strides) {
    along.push_back(own[size_t(axis)]);
    own.erase(own.begin() + axis);
  }
  Shape lines = domain;
  lines.erase(axis);
  Nest nest = collapse(lines, std::move(strides));
  Rows rows;
  if (nest.rank() == 0) return rows;
  rows.columns = nest.extents.back();
  rows.length = domain[axis], rows.size = shape[axis];
  rows.outer.assign(nest.extents.begin(), nest.extents.end() - 1);
  Strides* const wanted[] = {&rows.index, &rows.values, &rows.base, &rows.results};
  for (size_t i = 0; i < std::size(wanted); i++) {
    *wanted[i] = nest.strides[i];
    wanted[i]->insert(wanted[i]->end() - 1, along[i]);
  }
  return rows;
}

// All that the kernel's text follows from, beside the frame.
struct RowsClass {
  FrameClass frame;
  ScatterMode mode = ScatterMode::add;
  int lanes = 1;
  int width = 32;  // threads to a row

  std::string key() const {
    return fmt::format("scatter rows {} v{} w{}{}", int(mode), lanes, width, frame.key());
  }
};

// How many bits of a u32 are set.
Value count_bits(Value x) {
  x = x - ((x >> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >> 2) & 0x33333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f;
  return (x * 0x01010101) >> 24;
}

Position with(Position position, std::initializer_list<Value> more) {
  position.insert(position.end(), more);
  return position;
}

class RowsKernel {
 public:
  explicit RowsKernel(const RowsClass& known)
      : known_(known),
        k_("scatter", {.threads = kThreads, .resident = kBlocks}),
        f_(declare_frame(k_, known.frame)) {}

  kernel::Kernel build() {
    wide_ = known_.frame.index;
    outer_ = position_of(k_, f_.extents, k_.cast(k_.block(), wide_));
    first_ = k_.cast(outer_.back(), DType::i32) * most_rows();
    outer_.pop_back();
    rows_ = min(most_rows(), k_.cast(size(), DType::i32) - first_);
    row_of_ = k_.shared(DType::i32, kListed), place_of_ = k_.shared(DType::i32, kListed);
    sorted_ = k_.shared(DType::i32, kListed), begins_ = k_.shared(DType::i32, kMostRows + 1);
    counts_ = k_.shared(DType::i32, 2 * kWarps);
    const Value none = k_.constant(DType::i32, 0);
    Variable next(none), from_base(k_.constant(DType::bool_, true));
    k_.repeat_while(
        [&] { return next.get() < length(); },
        [&] {
          Variable listed(none);
          k_.repeat_while(
              [&] { return (next.get() < length()) & (listed.get() <= kListed - kPiece); },
              [&] {
                listed = listed.get() + list(next, listed);
                next = next.get() + kPiece;
              });
          k_.barrier();
          sort(listed);
          k_.barrier();
          k_.loop(k_.thread() / known_.width, rows_, kThreads / known_.width,
                  [&](Value row) { add_up(row, from_base); });
          from_base = k_.constant(DType::bool_, false);
        });
    return k_.finish();
  }

 private:
  const View& index() const { return f_.views[0]; }
  const View& values() const { return f_.views[1]; }
  const View& base() const { return f_.views[2]; }
  const View& results() const { return f_.views[3]; }
  Value size() const { return f_.numbers[0]; }
  Value length() const { return f_.numbers[1]; }
  Value most_rows() const { return f_.numbers[2]; }
  Value vectors() const { return f_.numbers[3]; }

  // Lists those of the places from `next` on that lie in the block's rows, in their order; their
  // number.
  Value list(Value next, Value listed) {
    const Value thread = k_.thread(), lane = thread & 31, warp = thread >> 5;
    const Value begin = next + warp * (32 * kLooked) + lane;
    std::vector<Value> raw, there, row, votes;
    for (int i = 0; i < kLooked; i++) {
      there.push_back(begin + i * 32 < length());
      const Position from = with(outer_, {k_.cast(begin + i * 32, wide_), Value(0)});
      raw.push_back(index().load(k_, from, there.back(), k_.constant(index().known.dtype, 0)));
    }
    Value any = k_.constant(DType::u32, 0);
    for (size_t i = 0; i < kLooked; i++) {
      Value inside;
      const Value place = checked_index(k_, raw[i], size(), inside);
      row.push_back(k_.cast(place, DType::i32) - first_);
      there[i] = there[i] & inside & (row[i] >= 0) & (row[i] < rows_);
      votes.push_back(k_.ballot(there[i]));
      any = any | votes.back();
    }
    Variable own(k_.constant(DType::i32, 0));
    k_.when(any != 0, [&] {
      for (const Value& vote : votes) own = own.get() + k_.cast(count_bits(vote), DType::i32);
    });
    // Two sets of counts take turns, so that one barrier is enough.
    const Value set = ((next / kPiece) & 1) * kWarps;
    k_.when(lane == 0, [&] { k_.store(counts_, set + warp, own); });
    k_.barrier();
    k_.when(any != 0, [&] {
      Variable before(listed);
      k_.loop(0, warp, 1, [&](Value w) { before = before.get() + k_.load(counts_, set + w); });
      const Value lower = (k_.constant(DType::u32, 1) << k_.cast(lane, DType::u32)) - 1;
      Value at = before;
      for (size_t i = 0; i < kLooked; i++) {
        k_.when(there[i], [&] {
          const Value to = at + k_.cast(count_bits(votes[i] & lower), DType::i32);
          k_.store(row_of_, to, row[i]);
          k_.store(place_of_, to, begin + int(i) * 32);
        });
        at = at + k_.cast(count_bits(votes[i]), DType::i32);
      }
    });
    Value all = k_.constant(DType::i32, 0);
    for (int w = 0; w < kWarps; w++) all = all + k_.load(counts_, set + w);
    return all;
  }

  // What is listed, row by row: a thread to each.
  void sort(Value listed) {
    const Value row = k_.thread();
    const auto each = [&](auto body) {
      k_.loop(0, listed, kAhead, [&](Value first) {
        std::vector<Value> rows;
        for (int i = 0; i < kAhead; i++) {
          rows.push_back(k_.load(row_of_, first + i, first + i < listed, kMostRows));
        }
        for (int i = 0; i < kAhead; i++) body(first + i, rows[size_t(i)]);
      });
    };
    k_.when(row <= rows_, [&] {
      Variable at(k_.constant(DType::i32, 0));
      each([&](Value, Value other) { at = at.get() + k_.cast(other < row, DType::i32); });
      k_.store(begins_, row, at);
      each([&](Value i, Value other) {
        k_.when(other == row, [&] {
          k_.store(sorted_, at, k_.load(place_of_, i));
          at = at.get() + 1;
        });
      });
    });
  }

  // The vector of the values, nothing where `mask` does not hold.
  Value load(const Position& from, Value mask) {
    const Value nothing = k_.constant(values().known.dtype, 0);
    if (known_.lanes == 1 || values().number) {
      return widen(k_, values().load(k_, from, mask, nothing), known_.lanes);
    }
    kernel::Instruction made;
    made.code = kernel::Code::load;
    made.operands = {values().memory.id, values().index(k_, from).id, mask.id,
                     widen(k_, nothing, known_.lanes).id};
    kernel::ValueType type{values().known.dtype};
    type.lanes = uint8_t(known_.lanes);
    return k_.emit(std::move(made), {type})[0];
  }

  // The rows are the base at first; once they are written, only those that gain something change.
  void add_up(Value row, Value from_base) {
    const Value begin = k_.load(begins_, row), end = k_.load(begins_, row + 1);
    const DType computed = results().known.dtype;
    const auto add = [&](Value vector) {
      const Value column = k_.cast(vector * known_.lanes, wide_);
      const Position to = with(outer_, {k_.cast(first_ + row, wide_), column});
      Variable sum(widen(k_, k_.constant(computed, 0), known_.lanes));
      k_.when(
          from_base,
          [&] {
            const Value old = base().load_vector(k_, to, known_.lanes);
            sum = widen(k_, k_.cast(old, computed), known_.lanes);
          },
          [&] { sum = results().load_vector(k_, to, known_.lanes); });
      k_.loop(begin, end, kAhead, [&](Value first) {
        std::vector<Value> loaded, there;
        for (int i = 0; i < kAhead; i++) {
          there.push_back(first + i < end);
          const Value place = k_.load(sorted_, first + i, there.back(), 0);
          loaded.push_back(load(with(outer_, {k_.cast(place, wide_), column}), there.back()));
        }
        for (size_t i = 0; i < kAhead; i++) {
          const Value value = k_.cast(loaded[i], computed);
          sum = select(there[i], combined(known_.mode, sum, value), sum.get());
        }
      });
      results().store(k_, to, sum);
    };
    k_.when(from_base | (begin < end),
            [&] { k_.loop(k_.thread() & (known_.width - 1), vectors(), known_.width, add); });
  }

  const RowsClass& known_;
  Builder k_;
  const Framed f_;
  DType wide_ = DType::i32;
  Position outer_;
  Value first_, rows_;  // of the block's rows: the first, and how many there are
  Value row_of_, place_of_, sorted_, begins_, counts_;
};

int best_lanes(const RowScatter& scatter, const Rows& rows) {
  const auto& inputs = scatter.anchor.inputs;
  std::vector<int64_t> numbers{rows.columns};
  const auto lies = [&](const Strides& strides) {
    numbers.insert(numbers.end(), strides.begin(), strides.end() - 1);
  };
  if (!inputs[2].number) lies(rows.values);
  if (!inputs[0].number) lies(rows.base);
  lies(rows.results);
  return common_power(numbers, size_of(scatter.computed) == 8 ? 2 : 4);
}

Launch launch(Device& device, const RowScatter& scatter, int lanes) {
  const Rows rows = rows_of(scatter.anchor);
  const int64_t vectors = rows.columns / lanes, lines = product(rows.outer);
  const int64_t wanted = kBlocks * int64_t(device.capabilities().processors);
  const int64_t share = std::clamp<int64_t>(ceiling(lines * rows.size, wanted), 1, kMostRows);
  std::vector<int64_t> extents = rows.outer;
  extents.push_back(ceiling(rows.size, share));
  const auto over = [&](int64_t along) {
    std::vector<int64_t> all = rows.outer;
    all.insert(all.end(), {along, rows.columns});
    return all;
  };
  const auto& inputs = scatter.anchor.inputs;
  Frame frame;
  frame.read("index", inputs[1], over(rows.length), rows.index);
  frame.read("value", inputs[2], over(rows.length), rows.values, lanes);
  frame.read("base", inputs[0], over(rows.size), rows.base, lanes);
  frame.write("y", scatter.results, scatter.computed, over(rows.size), rows.results, lanes);
  frame.number("size", DType::i64, rows.size);
  frame.number("length", DType::i32, rows.length);
  frame.number("rows", DType::i32, share);
  frame.number("vectors", DType::i32, vectors);
  RowsClass known;
  known.frame = frame.described(extents);
  known.mode = ScatterSettings(scatter.anchor.attributes).mode;
  known.lanes = lanes;
  known.width = int(std::clamp<uint64_t>(std::bit_ceil(uint64_t(vectors)), 32, kThreads));
  return Launch(device, {known.key(), [known] { return RowsKernel(known).build(); }},
                blocks_for(product(extents), 1), frame.arguments(extents), scatter.complaint);
}

}  // namespace

Value combined(ScatterMode mode, Value old, Value value) {
  switch (mode) {
    case ScatterMode::assign:
      return value;
    case ScatterMode::add:
      return old + value;
    case ScatterMode::multiply:
      return old * value;
    case ScatterMode::minimum:
      return kernel::minimum(old, value);
    case ScatterMode::maximum:
      return kernel::maximum(old, value);
  }
  fail(ErrorKind::internal, "scatter: mode {} is none", int(mode));
}

bool takes_rows(const Anchor& scatter) {
  const Rows rows = rows_of(scatter);
  if (rows.columns < kLeastColumns || rows.columns > INT32_MAX - kThreads) return false;
  if (rows.size > INT32_MAX - kMostRows) return false;
  if (rows.length > INT32_MAX - kPiece || rows.length > kMostMeeting * rows.size) return false;
  const auto lies = [](const Input& input, const Strides& strides) {
    return input.number || strides.back() == 1;
  };
  return rows.index.back() == 0 && rows.results.back() == 1 && lies(scatter.inputs[0], rows.base) &&
         lies(scatter.inputs[2], rows.values);
}

std::unique_ptr<PreparedGroup> prepare_scatter_rows(Device& device, const RowScatter& scatter) {
  const int lanes = best_lanes(scatter, rows_of(scatter.anchor));
  std::vector<VectorGroup::Operand> aligned;
  for (const size_t i : {0, 2}) {
    const Input& input = scatter.anchor.inputs[i];
    if (!input.number) aligned.push_back({input.place, input.type.dtype, 0});
  }
  const auto make = [&device, scatter](int n) {
    auto list = std::make_unique<LaunchList>(device);
    list->add(launch(device, scatter, n));
    return list;
  };
  if (lanes == 1) return make(1);
  return std::make_unique<VectorGroup>(lanes, std::move(aligned), make);
}

}  // namespace fornax::cube
