// Pools.  A maximum pool gathers at the positions of the maxima, so that its gradient goes to just
// one element per window; an average pool sums windows, which are a view.
//
// In ceil mode a last, partial window counts unless it starts behind the elements and the padding
// before them.  Averages are in f32 for halves and integers.
#include <fornax/ops.h>

#include <algorithm>
#include <limits>

#include "tensor/compose.h"

namespace fornax {
namespace {

// One axis of a pool: the elements, and how windows lie on them.
struct Line {
  int64_t length, size, stride, padding, dilation;
  int64_t count = 0;     // windows
  int64_t overhang = 0;  // elements that the last window reaches beyond the padding
};

Line line_of(int64_t length, int64_t size, int64_t stride, int64_t padding, int64_t dilation,
             bool ceil_mode) {
  check_numbers({size, stride, padding, dilation}, kMostOfWindow);
  Line line{length, size, stride == 0 ? size : stride, padding, dilation};
  if (size < 1 || line.stride < 1 || dilation < 1 || padding < 0) {
    fail(ErrorKind::value,
         "{}: kernel {}, stride {} and dilation {} must be at least 1 and padding {} at least 0",
         Call::name_or("pool"), size, line.stride, dilation, padding);
  }
  if (padding * 2 > size) {
    fail(ErrorKind::value, "{}: padding {} must be at most half the kernel {}",
         Call::name_or("pool"), padding, size);
  }
  const int64_t span = dilation * (size - 1) + 1, room = length + 2 * padding - span;
  if (room < 0) {
    fail(ErrorKind::shape, "{}: a window over {} elements does not fit {} elements padded by {}",
         Call::name_or("pool"), span, length, 2 * padding);
  }
  line.count = (room + (ceil_mode ? line.stride - 1 : 0)) / line.stride + 1;
  if ((line.count - 1) * line.stride >= length + padding) line.count--;
  line.overhang = std::max<int64_t>((line.count - 1) * line.stride - room, 0);
  return line;
}

struct Lines {
  Line rows, columns;
};

Lines lines_of(const Tensor& x, Pair kernel, const PoolOptions& o) {
  if (x.rank() != 4) {
    fail(ErrorKind::shape, "{}: x must have 4 axes, batch, channels, height and width, got {}",
         Call::name_or("pool"), text_of(node_of(x).type));
  }
  return {line_of(x.shape(2), kernel.height, o.stride.height, o.padding.height, o.dilation.height,
                  o.ceil_mode),
          line_of(x.shape(3), kernel.width, o.stride.width, o.padding.width, o.dilation.width,
                  o.ceil_mode)};
}

// x with `padding` on both sides of the picture and the overhang behind it.
Tensor surrounded(const Tensor& x, const Lines& lines, bool padding, Scalar value) {
  const int64_t rows = padding ? lines.rows.padding : 0;
  const int64_t columns = padding ? lines.columns.padding : 0;
  const Attributes numbers{0,
                           0,
                           0,
                           0,
                           0,
                           0,
                           rows,
                           rows + lines.rows.overhang,
                           0,
                           columns,
                           columns + lines.columns.overhang,
                           0};
  return numbers == Attributes(12, 0) ? x : padded(x, numbers, value);
}

// A number that no element is below.
Scalar lowest(DType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
  if (!is_signed(dtype)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(dtype));
}

// Only an overhang is padded here: the primitive knows padding, but not more of it than half a
// kernel.
Tensor max_pool(const Tensor& x, Pair kernel, const PoolOptions& o) {
  const Lines lines = lines_of(x, kernel, o);
  const Tensor picture = surrounded(x, lines, false, lowest(x.dtype()));
  Window2d w;
  const Line* line[2] = {&lines.rows, &lines.columns};
  for (int i = 0; i < 2; i++) {
    w.size[i] = line[i]->size, w.stride[i] = line[i]->stride, w.dilation[i] = line[i]->dilation;
    w.before[i] = w.after[i] = line[i]->padding;
  }
  const Tensor where_largest = record(Op::pool_argmax, {&picture}, w.pack());
  const int64_t n = x.shape(0), c = x.shape(1);
  const Shape result = where_largest.shape();
  const Tensor flat = reshaped(picture, {n, c, picture.shape(2) * picture.shape(3)});
  const Tensor index = reshaped(where_largest, {n, c, result[2] * result[3]});
  return reshaped(gathered(flat, 2, index), result);
}

// How many elements each window averages.
std::vector<int64_t> divisors(const Line& line, bool include_padding) {
  const int64_t before = include_padding ? line.padding : 0;
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < line.count; i++) {
    const int64_t start = i * line.stride - line.padding;
    const int64_t first = std::max(start, -before);
    const int64_t last = std::min(start + line.size, line.length + before);
    counts.push_back(last - first);
  }
  return counts;
}

// total / the windows' element counts; without padding and overhang that is one number.
Tensor averaged(const Tensor& total, const Lines& lines, const PoolOptions& o) {
  if (o.divisor != 0) return total / double(o.divisor);
  const std::vector<int64_t> rows = divisors(lines.rows, o.count_include_pad);
  const std::vector<int64_t> columns = divisors(lines.columns, o.count_include_pad);
  std::vector<double> counts;
  for (int64_t row : rows) {
    for (int64_t column : columns) counts.push_back(double(row * column));
  }
  if (std::count(counts.begin(), counts.end(), counts[0]) == int64_t(counts.size())) {
    return total / counts[0];
  }
  const Tensor table = from(counts, {lines.rows.count, lines.columns.count}, total.device());
  return total / converted(table, total.dtype());
}

Tensor avg_pool(const Tensor& x, Pair kernel, const PoolOptions& o) {
  if (o.dilation != Pair(1)) {
    fail(ErrorKind::value, "{}: average pools have no dilation, got {} and {}",
         Call::name_or("avg_pool2d"), o.dilation.height, o.dilation.width);
  }
  const Lines lines = lines_of(x, kernel, o);
  const Tensor picture = surrounded(computable(x), lines, true, 0);
  const Tensor windows = record(Op::unfold, {&picture},
                                {2, kernel.height, lines.rows.stride, 1, picture.shape(2), 3,
                                 kernel.width, lines.columns.stride, 1, picture.shape(3)});
  const Tensor total = reshaped(sum_over(windows, {4, 5}), without(windows.shape(), {4, 5}));
  return converted(averaged(total, lines, o), floating_dtype(x.dtype()));
}

// A line of n elements is a picture of height 1.
template <class Pool>
Tensor pool_line(const Tensor& x, int64_t kernel, PoolOptions o, Pool pool) {
  if (x.rank() != 3) {
    fail(ErrorKind::shape, "{}: x must have 3 axes, batch, channels and width, got {}",
         Call::name_or("pool"), text_of(node_of(x).type));
  }
  o.stride.height = o.dilation.height = 1;
  o.padding.height = 0;
  const Tensor picture = reshaped(x, {x.shape(0), x.shape(1), 1, x.shape(2)});
  const Tensor y = pool(picture, Pair(1, kernel), o);
  return reshaped(y, {y.shape(0), y.shape(1), y.shape(3)});
}

// [size, length]: row i averages the elements from floor(i * length / size) up to
// ceil((i + 1) * length / size).
Tensor averaging_matrix(int64_t size, int64_t length, DType dtype, Device device) {
  std::vector<double> weights = host_memory<double>(size_t(size) * size_t(length));
  for (int64_t i = 0; i < size; i++) {
    const int64_t first = i * length / size, last = ((i + 1) * length + size - 1) / size;
    for (int64_t k = first; k < last; k++)
      weights[size_t(i * length + k)] = 1 / double(last - first);
  }
  return converted(from(weights, {size, length}, device), dtype);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair kernel, PoolOptions o, Site site) {
  Call call("max_pool2d", site);
  return max_pool(x, kernel, o);
}

Tensor avg_pool2d(const Tensor& x, Pair kernel, PoolOptions o, Site site) {
  Call call("avg_pool2d", site);
  return avg_pool(x, kernel, o);
}

Tensor max_pool1d(const Tensor& x, int64_t kernel, PoolOptions o, Site site) {
  Call call("max_pool1d", site);
  return pool_line(x, kernel, o, max_pool);
}

Tensor avg_pool1d(const Tensor& x, int64_t kernel, PoolOptions o, Site site) {
  Call call("avg_pool1d", site);
  return pool_line(x, kernel, o, avg_pool);
}

// Where the sizes divide, windows are equal and a reshape finds them; else they overlap and two
// small matrix products average them.
Tensor adaptive_avg_pool2d(const Tensor& x, Pair size, Site site) {
  Call call("adaptive_avg_pool2d", site);
  if (x.rank() != 4 || size.height < 1 || size.width < 1 || x.shape(2) == 0 || x.shape(3) == 0) {
    fail(ErrorKind::shape, "adaptive_avg_pool2d: cannot average {} to a picture of {} x {}",
         text_of(node_of(x).type), size.height, size.width);
  }
  const int64_t n = x.shape(0), c = x.shape(1), h = x.shape(2), w = x.shape(3);
  const Tensor wide = computable(x);
  Tensor y;
  if (h % size.height == 0 && w % size.width == 0) {
    const Tensor blocks =
        reshaped(wide, {n, c, size.height, h / size.height, size.width, w / size.width});
    y = reshaped(mean_over(blocks, {3, 5}), {n, c, size.height, size.width});
  } else {
    const NoAutocast exact;  // means, not a layer's products
    const Tensor rows = averaging_matrix(size.height, h, wide.dtype(), x.device());
    const Tensor columns = averaging_matrix(size.width, w, wide.dtype(), x.device());
    y = rows.matmul(wide).matmul(columns.transpose());
  }
  return converted(y, floating_dtype(x.dtype()));
}

}  // namespace fornax
