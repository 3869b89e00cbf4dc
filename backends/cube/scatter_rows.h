// scatter of rows: values whose places repeat along neighbouring elements, as in the gradient of an
// embedding.  A block owns some rows of the result: it reads all places, lists those in its rows,
// and adds the values to each row in their order, so that every element is read and written once.
//
// Objects do not change once prepared; running them is safe from several threads at once.
#pragma once
#include "backends/cube/frame.h"
#include "graph/attributes.h"

namespace fornax::cube {

// What becomes of an element where one more value is put.
Value combined(ScatterMode mode, Value old, Value value);

struct RowScatter {
  Anchor anchor;
  Place results;                // row-major
  DType computed = DType::f32;  // of the results
  Complaint complaint;
};
// Whether places repeat along elements that lie side by side in the values and in the base, and
// there are rows enough to share them out.
bool takes_rows(const Anchor& scatter);
std::unique_ptr<PreparedGroup> prepare_scatter_rows(Device& device, const RowScatter& scatter);

}  // namespace fornax::cube
