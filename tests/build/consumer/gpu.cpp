// A program with the GPU component; it also runs where there is no GPU.
#include <fornax/cache.h>
#include <fornax/fornax.h>

int main() {
  (void)fornax::cache::path();
  fornax::Tensor x = fornax::full({2, 3}, 2.0);
  return (x * x).sum().item<float>() == 24.0f ? 0 : 1;
}
