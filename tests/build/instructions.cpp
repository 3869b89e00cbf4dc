// What the processor executes for the work that programs do most; run under callgrind, which counts
// what happens in the functions named count_*.  instructions.sh compares the numbers.
//
//   instructions small_add|record|training_step ROUNDS
#include <fornax/fornax.h>

#include <cstdlib>
#include <cstring>

using namespace fornax;

namespace {

struct Net {
  nn::Linear hidden{784, 64}, output{64, 10};
  Tensor operator()(const Tensor& x) const { return output(relu(hidden(x))); }
  FORNAX_FIELDS(hidden, output)
};

constexpr int kAdds = 1000;

}  // namespace

extern "C" {

// 16-element adds, which run at once.
[[gnu::noinline]] void count_small_add(const Tensor& a, const Tensor& b) {
  for (int i = 0; i < kAdds; i++) const Tensor sum = a + b;
}

// Adds of 2,000 elements, which are recorded.
[[gnu::noinline]] void count_record(const Tensor& a, const Tensor& b, Tensor& sum) {
  sum = a;
  for (int i = 0; i < kAdds; i++) sum = sum + b;
}

// Forward, backward and update of two layers at a batch so small that the library's own work
// counts.
[[gnu::noinline]] void count_training_step(Net& net, optim::Adam& adam, const Tensor& inputs,
                                           const Tensor& targets) {
  cross_entropy(net(inputs), targets).backward();
  adam.step(net);
  Device().sync();
}
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  const Device device;
  device.seed(0);
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 1;
  if (!std::strcmp(what, "small_add")) {
    const Tensor a = uniform({16}).contiguous(), b = uniform({16}).contiguous();
    device.sync();
    for (int i = 0; i < rounds; i++) count_small_add(a, b);
  } else if (!std::strcmp(what, "record")) {
    const Tensor a = uniform({2000}).contiguous(), b = uniform({2000}).contiguous();
    device.sync();
    for (int i = 0; i < rounds; i++) {
      Tensor sum;
      count_record(a, b, sum);
      sum = Tensor();
      device.flush();  // nobody can read the sums: nothing runs
    }
  } else if (!std::strcmp(what, "training_step")) {
    Net net = Net().train();
    optim::Adam adam({.learning_rate = 1e-3});
    const Tensor inputs = uniform({4, 784}).contiguous();
    const Tensor targets = arange(4).cast(DType::i64).contiguous();
    device.sync();
    for (int i = 0; i < rounds; i++) count_training_step(net, adam, inputs, targets);
  } else {
    return 2;
  }
}
