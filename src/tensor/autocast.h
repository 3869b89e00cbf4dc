// The dtypes that ops take under Autocast.  Thread-local.
#pragma once
#include <fornax/autocast.h>

#include "graph/op.h"

namespace fornax {

// The dtype of this thread's products, where Autocast is on.
std::optional<DType> autocast();
std::optional<DType> set_autocast(std::optional<DType> dtype);  // returns what was

// The dtype in which `op` takes operands that promote to `dtype`: the op table's precision says
// which ops differ under Autocast.
DType taken_dtype(Op op, DType dtype);

// Whether a pointwise op takes operands of `dtype` as they are.
inline bool takes(Op op, DType dtype) {
  const OpInfo& row = info(op);
  if (wants_floats(row.rule) && !is_floating(dtype)) return false;
  return row.precision == Precision::any || taken_dtype(op, dtype) == dtype;
}

}  // namespace fornax
