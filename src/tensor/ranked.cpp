// The run-time half of Ranked: rank and kind of a tensor that comes from outside.
#include <fornax/ranked.h>

#include "tensor/record.h"

namespace fornax::ranked {

void check(const Tensor& tensor, int rank, bool floating, bool boolean, Site site) {
  Call call("ranked", site);
  const Type& type = node_of(tensor).type;
  if (type.shape.rank() != rank) {
    fail(ErrorKind::shape, "{}: {} has {} axes, the type says {}; reshape it",
         Call::name_or("ranked"), text_of(type), type.shape.rank(), rank);
  }
  if (is_floating(type.dtype) != floating || is_boolean(type.dtype) != boolean) {
    fail(ErrorKind::dtype, "{}: {} is not of kind {}; cast it", Call::name_or("ranked"),
         text_of(type),
         floating  ? "Float"
         : boolean ? "Bool"
                   : "Int");
  }
}

}  // namespace fornax::ranked
