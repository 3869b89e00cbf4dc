// What the benches compute: ops and training steps by name, on inputs that every peer can make.
//
// Inputs are numbers from a counter, so that both sides have the same without exchanging them;
// bench/peers/rows.py has the same names, shapes and numbers.  For one thread.
#pragma once
#include <fornax/fornax.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bench {

using namespace fornax;

struct Work {
  std::string op;
  std::string dtype = "f32";
  // Of the first input; of others:
  //   matmul_nn, _nt, _tn, _gelu   m, k, n
  //   matmul_batch            batch, m, k, n
  //   embedding               rows, width, how many are looked up
  //   conv                    batch, channels, height, width, filters, kernel, stride, groups
  //   mlp_step                batch, inputs, hidden, classes
  //   cnn_step                batch, size, filters, filters, hidden, classes
  //   gpt_step, gpt2_...      batch, context, width, layers, heads, vocabulary
  //   resnet18, resnet18_grad batch, size
  std::vector<int64_t> shape;
  int ring = 1;  // how many sets of inputs take turns, so that caches hold none
};

// One call, on the inputs of that turn; recorded, not flushed.  Of a training step: its loss.
using Call = std::function<std::vector<Tensor>(int turn)>;
// Makes the inputs.  std::invalid_argument: no such op; else as the library throws it.
Call make(const Work& work, Device device);

// The outputs of which call are compared.
int check_calls(const std::string& op);
// Whether a call changes what the next one computes.
bool is_training(const std::string& op);
// The outputs of the call to compare.  What it writes held NaN before, unless it is training.
std::vector<Tensor> checked(const Work& work, const Call& call, Device device);

// The parts of make(): a model's step per call.
Call train_mlp(const std::vector<int64_t>& shape, Device device);
Call train_cnn(const std::vector<int64_t>& shape, Device device);
Call train_gpt(const std::vector<int64_t>& shape, Device device);
// Under Autocast of bf16: gpt2_step, gpt2_forward (the loss), gpt2_losses (of kLosses steps).
inline constexpr int kLosses = 50;
Call gpt2(const std::string& op, const std::vector<int64_t>& shape, Device device);
Call resnet18(const std::vector<int64_t>& shape, bool gradients, Device device);

// Number i is in [-1, 1), from `seed` and i alone.
Tensor values(uint32_t seed, const std::vector<int64_t>& shape, DType dtype, Device device);
// i64 in [0, classes).
Tensor classes(uint32_t seed, const std::vector<int64_t>& shape, int64_t classes, Device device);

// Of all elements, read from the device; a thousand of them are in `samples`.
struct Summary {
  size_t count = 0;
  double sum = 0, squares = 0;
  std::vector<double> samples;
};
Summary summary(const Tensor& tensor);

double seconds();  // of a clock that only goes forward
double median(std::vector<double> values);

// "4096x1024".
std::string shape_name(const std::vector<int64_t>& shape);

}  // namespace bench
