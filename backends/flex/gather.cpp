// gather() and transpose(), per element size.
#include "backends/flex/gather.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

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

// Blocks whose lines and columns both stay in the L1 cache.
template <class T>
void transpose_elements(const T* from, int64_t rows, int64_t columns, int64_t from_stride,
                        int64_t to_stride, T* to) {
  constexpr int64_t kBlock = 64 / int64_t(sizeof(T)) * 2;
  for (int64_t r = 0; r < rows; r += kBlock) {
    const int64_t r_end = std::min(rows, r + kBlock);
    for (int64_t c = 0; c < columns; c += kBlock) {
      const int64_t c_end = std::min(columns, c + kBlock);
      for (int64_t i = r; i < r_end; i++) {
        for (int64_t j = c; j < c_end; j++) to[i * to_stride + j] = from[i + j * from_stride];
      }
    }
  }
}

// body(T()) with an unsigned type of `size` bytes.
template <class Body>
void with_size(int size, Body body) {
  switch (size) {
    case 1: return body(uint8_t());
    case 2: return body(uint16_t());
    case 4: return body(uint32_t());
    case 8: return body(uint64_t());
    default: fail(ErrorKind::internal, "flex: no element has {} bytes", size);
  }
}

}  // namespace

void gather(const void* from, int size, int rank, const int64_t* sizes, const int64_t* strides,
            int64_t begin, int64_t count, void* to) {
  with_size(size, [&]<class T>(T) {
    gather_elements(static_cast<const T*>(from), rank, sizes, strides, begin, count,
                    static_cast<T*>(to));
  });
}

void transpose(const void* from, int size, int64_t rows, int64_t columns, int64_t from_stride,
               int64_t to_stride, void* to) {
  with_size(size, [&]<class T>(T) {
    transpose_elements(static_cast<const T*>(from), rows, columns, from_stride, to_stride,
                       static_cast<T*>(to));
  });
}

}  // namespace fornax::flex
