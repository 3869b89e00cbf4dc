// The program whose way through the library docs/how.md follows.
#include <fornax/fornax.h>

#include <cstdio>

using namespace fornax;

int main() {
  const Tensor x = ones({32, 64});
  const Tensor w = full({64, 16}, 0.125).require_grad();
  const Tensor y = silu(x.matmul(w));
  const Tensor loss = y.mean();
  loss.backward();
  std::printf("loss %.4f, gradient of w %.6f\n", loss.item<double>(),
              w.grad().mean().item<double>());
}
