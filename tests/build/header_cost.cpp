// What a user's smallest model costs to compile: see header_cost.sh.
#include <fornax/fornax.h>

struct Model {
  fornax::nn::Linear first{784, 128};
  fornax::nn::Linear last{128, 10};
  fornax::Tensor operator()(const fornax::Tensor& x) const { return last(relu(first(x))); }
  FORNAX_FIELDS(first, last)
};

fornax::Tensor apply(const Model& model, const fornax::Tensor& x) { return model(x); }
