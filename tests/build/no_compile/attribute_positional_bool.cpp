// expect: ReduceOptions
#include <fornax/tensor.h>

fornax::Tensor kept(const fornax::Tensor& x) { return x.sum(0, true); }
