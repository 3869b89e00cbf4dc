// oneDNN, where it is installed: a faster kernel for large f32 products.
//
// Opened at run time by the first product that suits it, never linked.  Whether and how a product
// is given to it follows from sizes and strides alone, so that a program gives the same bits every
// time and with any number of threads.  Safe from any thread; its own threads never start.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "backends/flex/gemm.h"

namespace fornax::flex {

// The functions of the library that are used.
struct OneDnn {
  // Row-major c = alpha * op(a) op(b) + beta * c; 0 where it worked.
  int (*sgemm)(char op_a, char op_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
               int64_t a_row, const float* b, int64_t b_row, float beta, float* c, int64_t c_row);
  int (*threads)();                // that the calling thread may start
  void (*set_threads)(int count);  // for the calling thread
  int major, minor;
};

// The first library of these names that can be opened and has every function.  Its threads must be
// OpenMP's: of others it is not known how to keep them from starting.
std::optional<OneDnn> open_onednn(std::span<const char* const> names);

// The process's library, opened by the first call; null where it is absent or switched off.
const OneDnn* onednn();

// "oneDNN 2.6 in use for large products", or why it is not.  Opens it.
std::string describe_onednn();

// Whether the product is of a kind that oneDNN computes faster than gemm.
bool suits_onednn(const ProductSize& size, const Matrix& a, const Matrix& b);

// gemm by oneDNN.  False where it cannot: c then holds anything.  Requires: suits_onednn.
bool onednn_product(const OneDnn& library, const ProductSize& size, const Matrix& a,
                    const Matrix& b, float* c);

}  // namespace fornax::flex
