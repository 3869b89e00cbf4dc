// Matrix products of f32 and f64, the base of flex's matmul.
//
// Results depend on the shape and on the instruction set: not on thread count or how the work is
// cut.  Strides matter only where m or n is 1: they decide between gemv and gemm.  Safe from any
// thread; runs on the pool unless told otherwise.
#pragma once
#include <fornax/dtype.h>

#include <cstdint>

namespace fornax::flex {

// A matrix in memory: element (r, c) is data[r * row + c * column].  A floating dtype that converts
// to the type of the product without loss.
struct Matrix {
  const void* data;
  DType dtype;
  int64_t row, column;
};

struct ProductSize {
  int64_t m, n, k;
};

// c[i * n + j] = sum over p of a(i, p) * b(p, j).  0 where k is 0.
template <class T>
void gemm(const ProductSize& size, const Matrix& a, const Matrix& b, T* c);
extern template void gemm<float>(const ProductSize&, const Matrix&, const Matrix&, float*);
extern template void gemm<double>(const ProductSize&, const Matrix&, const Matrix&, double*);

// Items of `work` multiply-adds each that are worth a chunk of the pool (some 20 us).
inline int64_t grain_for(int64_t work) { return 500000 / (work > 0 ? work : 1) + 1; }

}  // namespace fornax::flex
