// Mixed precision: products of 16-bit numbers in a program whose parameters and sums are f32.
//
// Thread-local: other threads, and what was recorded before, are unaffected.
#pragma once
#include <fornax/dtype.h>
#include <fornax/error.h>

#include <optional>

namespace fornax {

// While one lives, products and convolutions on this thread bring operands of f32 and of 16 bits to
// `dtype`, and give that; exponentials, sums, norms, softmax and losses bring operands of 16 bits
// to f32, and give f32.  Everything else promotes as ever, and f64 stays f64.  docs/ops.md says
// what each op does, docs/semantics.md the rest.
//
// The casts are recorded, so gradients of f32 parameters are f32.  A backward pass computes as the
// forward pass was recorded, whether it runs within the guard or not.  Losses are not scaled:
// gradients of f16 below 6e-8 become 0, those of bf16 have the range of f32.
class Autocast {
 public:
  // Error(dtype): neither f16 nor bf16.
  explicit Autocast(DType dtype, Site site = Site::here());
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> before_;
};

// While one lives, ops on this thread compute in the dtypes that they are given.
class NoAutocast {
 public:
  NoAutocast();
  ~NoAutocast();
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  std::optional<DType> before_;
};

}  // namespace fornax
