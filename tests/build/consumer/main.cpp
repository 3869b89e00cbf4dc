// Fails unless a backend survived linking and computes.
#include <fornax/fornax.h>

int main() {
  fornax::Tensor x = fornax::full({2, 3}, 2.0);
  return (x * x).sum().item<float>() == 24.0f ? 0 : 1;
}
