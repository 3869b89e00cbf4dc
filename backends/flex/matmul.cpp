// matmul: the product of matrices over leading axes.  Floats go through gemm, halves with f32 sums
// and one rounding at the end; integers are exact modulo the width of their type.  Large products
// of f32 go to oneDNN where it is installed.
#include <algorithm>

#include "backends/flex/gemm.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/index.h"
#include "backends/flex/onednn.h"
#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

// The op as a batch of products with equal sizes.
struct Batch {
  Shape shape;
  int64_t a_strides[kMaxRank] = {}, b_strides[kMaxRank] = {};
  ProductSize size{};
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;
};

// Leading axes over which b repeats become rows of a where a's rows go on in the same step.
void fold_into_rows(Batch& batch) {
  while (batch.shape.rank() > 0) {
    const int last = batch.shape.rank() - 1;
    const int64_t step = batch.a_strides[last];
    if (batch.b_strides[last] != 0) return;
    if (batch.size.m != 1 && step != batch.size.m * batch.a_row) return;
    if (batch.size.m == 1) batch.a_row = step;
    batch.size.m *= batch.shape[last];
    batch.shape.erase(last);
  }
}

Batch batch_of(const AnchorPlan& plan) {
  const AnchorPlan::Input &a = plan.inputs[0], &b = plan.inputs[1];
  const int rank = a.type.shape.rank();
  Batch batch;
  for (int axis = 0; axis < rank - 2; axis++) {
    if (a.type.shape[axis] == 1) continue;
    batch.a_strides[batch.shape.rank()] = a.layout.strides[axis];
    batch.b_strides[batch.shape.rank()] = b.layout.strides[axis];
    batch.shape.push_back(a.type.shape[axis]);
  }
  batch.size = {a.type.shape[rank - 2], b.type.shape[rank - 1], a.type.shape[rank - 1]};
  batch.a_row = a.layout.strides[rank - 2];
  batch.a_column = a.layout.strides[rank - 1];
  batch.b_row = b.layout.strides[rank - 2];
  batch.b_column = b.layout.strides[rank - 1];
  fold_into_rows(batch);
  return batch;
}

void f32_product(const ProductSize& size, const Matrix& a, const Matrix& b, float* c) {
  if (suits_onednn(size, a, b)) {
    const OneDnn* library = onednn();
    if (library && onednn_product(*library, size, a, b, c)) return;
  }
  gemm(size, a, b, c);
}

void float_product(const ProductSize& size, const Matrix& a, const Matrix& b, void* c) {
  if (a.dtype == DType::f32) return f32_product(size, a, b, static_cast<float*>(c));
  if (a.dtype == DType::f64) return gemm(size, a, b, static_cast<double*>(c));
  const int64_t count = size.m * size.n;
  Workspace sums(size_t(count) * sizeof(float));
  gemm(size, a, b, sums.as<float>());
  with_float_type(a.dtype, [&](auto type) {
    using S = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
    if constexpr (std::is_class_v<S>) {
      const float* from = sums.as<float>();
      S* to = static_cast<S*>(c);
      parallel(count, 1 << 13, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) to[i] = narrow<S>(from[i]);
      });
    }
  });
}

// Rows [begin, end) of the product of unsigned integers, which is that of signed ones too.
template <class T>
void whole_rows(const ProductSize& size, const Matrix& a, const Matrix& b, T* c, int64_t begin,
                int64_t end) {
  using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;
  constexpr int64_t kDepth = 64, kColumns = 512;
  T packed[kDepth * kColumns];
  const T* left = static_cast<const T*>(a.data);
  const T* right = static_cast<const T*>(b.data);
  std::fill(c + begin * size.n, c + end * size.n, T(0));
  for (int64_t p0 = 0; p0 < size.k; p0 += kDepth) {
    const int64_t depth = std::min(kDepth, size.k - p0);
    for (int64_t j0 = 0; j0 < size.n; j0 += kColumns) {
      const int64_t columns = std::min(kColumns, size.n - j0);
      for (int64_t p = 0; p < depth; p++) {
        const T* line = right + (p0 + p) * b.row + j0 * b.column;
        for (int64_t j = 0; j < columns; j++) packed[p * kColumns + j] = line[j * b.column];
      }
      for (int64_t i = begin; i < end; i++) {
        T* out = c + i * size.n + j0;
        for (int64_t p = 0; p < depth; p++) {
          const Wide factor = left[i * a.row + (p0 + p) * a.column];
          const T* line = packed + p * kColumns;
          for (int64_t j = 0; j < columns; j++) out[j] = T(out[j] + factor * line[j]);
        }
      }
    }
  }
}

void whole_product(const ProductSize& size, const Matrix& a, const Matrix& b, void* c) {
  constexpr int64_t kRows = 16;  // that share a packed block of b
  with_bytes(size_of(a.dtype), [&](auto type) {
    using T = decltype(type);
    const int64_t blocks = (size.m + kRows - 1) / kRows;
    parallel(blocks, grain_for(kRows * size.n * size.k * 4), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; block++) {
        whole_rows(size, a, b, static_cast<T*>(c), block * kRows,
                   std::min(size.m, (block + 1) * kRows));
      }
    });
  });
}

struct Matmul : Kernel {
  explicit Matmul(AnchorPlan p) : plan(std::move(p)), batch(batch_of(plan)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView a(plan, 0, inputs), b(plan, 1, inputs);
    const DType dtype = plan.result.dtype;
    const int64_t element = int64_t(size_of(dtype)), products = batch.shape.element_count();
    const ProductSize& size = batch.size;
    std::byte* c = static_cast<std::byte*>(outputs[0].buffer->data) + outputs[0].offset * element;
    const auto some = [&](int64_t begin, int64_t end) {
      StridedWalk<2> walk(batch.shape, {batch.a_strides, batch.b_strides});
      walk.seek(begin);
      for (int64_t i = begin; i < end; i++, walk.next()) {
        const Matrix left{a.as<std::byte>() + walk.offsets[0] * element, dtype, batch.a_row,
                          batch.a_column};
        const Matrix right{b.as<std::byte>() + walk.offsets[1] * element, dtype, batch.b_row,
                           batch.b_column};
        std::byte* result = c + i * size.m * size.n * element;
        is_floating(dtype) ? float_product(size, left, right, result)
                           : whole_product(size, left, right, result);
      }
    };
    if (plan.result.shape.element_count() == 0) return;
    // Few products share the threads inside each of them.
    if (products < 2 * thread_count()) return some(0, products);
    parallel(products, grain_for(size.m * size.n * size.k), some);
  }

  AnchorPlan plan;
  Batch batch;
};

}  // namespace

std::unique_ptr<Kernel> prepare_matmul(const Group& group) {
  AnchorPlan plan = plan_of(group);
  FORNAX_CHECK(plan.op == Op::matmul && plan.inputs.size() == 2);
  return std::make_unique<Matmul>(std::move(plan));
}

}  // namespace fornax::flex
