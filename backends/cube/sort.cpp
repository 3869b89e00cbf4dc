// argsort: positions along one axis in the order of their elements.  The other axes number lines.
//
// What is sorted are pairs of a key and a position.  A key is an unsigned number that grows with
// the element, NaN the greatest, going down its complement; equal keys are told apart by position,
// which makes the order stable and strict.  A block sorts a run of pairs in shared memory by a
// bitonic network.  Lines of several runs are then merged pass by pass through scratch memory,
// where each thread finds the place of one pair in the run beside its own.
#include <algorithm>
#include <bit>

#include "backends/cube/kernels.h"
#include "backends/cube/operand.h"
#include "backends/cube/sequence.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

using kernel::Variable;

constexpr int kThreads = 256;
constexpr int kRuns[] = {64, 512, 2048};  // pairs that a block may sort
constexpr int kLongestRun = kRuns[std::size(kRuns) - 1];

// All that the kernels' text follows from.
struct SortClass {
  ViewClass x, y;  // over the lines' axes and along the sorted one
  DType index = DType::i32;
  bool descending = false;
  int run = 0;         // pairs that a block sorts
  bool whole = false;  // a line is one run, and its positions are the result

  int rank() const { return int(x.strides.size()) - 1; }  // of the lines
  DType key_dtype() const { return size_of(x.dtype) == 8 ? DType::u64 : DType::u32; }
  std::string text() const {
    return fmt::format("{} {} {}{}", key_of(x), key_of(y), name_of(index),
                       descending ? " down" : "");
  }
};

// Pairs, in shared or in global memory.
struct Pairs {
  Value keys, positions;
};
struct Pair {
  Value key, position;
};
Value comes_before(const Pair& a, const Pair& b) {
  return (a.key < b.key) | ((a.key == b.key) & (a.position < b.position));
}
Pair load(Builder& k, const Pairs& from, Value at) {
  return {k.load(from.keys, at), k.load(from.positions, at)};
}
void store(Builder& k, const Pairs& to, Value at, const Pair& pair) {
  k.store(to.keys, at, pair.key);
  k.store(to.positions, at, pair.position);
}

Value key_of(Builder& k, Value x, const SortClass& known) {
  const DType dtype = known.key_dtype();
  const uint64_t top = uint64_t(1) << (size_of(dtype) * 8 - 1);
  Value key;
  if (is_floating(x.dtype())) {
    x = k.cast(x, dtype == DType::u64 ? DType::f64 : DType::f32);
    const Value bits = k.bits(x, dtype);
    const Value ordered = select((bits & top) != 0, ~bits, bits | top);
    key = select(is_nan(x), k.constant(dtype, ~uint64_t(0)), select(x == 0, top, ordered));
  } else if (is_signed(x.dtype()) && !is_boolean(x.dtype())) {
    key = k.bits(k.cast(x, dtype == DType::u64 ? DType::i64 : DType::i32), dtype) ^ top;
  } else {
    key = k.cast(x, dtype);
  }
  return known.descending ? ~key : key;
}

// Sorts `size` pairs, a power of two, with all threads of the block.
void sort_shared(Builder& k, const Pairs& pairs, int size) {
  const int most = std::countr_zero(unsigned(size));
  k.loop(1, most + 1, 1, [&](Value merged) {
    k.loop(0, merged, 1, [&](Value step) {
      k.barrier();
      const Value shift = merged - 1 - step, distance = k.constant(DType::i32, 1) << shift;
      for (int first = 0; first < size / 2; first += k.threads()) {
        const Value number = k.thread() + first;
        const Value low = (number >> shift << (shift + 1)) + (number & (distance - 1));
        const Value high = low + distance;
        const Pair a = load(k, pairs, low), b = load(k, pairs, high);
        const Value up = (low >> merged & 1) == 0;
        k.when(comes_before(b, a) == up, [&] {
          store(k, pairs, low, b);
          store(k, pairs, high, a);
        });
      }
    });
  });
  k.barrier();
}

// Sorts one run of a line.
kernel::Kernel build_runs(const SortClass& known) {
  const int run = known.run;
  Builder k("argsort", {.threads = std::min(kThreads, run / 2)});
  const View x = declare_view(k, "x", known.x, false, known.index);
  View y;
  Pairs sorted;
  if (known.whole) {
    y = declare_view(k, "y", known.y, true, known.index);
  } else {
    sorted.keys = k.output("keys", known.key_dtype());
    sorted.positions = k.output("positions", DType::i32);
  }
  const std::vector<Extent> extents = declare_extents(k, known.rank() + 1, known.index);
  const Value length = k.number("length", DType::i32);
  Position line = position_of(k, extents, k.cast(k.block(), known.index));
  const Value first = k.cast(line.back(), DType::i32) * run;
  Value number = k.constant(known.index, 0);  // of the line
  for (int i = 0; i < known.rank(); i++) {
    number = number * extents[size_t(i)].size + line[size_t(i)];
  }
  const Pairs pairs{k.shared(known.key_dtype(), run), k.shared(DType::i32, run)};
  for (int i = 0; i < run; i += k.threads()) {
    const Value at = k.thread() + i, position = first + at, inside = position < length;
    line.back() = k.cast(position, known.index);
    const Value key = key_of(k, k.load(x.memory, x.index(k, line), inside, 0), known);
    // What is past the end comes last: its positions are the greatest.
    store(k, pairs, at,
          {select(inside, key, k.constant(known.key_dtype(), ~uint64_t(0))), position});
  }
  sort_shared(k, pairs, run);
  for (int i = 0; i < run; i += k.threads()) {
    const Value at = k.thread() + i;
    line.back() = k.cast(first + at, known.index);
    k.when(first + at < length, [&] {
      if (known.whole) {
        k.store(y.memory, y.index(k, line), k.load(pairs.positions, at));
      } else {
        const Value to = number * k.cast(length, known.index) + line.back();
        store(k, sorted, to, load(k, pairs, at));
      }
    });
  }
  return k.finish();
}

// Merges neighbouring runs of 2^shift pairs; the last pass writes the result.
kernel::Kernel build_merge(const SortClass& known, bool last) {
  Builder k("merge", {.threads = kThreads});
  const Pairs from{k.buffer("keys", known.key_dtype()), k.buffer("positions", DType::i32)};
  View y;
  Pairs to;
  if (last) {
    y = declare_view(k, "y", known.y, true, known.index);
  } else {
    to.keys = k.output("merged_keys", known.key_dtype());
    to.positions = k.output("merged_positions", DType::i32);
  }
  const std::vector<Extent> extents = declare_extents(k, known.rank(), known.index);
  const Extent length = declare_extent(k, "length", known.index);
  const Value count = k.number("count", known.index, {.most = INT64_MAX});
  const Value shift = k.number("shift", known.index, {.most = 31});
  const Value thread = thread_number(k, known.index);
  k.when(thread < count, [&] {
    const Value line = divide(k, length, thread), base = line * length.size, at = thread - base;
    const Value width = k.constant(known.index, 1) << shift;
    const Value begin = at >> (shift + 1) << (shift + 1);
    const Value middle = min(begin + width, length.size);
    const Value end = min(middle + width, length.size);
    const Value left = at < middle;
    const Pair own = load(k, from, thread);
    // How many pairs of the other run come before this one.
    const Value other = select(left, middle, begin);
    Variable low(other), high(select(left, end, middle));
    k.repeat_while([&] { return low.get() < high.get(); },
                   [&] {
                     const Value probe = (low.get() + high.get()) >> 1;
                     const Value before = comes_before(load(k, from, base + probe), own);
                     low = select(before, probe + 1, low);
                     high = select(before, high, probe);
                   });
    const Value place =
        at - select(left, k.constant(known.index, 0), middle - begin) + (low.get() - other);
    if (last) {
      Position position = position_of(k, extents, line);
      position.push_back(place);
      k.store(y.memory, y.index(k, position), own.position);
    } else {
      store(k, to, base + place, own);
    }
  });
  return k.finish();
}

// A line per position of the nest but its last axis, along which it is sorted.
struct Lines {
  Nest nest;  // of x and y
  int64_t count = 0, length = 0;
  std::vector<int64_t> extents() const { return {nest.extents.begin(), nest.extents.end() - 1}; }
};
Lines lines_of(const Source& x, int axis) {
  Lines lines;
  lines.nest = lines_along(x, axis);
  lines.length = lines.nest.extents.back();
  lines.count = lines.nest.count() / lines.length;
  if (lines.length <= INT32_MAX) return lines;
  fail(ErrorKind::shape, "argsort: {} elements along axis {} of {}; {} are the most here, split it",
       lines.length, axis, text_of({x.dtype, x.shape}), INT32_MAX);
}

void pass_pairs(Arguments& arguments, const SortClass& known, Place keys, Place positions,
                int64_t count) {
  arguments.buffer(keys, known.key_dtype(), 0, count);
  arguments.buffer(positions, DType::i32, 0, count);
}

struct Scratch {
  Place keys, positions;
};

Launch launch_runs(Device& device, const SortClass& known, const Lines& lines, Place x,
                   Scratch to) {
  const Nest& nest = lines.nest;
  Arguments arguments;
  pass_view(arguments, x, known.x, nest.extents, nest.strides[0], known.index);
  if (known.whole) {
    pass_view(arguments, Place::output(0), known.y, nest.extents, nest.strides[1], known.index);
  } else {
    pass_pairs(arguments, known, to.keys, to.positions, nest.count());
  }
  std::vector<int64_t> extents = lines.extents();
  extents.push_back(ceiling(lines.length, known.run));
  pass_extents(arguments, extents, known.index);
  arguments.number(DType::i32, lines.length);
  KernelRecipe recipe{
      fmt::format("argsort {} {}{}", known.text(), known.run, known.whole ? " whole" : ""),
      [known] { return build_runs(known); }};
  return Launch(device, std::move(recipe), blocks_for(lines.count * extents.back(), 1),
                std::move(arguments));
}

Launch launch_merge(Device& device, const SortClass& known, const Lines& lines, int shift,
                    Scratch from, const Scratch* to) {
  const Nest& nest = lines.nest;
  const bool last = !to;
  Arguments arguments;
  pass_pairs(arguments, known, from.keys, from.positions, nest.count());
  if (last) {
    pass_view(arguments, Place::output(0), known.y, nest.extents, nest.strides[1], known.index);
  } else {
    pass_pairs(arguments, known, to->keys, to->positions, nest.count());
  }
  pass_extents(arguments, lines.extents(), known.index);
  pass_extent(arguments, lines.length, known.index);
  arguments.number(known.index, nest.count());
  arguments.number(known.index, shift);
  KernelRecipe recipe{fmt::format("merge {}{}", known.text(), last ? " last" : ""),
                      [known, last] { return build_merge(known, last); }};
  return Launch(device, std::move(recipe), blocks_for(nest.count(), kThreads),
                std::move(arguments));
}

}  // namespace

std::unique_ptr<PreparedGroup> prepare_argsort(Device& device, const Group& group) {
  const Step& step = group.graph.steps[size_t(group.anchor)];
  auto sequence = std::make_unique<ScratchSequence>(device, group);
  if (step.type.shape.element_count() == 0) return sequence;
  const SortSettings settings(step.attributes);
  const Source x = source_of(device, *sequence, group, 0);
  const Lines lines = lines_of(x, settings.axis);
  const Nest& nest = lines.nest;
  SortClass known;
  known.x = view_class(x.dtype, nest.strides[0]);
  known.y = view_class(DType::i64, nest.strides[1]);
  known.index = index_dtype(nest.count() + kLongestRun, {span_of(nest.extents, nest.strides[0]),
                                                         span_of(nest.extents, nest.strides[1])});
  known.descending = settings.descending;
  known.whole = lines.length <= kLongestRun;
  known.run = *std::find_if(std::begin(kRuns), std::end(kRuns) - 1,
                            [&](int run) { return run >= lines.length; });
  if (known.whole) {
    sequence->add(launch_runs(device, known, lines, x.place, {}));
    return sequence;
  }
  Scratch scratch[2];
  for (Scratch& pairs : scratch) {
    pairs.keys = sequence->scratch(nest.count() * int64_t(size_of(known.key_dtype())));
    pairs.positions = sequence->scratch(nest.count() * int64_t(size_of(DType::i32)));
  }
  sequence->add(launch_runs(device, known, lines, x.place, scratch[0]));
  for (int64_t width = known.run; width < lines.length; width *= 2) {
    const bool last = width * 2 >= lines.length;
    const int shift = std::countr_zero(uint64_t(width));
    sequence->add(
        launch_merge(device, known, lines, shift, scratch[0], last ? nullptr : &scratch[1]));
    std::swap(scratch[0], scratch[1]);
  }
  return sequence;
}

}  // namespace fornax::cube
