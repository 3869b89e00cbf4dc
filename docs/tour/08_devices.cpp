// Lesson 8: devices are values that are chosen while the program runs.
#include <fornax/fornax.h>

#include "claim.h"

using namespace fornax;

int main() {
  // devices() lists what is here, and what was looked for and why it is missing.
  claim(!devices().empty() && devices()[0].usable);
  const Device cpu("cpu");
  claim(cpu == Device("cpu:0"));
  claim(!cpu.describe().empty());  // the active stack: what really runs

  // The marks say how to work on a device and do not make another one of it.
  claim(cpu.autodiff() == cpu && cpu.autodiff().is_autodiff());
  claim(cpu.eager() == cpu);

  // Every computer has a second device: the reference, slow and simple, whose word is law.
  const Device reference("reference");
  const Tensor x = linspace(0, 1, 100, {DType::f32, cpu});
  const Tensor here = softmax(x * 3), there = softmax(x.to(reference) * 3);
  claim(all_close(here, there.to(cpu), {.relative = 1e-5}));

  // Tensors of two devices do not mix by accident.
  try {
    here + there;
    claim(false);
  } catch (const Error& error) {
    claim(error.kind() == ErrorKind::device);
  }

  // Equal seeds give equal numbers everywhere.
  cpu.seed(4);
  reference.seed(4);
  claim(uniform({5}, 0, 1, {DType::f32, cpu}).to_vector<float>() ==
        uniform({5}, 0, 1, {DType::f32, reference}).to_vector<float>());

  // Where time and memory go.
  const ProfileReport report = cpu.profile([&] { (x * 2).exp().sum().item<float>(); });
  claim(report.seconds > 0);
  claim(cpu.memory().in_use > 0);
}
