// expect: FORNAX_FIELDS takes tensors, nn::Buffer, nn::Mode, modules
#include <fornax/module.h>

struct Scale {
  double factor = 2;
  FORNAX_FIELDS(factor)
};

fornax::Leaves of(Scale& scale) { return fornax::leaves(scale); }
