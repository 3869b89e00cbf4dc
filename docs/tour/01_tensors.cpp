// Lesson 1: tensors are values.  Every claim below is checked when this program runs.
#include <fornax/fornax.h>

#include "claim.h"

using namespace fornax;

int main() {
  // A tensor is a handle of 8 bytes to a shape, an element type and a device.
  const Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}});
  claim(a.shape() == Shape{2, 2});
  claim(a.dtype() == DType::f32);  // floats are f32 unless you say more

  // Ops are functions, methods and operators.  They record and return at once; reading runs them.
  const Tensor b = a * 2 + 1;
  claim(b.to_vector<float>() == std::vector<float>{3, 5, 7, 9});
  claim(a.sum().item<float>() == 10);

  // Numbers adopt the type of the tensor that they meet; types of tensors are promoted.
  const Tensor whole = tensor({1, 2});
  claim(whole.dtype() == DType::i64);
  claim((whole * 2).dtype() == DType::i64);
  claim((whole / 2).dtype() == DType::f32);  // a division is always a float

  // Shapes broadcast from the right, as in NumPy.
  claim((a + tensor({10.0, 20.0})).to_vector<float>() == std::vector<float>{11, 22, 13, 24});

  // Copies are cheap and share nothing that could change: assignment rebinds a handle.
  Tensor c = a;
  c += 1;
  claim(a.to_vector<float>()[0] == 1);

  // A mistake is an exception that names the op, the sizes and the line that you wrote.
  try {
    a.matmul(ones({3, 2}));
    claim(false);
  } catch (const Error& error) {
    claim(error.kind() == ErrorKind::shape);
    claim(std::string(error.what()).find("matmul") == 0);
  }
}
