// Tensors whose dense axis is not the last, copied to row-major order: element by element they
// would touch a cache line each.  Constant once made, any thread.
#pragma once
#include "backend/backend.h"

namespace fornax::flex {

class Transposed {
 public:
  // Whether `layout` is of this kind, with axes long enough to gain from it.
  static bool fits(const Type& type, const Layout& layout);
  // Requires: fits(type, layout).
  Transposed(const Type& type, const Layout& layout);

  // Runs on the pool.
  void copy(const Argument& from, char* to) const;

 private:
  void copy_block(int64_t slice, int64_t row, const char* from, char* to) const;

  Shape shape_;
  Layout from_, to_;
  int64_t size_;
  int dense_, last_;
};

}  // namespace fornax::flex
