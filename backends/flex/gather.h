// Strided memory copied to contiguous memory, element by element.  Pure, any thread.
#pragma once
#include <cstdint>

namespace fornax::flex {

// Elements [begin, begin + count) of the row-major walk over `sizes` with `strides` (in elements),
// from memory whose element 0 is at `from`, to `to`.  size is 1, 2, 4 or 8 bytes.
void gather(const void* from, int size, int rank, const int64_t* sizes, const int64_t* strides,
            int64_t begin, int64_t count, void* to);

// to[r * to_stride + c] = from[r + c * from_stride] for all r and c.
void transpose(const void* from, int size, int64_t rows, int64_t columns, int64_t from_stride,
               int64_t to_stride, void* to);

}  // namespace fornax::flex
