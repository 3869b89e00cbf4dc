// The rows of bench cuda: what each computes, on which inputs, and the bars that it has to meet.
//
// A row is data that the driver (bench/cuda_peers.py) reads as well, to build the same work of its
// peers; make() turns one into calls.  Inputs are numbers from a counter, so that both sides have
// the same without exchanging them.  For one thread.
#pragma once
#include <fornax/fornax.h>

#include <functional>
#include <optional>

namespace bench {

using namespace fornax;

struct Row {
  std::string name, op, dtype;
  std::vector<int64_t> shape;      // of the first input; of matmul: m, k, n
  double bytes = 0, flops = 0;     // that a call must move and compute; 0: no such figure
  int ring = 1;                    // how many sets of inputs take turns, so that caches hold none
  int per = 1;                     // ops of a call: times are divided by it
  int check_calls = 1;             // the outputs of which call are compared; more: training steps
  std::optional<double> bar;       // the largest ratio to the fastest peer
  std::optional<double> of_copy;   // the least share of the bandwidth of copying
  std::optional<double> most;      // the largest value, in the row's unit
  std::vector<std::string> peers;  // beside torch and jax
};

// `tiny`: every axis a sixty-fourth, for a look at the protocol on a processor.
std::vector<Row> rows(bool tiny);

// One call of a row, on the inputs of that turn; recorded, not flushed.
using Call = std::function<std::vector<Tensor>(int turn)>;
// Makes the inputs.  Error as the library throws it.
Call make(const Row& row, Device device);

// Number i is in [-1, 1), from `seed` and i alone.
Tensor values(uint32_t seed, const std::vector<int64_t>& shape, DType dtype, Device device);
// i64 in [0, classes).
Tensor classes(uint32_t seed, const std::vector<int64_t>& shape, int64_t classes, Device device);
// Of all elements, read from the device; a thousand of them are in `samples`.
struct Summary {
  size_t count = 0;
  double sum = 0, squares = 0;
  std::vector<float> samples;
};
Summary summary(const Tensor& tensor);

// A training step of a model per call, which returns its loss.
Call train_mlp(const Row& row, Device device);  // shape: batch, inputs, hidden, classes
Call train_gpt(const Row& row, Device device);  // batch, context, width, layers, heads, vocabulary

}  // namespace bench
