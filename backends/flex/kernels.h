// What flex prepares for groups whose anchor stands alone, by family.  Each returns a kernel that
// is const and safe to run on several threads at once; inputs come with any strides.
#pragma once
#include <memory>
#include <span>

#include "backend/backend.h"

namespace fornax::flex {

struct Kernel : Prepared {
  virtual void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const = 0;
};

std::unique_ptr<Kernel> prepare_pointwise(const Group& group);  // no anchor; cast and copy too
std::unique_ptr<Kernel> prepare_reduce(const Group& group);     // sum ... argmin, with pointwise
std::unique_ptr<Kernel> prepare_matmul(const Group& group);
std::unique_ptr<Kernel> prepare_convolve(const Group& group);  // the three convolutions
std::unique_ptr<Kernel> prepare_pool(const Group& group);      // pool_argmax
std::unique_ptr<Kernel> prepare_index(const Group& group);     // pad cat fold gather scatter
std::unique_ptr<Kernel> prepare_scan(const Group& group);      // cumsum ... cummin, argsort
std::unique_ptr<Kernel> prepare_generate(const Group& group);  // arange random_bits

// The first element of an argument with elements of type T.
template <class T>
T* data_of(const Argument& argument) {
  return static_cast<T*>(argument.buffer->data) + argument.offset;
}

}  // namespace fornax::flex
