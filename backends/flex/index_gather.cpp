// gather: elements picked along one axis.  Rows are copied whole where the index repeats along the
// axes behind the gathered one, as it does for embeddings.
#include <algorithm>

#include "backends/flex/index.h"
#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {

void resolve_indices(const InputView& index, int64_t position, int64_t step, int64_t count, Op op,
                     int axis, const Type& indexed, int64_t* to) {
  const int64_t size = indexed.shape[axis];
  with_type(index.type.dtype, [&](auto type) {
    using I = decltype(type);
    if constexpr (std::is_integral_v<I>) {
      const I* from = index.as<I>() + position;
      bool inside = true;
      for (int64_t i = 0; i < count; i++) {
        to[i] = int64_t(from[i * step]);
        inside &= uint64_t(to[i]) < uint64_t(size);
      }
      if (inside) return;
      for (int64_t i = 0; i < count; i++) {
        if (uint64_t(to[i]) >= uint64_t(size)) {
          fail(ErrorKind::index, "{}: index {} is outside axis {} of {}, which has {} elements",
               info(op).name, from[i * step], axis, text_of(indexed), size);
        }
      }
    }
  });
}

bool repeats_behind(const AnchorPlan::Input& index, int axis) {
  for (int i = axis + 1; i < index.type.shape.rank(); i++) {
    if (index.type.shape[i] != 1 && index.layout.strides[i] != 0) return false;
  }
  return true;
}

namespace {

constexpr int64_t kBlock = 256;  // indices resolved at a time

// The axes behind the gathered one.
struct Row {
  Shape shape;
  int64_t strides[kMaxRank] = {};
  int64_t count = 1;
  bool contiguous = false;
};

struct Gather : Kernel {
  explicit Gather(AnchorPlan p) : plan(std::move(p)), axis(axis_of(plan.attributes)) {
    const AnchorPlan::Input &x = plan.inputs[0], &index = plan.inputs[1];
    const int rank = plan.result.shape.rank();
    rows = axis < rank - 1 && repeats_behind(index, axis);
    const int line = rows ? axis : rank - 1;
    for (int i = 0; i < line; i++) {
      outer.push_back(plan.result.shape[i]);
      index_strides[i] = index.layout.strides[i];
      x_strides[i] = i == axis ? 0 : x.layout.strides[i];
    }
    for (int i = line + 1; i < rank; i++) {
      row.strides[row.shape.rank()] = x.layout.strides[i];
      row.shape.push_back(plan.result.shape[i]);
    }
    row.count = row.shape.element_count();
    Layout inner;
    std::copy_n(row.strides, kMaxRank, inner.strides);
    row.contiguous = is_contiguous(row.shape, inner);
    length = plan.result.shape[line];
    index_step = index.layout.strides[line];
    x_step = line == axis ? 0 : x.layout.strides[line];
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan.result.shape.element_count() == 0) return;
    const InputView x(plan, 0, inputs), index(plan, 1, inputs);
    with_bytes(size_of(plan.result.dtype), [&](auto type) {
      using T = decltype(type);
      const int64_t lines = outer.element_count();
      // Long lines are cut, so that a single one still has work for every thread.
      const int64_t piece = std::max(kBlock, (1 << 15) / row.count / kBlock * kBlock);
      const int64_t pieces = (length + piece - 1) / piece;
      const int64_t grain = (1 << 15) / (std::min(piece, length) * row.count) + 1;
      parallel(lines * pieces, grain, [&](int64_t begin, int64_t end) {
        StridedWalk<2> walk(outer, {index_strides, x_strides});
        for (int64_t i = begin; i < end; i++) {
          if (i == begin || i % pieces == 0) walk.seek(i / pieces);
          const int64_t first = i % pieces * piece;
          move_piece(x.as<T>() + walk.offsets[1], x.strides[axis], index, walk.offsets[0], first,
                     std::min(length, first + piece),
                     data_of<T>(outputs[0]) + i / pieces * length * row.count);
        }
      });
    });
  }

  template <class T>
  void move_piece(const T* x, int64_t axis_stride, const InputView& index, int64_t position,
                  int64_t first, int64_t end, T* to) const {
    int64_t places[kBlock];
    for (int64_t t0 = first; t0 < end; t0 += kBlock) {
      const int64_t count = std::min(kBlock, end - t0);
      resolve_indices(index, position + t0 * index_step, index_step, count, Op::gather, axis,
                      plan.inputs[0].type, places);
      if (rows) {
        for (int64_t i = 0; i < count; i++) {
          move_row(x + places[i] * axis_stride, to + (t0 + i) * row.count);
        }
      } else {
        const T* from = x + t0 * x_step;
        for (int64_t i = 0; i < count; i++) {
          to[t0 + i] = from[places[i] * axis_stride + i * x_step];
        }
      }
    }
  }

  template <class T>
  void move_row(const T* from, T* to) const {
    if (row.contiguous) {
      std::memcpy(to, from, size_t(row.count) * sizeof(T));
      return;
    }
    StridedWalk<1> walk(row.shape, {row.strides});
    walk.seek(0);
    for (int64_t i = 0; i < row.count; i++, walk.next()) to[i] = from[walk.offsets[0]];
  }

  AnchorPlan plan;
  int axis;
  bool rows;
  Shape outer;
  int64_t index_strides[kMaxRank] = {}, x_strides[kMaxRank] = {};
  Row row;
  int64_t length = 0, index_step = 0, x_step = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_gather(AnchorPlan plan) {
  return std::make_unique<Gather>(std::move(plan));
}

}  // namespace fornax::flex
