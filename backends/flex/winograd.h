// Convolutions of f32 with windows of 3x3, one apart, by Winograd's F(2x2, 3x3): a tile of four by
// four elements gives two by two results with 16 products instead of 36, so that for many channels
// the work is 16 products of matrices, 4/9 of that of a plain convolution.
//
// Sums and differences of elements that are apart are rounded, so an error is relative to the
// largest element of the tile.  Where a result is not finite everything is computed again by the
// plain kernel: then infinities and NaN stand where they belong.
// Kernels are const after they are made and shared by threads.
#pragma once
#include "backends/flex/convolve.h"
#include "backends/flex/gemm_pack.h"

namespace fornax::flex {

// An f32 operand of four axes whose lines, or windows, lie without gaps: in place, or a copy.
struct Packed {
  static Packed lines(const InputView& operand);
  static Packed windows(const InputView& weight);

  Packed(const InputView& operand, bool in_place);
  Workspace memory;  // of the copy
  const float* data;
  int64_t strides[4];
};

// Whether the convolution is one that is faster this way.
bool suits_winograd(const AnchorPlan& plan);

// convolve and convolve_input, and convolve_weight.  Requires: suits_winograd.
std::unique_ptr<Kernel> prepare_winograd(AnchorPlan plan, std::unique_ptr<Kernel> plain);
std::unique_ptr<Kernel> prepare_winograd_weight(AnchorPlan plan, std::unique_ptr<Kernel> plain);

}  // namespace fornax::flex
