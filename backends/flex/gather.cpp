// gather() and transpose(), per element size.
#include "backends/flex/gather.h"

#include <algorithm>
#include <cstring>

#include "backends/flex/index.h"

namespace fornax::flex {
namespace {

template <class T>
void copy_line(const T* from, int64_t stride, int64_t count, T* to) {
  if (stride == 1) {
    std::memcpy(to, from, size_t(count) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; i++) to[i] = from[i * stride];
  }
}

template <class T>
void gather_elements(const T* from, int rank, const int64_t* sizes, const int64_t* strides,
                     int64_t begin, int64_t count, T* to) {
  constexpr int kMost = 8;
  int64_t index[kMost] = {};
  for (int axis = rank - 1; axis >= 0; axis--) {
    index[axis] = begin % sizes[axis];
    begin /= sizes[axis];
    from += index[axis] * strides[axis];
  }
  const int last = rank - 1;
  while (count > 0) {
    const int64_t line = std::min(count, sizes[last] - index[last]);
    copy_line(from, strides[last], line, to);
    to += line;
    count -= line;
    if (count == 0) break;
    from -= index[last] * strides[last];
    index[last] = 0;
    for (int axis = last - 1; axis >= 0; axis--) {
      from += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      from -= sizes[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

// By squares of whole cache lines, each read and written once: strides that are powers of two let
// few lines stay in the cache at a time.
template <class T>
void transpose_square(const T* from, int64_t from_stride, int64_t to_stride, T* to) {
  constexpr int64_t kSide = 64 / int64_t(sizeof(T));
  T square[kSide][kSide], line[kSide];
  for (int64_t j = 0; j < kSide; j++) std::memcpy(square[j], from + j * from_stride, 64);
  for (int64_t i = 0; i < kSide; i++) {
    for (int64_t j = 0; j < kSide; j++) line[j] = square[j][i];
    std::memcpy(to + i * to_stride, line, 64);
  }
}

template <class T>
void transpose_elements(const T* from, int64_t rows, int64_t columns, int64_t from_stride,
                        int64_t to_stride, T* to) {
  constexpr int64_t kSide = 64 / int64_t(sizeof(T));
  for (int64_t c = 0; c < columns; c += kSide) {
    for (int64_t r = 0; r < rows; r += kSide) {
      if (r + kSide <= rows && c + kSide <= columns) {
        transpose_square(from + r + c * from_stride, from_stride, to_stride,
                         to + r * to_stride + c);
        continue;
      }
      for (int64_t i = r; i < std::min(rows, r + kSide); i++) {
        for (int64_t j = c; j < std::min(columns, c + kSide); j++) {
          to[i * to_stride + j] = from[i + j * from_stride];
        }
      }
    }
  }
}

}  // namespace

void gather(const void* from, int size, int rank, const int64_t* sizes, const int64_t* strides,
            int64_t begin, int64_t count, void* to) {
  with_bytes(size_t(size), [&]<class T>(T) {
    gather_elements(static_cast<const T*>(from), rank, sizes, strides, begin, count,
                    static_cast<T*>(to));
  });
}

void transpose(const void* from, int size, int64_t rows, int64_t columns, int64_t from_stride,
               int64_t to_stride, void* to) {
  with_bytes(size_t(size), [&]<class T>(T) {
    transpose_elements(static_cast<const T*>(from), rows, columns, from_stride, to_stride,
                       static_cast<T*>(to));
  });
}

}  // namespace fornax::flex
