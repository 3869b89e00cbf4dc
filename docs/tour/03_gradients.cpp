// Lesson 3: gradients.
#include <fornax/fornax.h>

#include <cmath>

#include "claim.h"

using namespace fornax;

int main() {
  // What require_grad() returns is tracked; backward() leaves gradients in what was tracked.
  const Tensor x = tensor({1.0, 2.0, 3.0}).require_grad();
  const Tensor loss = (x * x).sum();
  loss.backward();
  claim(x.grad().to_vector<float>() == std::vector<float>{2, 4, 6});

  // The graph belongs to the tensors.  After backward() it is spent; a second pass needs a new one.
  (x * 3).sum().backward();
  claim(x.grad().to_vector<float>() == std::vector<float>{5, 7, 9});  // gradients add up

  // Values that are not single numbers want a gradient to begin with: that of what is made of them.
  const Tensor squares = x * x;
  squares.backward(tensor({1.0, 0.0, 0.0}), {.retain_graph = true});
  squares.backward(tensor({0.0, 0.0, 10.0}));
  claim(x.grad().to_vector<float>() == std::vector<float>{7, 7, 69});

  // grad() returns gradients and touches none that are kept; with create_graph it can be repeated.
  const Tensor y = tensor({2.0}).require_grad();
  const Tensor cube = (y * y * y).sum();
  const Tensor first = grad({cube}, {y}, {.create_graph = true})[0];
  const Tensor second = grad({first.sum()}, {y})[0];
  claim(first.item<float>() == 12 && second.item<float>() == 12);

  // Nothing is tracked within NoGrad, nor after detach().
  {
    const NoGrad no_grad;
    claim(!(y * 2).requires_grad());
  }
  claim(!y.detach().requires_grad());

  // An op of one's own brings its gradient along: here one that lets everything pass.
  const CustomOp straight{
      "straight_round",
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0].round()}; },
      [](const auto&, const auto&, const std::vector<Tensor>& dy) { return dy; }};
  const Tensor z = tensor({0.7}).require_grad();
  const Tensor rounded = straight({z})[0];
  rounded.sum().backward();
  claim(rounded.item<float>() == 1 && z.grad().item<float>() == 1);
}
