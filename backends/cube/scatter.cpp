// scatter: the base is copied, then values are put in along one axis.  Results repeat bit for bit:
//
//   rows      where places repeat along neighbouring elements: scatter_rows.h
//   lines     one thread per line along the axis goes through its values in order, or several that
//             have a range of the result each.  What floats are added and multiplied with, where
//             order matters, and what atomics do not have
//   parts     as lines, where long lines of values are added up in short results, as in the
//             gradient of a small embedding: each part of a line has sums of its own, which are
//             added then
//   marks     assign: each value marks its place with its number, where the greatest wins, and each
//             place takes the value that is noted there
//   atomics   whole numbers of 32 and 64 bits are added and compared in any order
#include <algorithm>

#include "backends/cube/elementwise.h"
#include "backends/cube/frame.h"
#include "backends/cube/indices.h"
#include "backends/cube/kernels.h"
#include "backends/cube/scatter_rows.h"
#include "backends/cube/sequence.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

// Lines are enough work for any device where there are that many, or where they are short.
constexpr int64_t kManyLines = 1 << 16, kShortLine = 16;
constexpr int kAhead = 8;  // indices that a thread looks up at once
constexpr int64_t kShortPart = 64, kMostParts = 32;
constexpr int64_t kMostPartSums = 1 << 22;

bool has_atomic(ScatterMode mode, DType dtype) {
  return is_integer(dtype) && size_of(dtype) >= 4 && mode != ScatterMode::multiply;
}
kernel::Atomic atomic_of(ScatterMode mode) {
  if (mode == ScatterMode::add) return kernel::Atomic::add;
  return mode == ScatterMode::minimum ? kernel::Atomic::min : kernel::Atomic::max;
}

class Scatter {
 public:
  Scatter(Device& device, const Group& group)
      : device_(device),
        anchor_(anchor_of(group)),
        axis_(ScatterSettings(anchor_.attributes).axis),
        mode_(ScatterSettings(anchor_.attributes).mode),
        domain_(values().type.shape) {}

  std::unique_ptr<PreparedGroup> prepare(const Group& group) const {
    const Shape& shape = anchor_.result.shape;
    const DType dtype = anchor_.result.dtype;
    auto sequence = std::make_unique<ScratchSequence>(device_, group);
    const int64_t length = domain_[axis_];
    const int64_t lines = length == 0 ? 0 : domain_.element_count() / length;
    const bool serial = lines >= kManyLines || length <= kShortLine || shape.element_count() == 0;
    if (!serial && mode_ == ScatterMode::assign) {
      sequence->add(by_marks());
      return sequence;
    }
    // Sums and products of small floats are rounded once, at the end.
    const bool wide = is_floating(dtype) && size_of(dtype) < 4 && accumulates();
    const DType computed = wide ? DType::f32 : dtype;
    if (!serial && is_floating(dtype) && takes_rows(anchor_)) {
      add_rows(*sequence, computed);
      return sequence;
    }
    const int64_t parts = serial ? 1 : parts_for(lines);
    if (parts > 1) {
      const Place sums =
          sequence->scratch(parts * shape.element_count() * int64_t(size_of(computed)));
      sequence->add(by_lines(sums, computed, parts));
      sequence->add(added(sums, computed, parts));
      return sequence;
    }
    const Strides plain = row_major_strides({shape.begin(), shape.end()});
    const CopySide from{base().place, 0, strides_over(shape, shape, base().layout), base().number};
    const CopySide y{Place::output(0), 0, plain, false};
    CopySide sums = y;
    if (wide) sums.place = sequence->scratch((shape.element_count() + 1) * int64_t(sizeof(float)));
    sequence->add(prepare_cast(device_, from, dtype, sums, computed, shape));
    if (domain_.element_count() > 0) {
      const bool atomic = !serial && has_atomic(mode_, dtype);
      sequence->add(atomic ? by_atomics() : by_lines(sums.place, computed, 1));
    }
    if (wide) sequence->add(prepare_cast(device_, sums, computed, y, dtype, shape));
    return sequence;
  }

 private:
  void add_rows(ScratchSequence& sequence, DType computed) const {
    const Shape& shape = anchor_.result.shape;
    const DType dtype = anchor_.result.dtype;
    const CopySide y{Place::output(0), 0, row_major_strides({shape.begin(), shape.end()}), false};
    CopySide sums = y;
    if (computed != dtype) {
      sums.place = sequence.scratch(shape.element_count() * int64_t(size_of(computed)));
    }
    sequence.add(prepare_scatter_rows(device_, {anchor_, sums.place, computed, complaint()}));
    if (computed == dtype) return;
    sequence.add(prepare_cast(device_, sums, computed, y, dtype, shape));
  }

  bool accumulates() const { return mode_ == ScatterMode::add || mode_ == ScatterMode::multiply; }
  const Input& base() const { return anchor_.inputs[0]; }
  const Input& index() const { return anchor_.inputs[1]; }
  const Input& values() const { return anchor_.inputs[2]; }

  Complaint complaint() const {
    return index_complaint(anchor_.op, index().type.dtype, axis_, anchor_.result);
  }

  // The strides of `shape`'s row-major elements over the values' domain, none along the axis, which
  // `along` takes.
  Strides result_strides(int64_t& along) const {
    const Shape& shape = anchor_.result.shape;
    Strides strides = row_major_strides({shape.begin(), shape.end()});
    along = std::exchange(strides[size_t(axis_)], 0);
    return strides;
  }

  static std::vector<int64_t> with(std::vector<int64_t> list, int64_t last) {
    list.push_back(last);
    return list;
  }
  int64_t size() const { return anchor_.result.shape[axis_]; }

  // The threads for each range of each line.
  int64_t ranges_for(int64_t lines) const {
    return std::clamp<int64_t>(kManyLines / std::max<int64_t>(lines, 1) / 2, 1,
                               std::max<int64_t>(size(), 1));
  }

  int64_t parts_for(int64_t lines) const {
    const DType dtype = anchor_.result.dtype;
    if (mode_ != ScatterMode::add || !is_floating(dtype)) return 1;
    const int64_t wanted = 2 * kManyLines / (lines * ranges_for(lines));
    return std::clamp<int64_t>(std::min({wanted, domain_[axis_] / kShortPart,
                                         kMostPartSums / anchor_.result.shape.element_count()}),
                               1, kMostParts);
  }

  // `results` is one array per part, or that of the base with its elements.
  std::unique_ptr<PreparedGroup> by_lines(Place results, DType dtype, int64_t parts) const {
    const int64_t length = domain_[axis_], part = ceiling(length, parts);
    Shape lines = domain_;
    lines.erase(axis_);
    std::vector<Strides> strides = {strides_over(domain_, domain_, index().layout),
                                    strides_over(domain_, domain_, values().layout)};
    int64_t along = 0;
    strides.push_back(result_strides(along));
    std::vector<int64_t> steps;
    for (Strides& own : strides) {
      steps.push_back(own[size_t(axis_)]);
      own.erase(own.begin() + axis_);
    }
    Nest nest = collapse(lines, std::move(strides));
    const int64_t ranges = ranges_for(nest.count());
    nest.extents.insert(nest.extents.begin(), {parts, ranges});
    for (Strides& own : nest.strides) own.insert(own.begin(), {0, 0});
    nest.strides[2][0] = anchor_.result.shape.element_count();
    Frame frame;
    const auto extents = with(nest.extents, length);
    frame.read("index", index(), extents, with(nest.strides[0], steps[0]));
    frame.read("value", values(), extents, with(nest.strides[1], steps[1]));
    frame.write("y", results, dtype, with(nest.extents, size()), with(nest.strides[2], along));
    frame.number("size", DType::i64, size());
    frame.number("length", DType::i64, length);
    frame.number("range", DType::i64, ceiling(size(), ranges));
    frame.number("part", DType::i64, part);
    const bool clears = parts > 1;
    const auto body = [mode = mode_, clears](Builder& k, const Framed& f, const At& at) {
      const DType index = at.element.dtype();
      const Value part = k.cast(f.numbers[3], index), begin = at.position[0] * part;
      const Value end = kernel::min(k.cast(f.numbers[1], index), begin + part);
      const Value first = k.cast(at.position[1], DType::i64) * f.numbers[2];
      if (clears) clear(k, f.views[2], at, first, kernel::min(first + f.numbers[2], f.numbers[0]));
      const auto put = [&](const Position& from, Value raw, Value there) {
        Value inside;
        const Value place = checked_index(k, raw, f.numbers[0], inside);
        const Value own = (place >= first) & (place < first + f.numbers[2]);
        k.when(there & inside & own, [&] {
          Position to = at.position;
          to.push_back(k.cast(place, index));
          const View& y = f.views[2];
          const Value value = k.cast(f.views[1].load(k, from), y.known.dtype);
          if (mode == ScatterMode::assign) return y.store(k, to, value);
          y.store(k, to, combined(mode, y.load(k, to), value));
        });
      };
      k.loop(begin, end, k.constant(index, kAhead), [&](Value i) {
        std::vector<Position> from(kAhead, at.position);
        std::vector<Value> raw, there;
        for (int ahead = 0; ahead < kAhead; ahead++) {
          from[size_t(ahead)].push_back(i + ahead);
          there.push_back(i + ahead < end);
          const View& x = f.views[0];
          raw.push_back(x.load(k, from[size_t(ahead)], there.back(), k.constant(x.known.dtype, 0)));
        }
        for (size_t ahead = 0; ahead < kAhead; ahead++) put(from[ahead], raw[ahead], there[ahead]);
      });
    };
    auto list = std::make_unique<LaunchList>(device_);
    list->add(walk(device_, {.name = "scatter",
                             .key = fmt::format("lines {}{}", int(mode_), clears ? " clear" : ""),
                             .frame = std::move(frame),
                             .extents = nest.extents,
                             .body = body,
                             .complaint = complaint()}));
    return list;
  }

  // The places from `first` up to `end` of a line.
  static void clear(Builder& k, const View& y, const At& at, Value first, Value end) {
    k.loop(first, end, k.constant(DType::i64, 1), [&](Value place) {
      Position to = at.position;
      to.push_back(k.cast(place, at.element.dtype()));
      y.store(k, to, k.constant(y.known.dtype, 0));
    });
  }

  Launch cleared(Place memory, DType dtype, int64_t count) const {
    Frame frame;
    frame.write("y", memory, dtype, {count}, {1});
    return walk(device_, {.name = "scatter",
                          .key = "clear",
                          .frame = std::move(frame),
                          .extents = {count},
                          .body = [](Builder& k, const Framed& f, const At& at) {
                            const View& y = f.views[0];
                            y.store(k, at.position, k.constant(y.known.dtype, 0));
                          }});
  }

  // The base and the sums of all parts, in their order.
  Launch added(Place sums, DType dtype, int64_t parts) const {
    const Shape& shape = anchor_.result.shape;
    const Strides plain = row_major_strides({shape.begin(), shape.end()});
    const Nest nest = collapse(shape, {strides_over(shape, shape, base().layout), plain});
    Frame frame;
    frame.read("base", base(), nest.extents, nest.strides[0]);
    frame.read("sums", sums, dtype, with(nest.extents, parts),
               with(nest.strides[1], shape.element_count()));
    frame.write("y", Place::output(0), anchor_.result.dtype, nest.extents, nest.strides[1]);
    frame.number("parts", DType::i64, parts);
    const auto body = [](Builder& k, const Framed& f, const At& at) {
      const DType index = at.element.dtype(), computed = f.views[1].known.dtype;
      kernel::Variable sum(k.cast(f.views[0].load(k, at.position), computed));
      const auto add = [&](Value part) {
        Position from = at.position;
        from.push_back(part);
        sum = sum.get() + f.views[1].load(k, from);
      };
      k.loop(k.constant(index, 0), k.cast(f.numbers[0], index), k.constant(index, 1), add);
      f.views[2].store(k, at.position, k.cast(sum.get(), f.views[2].known.dtype));
    };
    return walk(device_, {.name = "scatter",
                          .key = "add",
                          .frame = std::move(frame),
                          .extents = nest.extents,
                          .body = body});
  }

  std::unique_ptr<PreparedGroup> by_atomics() const {
    int64_t along = 0;
    Strides result = result_strides(along);
    const Nest nest =
        collapse(domain_, {strides_over(domain_, domain_, index().layout),
                           strides_over(domain_, domain_, values().layout), std::move(result)});
    Frame frame;
    frame.read("index", index(), nest.extents, nest.strides[0]);
    frame.read("value", values(), nest.extents, nest.strides[1]);
    frame.write("y", Place::output(0), anchor_.result.dtype, with(nest.extents, size()),
                with(nest.strides[2], along));
    frame.number("size", DType::i64, size());
    const auto body = [mode = mode_](Builder& k, const Framed& f, const At& at) {
      Value inside;
      const Value raw = f.views[0].load(k, at.position);
      const Value place = checked_index(k, raw, f.numbers[0], inside);
      k.when(inside, [&] {
        Position to = at.position;
        to.push_back(k.cast(place, at.element.dtype()));
        const View& y = f.views[2];
        k.atomic(atomic_of(mode), y.memory, y.index(k, to), f.views[1].load(k, at.position));
      });
    };
    auto list = std::make_unique<LaunchList>(device_);
    list->add(walk(device_, {.name = "scatter",
                             .key = fmt::format("atomics {}", int(mode_)),
                             .frame = std::move(frame),
                             .extents = nest.extents,
                             .body = body,
                             .complaint = complaint()}));
    return list;
  }

  // Marks are numbers along the axis, counted from 1; 0 is none.
  std::unique_ptr<PreparedGroup> by_marks() const {
    const Shape& shape = anchor_.result.shape;
    auto list = std::make_unique<LaunchList>(device_);
    const Place marks = list->scratch(size_t(shape.element_count()) * sizeof(int32_t));
    list->add(cleared(marks, DType::i32, shape.element_count()));
    list->add(mark(marks));
    list->add(take(marks));
    return list;
  }

  Launch mark(Place marks) const {
    int64_t along = 0;
    Strides result = result_strides(along);
    std::vector<int> kinds(size_t(domain_.rank()), 0);
    kinds[size_t(axis_)] = kAlone;
    const Nest nest = collapse(
        domain_, {strides_over(domain_, domain_, index().layout), std::move(result)}, kinds);
    const int axis =
        int(std::find(nest.kinds.begin(), nest.kinds.end(), kAlone) - nest.kinds.begin());
    Frame frame;
    frame.read("index", index(), nest.extents, nest.strides[0]);
    frame.write("mark", marks, DType::i32, with(nest.extents, size()),
                with(nest.strides[1], along));
    frame.number("size", DType::i64, size());
    const auto body = [axis](Builder& k, const Framed& f, const At& at) {
      Value inside;
      const Value raw = f.views[0].load(k, at.position);
      const Value place = checked_index(k, raw, f.numbers[0], inside);
      k.when(inside, [&] {
        Position to = at.position;
        to.push_back(k.cast(place, at.element.dtype()));
        const View& y = f.views[1];
        const Value number = k.cast(at.position[size_t(axis)], DType::i32) + 1;
        k.atomic(kernel::Atomic::max, y.memory, y.index(k, to), number);
      });
    };
    return walk(device_, {.name = "scatter",
                          .key = fmt::format("mark {}", axis),
                          .frame = std::move(frame),
                          .extents = nest.extents,
                          .body = body,
                          .complaint = complaint()});
  }

  Launch take(Place marks) const {
    const Shape& shape = anchor_.result.shape;
    const Strides plain = row_major_strides({shape.begin(), shape.end()});
    // Outside the axis, where the values lie is where the result lies.
    Strides from = strides_over(domain_, domain_, values().layout);
    const int64_t along = std::exchange(from[size_t(axis_)], 0);
    const Nest nest =
        collapse(shape, {strides_over(shape, shape, base().layout), std::move(from), plain});
    Frame frame;
    frame.read("base", base(), nest.extents, nest.strides[0]);
    frame.read("value", values(), with(nest.extents, domain_[axis_]), with(nest.strides[1], along));
    frame.read("mark", marks, DType::i32, nest.extents, nest.strides[2]);
    frame.write("y", Place::output(0), anchor_.result.dtype, nest.extents, nest.strides[2]);
    const auto body = [](Builder& k, const Framed& f, const At& at) {
      const Value mark = f.views[2].load(k, at.position);
      Position from = at.position;
      from.push_back(k.cast(mark - 1, at.element.dtype()));
      const Value taken = mark > 0;
      const Value old =
          f.views[0].load(k, at.position, mark == 0, k.constant(f.views[0].known.dtype, 0));
      f.views[3].store(k, at.position, f.views[1].load(k, from, taken, old));
    };
    return walk(device_, {.name = "scatter",
                          .key = "take",
                          .frame = std::move(frame),
                          .extents = nest.extents,
                          .body = body});
  }

  Device& device_;
  Anchor anchor_;
  int axis_;
  ScatterMode mode_;
  Shape domain_;  // of the index and the values
};

}  // namespace

std::unique_ptr<PreparedGroup> prepare_scatter(Device& device, const Group& group) {
  return Scatter(device, group).prepare(group);
}

}  // namespace fornax::cube
