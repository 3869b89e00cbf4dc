// Lesson 7: files.
#include <fornax/fornax.h>

#include <cstdio>
#include <filesystem>

#include "claim.h"

using namespace fornax;

int main() {
  const std::string path = std::filesystem::temp_directory_path() / "fornax-lesson.safetensors";

  // A module is saved by its paths, as a safetensors file that PyTorch's library reads as well.
  const nn::Linear net(3, 2);
  io::save(net, path, {{"made by", "lesson 7"}});
  nn::Linear other(3, 2);
  io::load(other, path);
  claim(all_close(other.weight, net.weight, {.relative = 0, .absolute = 0}));

  // Files are mapped to memory: only what is asked for is read.
  const io::Safetensors file(path);
  claim(file.entries().size() == 2 && file.metadata("made by") == "lesson 7");
  claim(file.read("bias").shape() == Shape{2});

  // A checkpoint holds the optimizer, too: the run that goes on from it equals one that never
  // stopped.
  const Tensor x = ones({1, 3});
  nn::Linear straight = net.train();
  optim::Adam adam;
  const auto step = [&](nn::Linear& model, optim::Adam& optimizer) {
    model(x).sum().backward();
    optimizer.step(model);
  };
  step(straight, adam);
  io::save_checkpoint(path, straight, adam, {.epoch = 1, .step = 1, .seed = 0});
  step(straight, adam);

  nn::Linear resumed = nn::Linear(3, 2).train();
  optim::Adam taken_up;
  claim(io::load_checkpoint(path, resumed, taken_up).step == 1);
  step(resumed, taken_up);
  claim(all_close(resumed.weight, straight.weight, {.relative = 0, .absolute = 0}));
  std::remove(path.c_str());
}
