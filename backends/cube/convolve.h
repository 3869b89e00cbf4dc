// Convolutions as two kinds of kernels take them.
#pragma once
#include "backends/cube/window.h"

namespace fornax::cube {

struct Convolution {
  Op op = Op::convolve;
  Pictures pictures;  // the operands and the result
  Window2d window;
  const Shape& weight() const {
    return op == Op::convolve_weight ? pictures.result() : pictures.sources[1].shape;
  }
};

// Whether the convolution is worth writing as a product of matrices (convolve_tiles.cpp).
bool tiles_take(const Convolution& convolution);
void add_tiles(Device& device, ScratchSequence& sequence, const Convolution& convolution);

}  // namespace fornax::cube
