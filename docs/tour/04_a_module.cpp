// Lesson 4: a module is a struct that lists its fields.
#include <fornax/fornax.h>

#include "claim.h"

using namespace fornax;

// No base class and no registration: FORNAX_FIELDS is all there is.
struct Block {
  nn::Linear linear;
  nn::Dropout dropout{0.5};
  explicit Block(int64_t width) : linear(width, width) {}
  Tensor operator()(const Tensor& x) const { return x + dropout(relu(linear(x))); }
  FORNAX_FIELDS(linear, dropout)
};

struct Net {
  std::vector<Block> blocks;
  nn::Linear last;
  Tensor scale = ones({1});  // a tensor among the fields is a parameter
  explicit Net(int depth) : last(4, 1) {
    for (int i = 0; i < depth; i++)
      blocks.emplace_back(4);  // copies of one would share its tensors
  }
  Tensor operator()(Tensor x) const {
    for (const Block& block : blocks) x = block(x);
    return last(x) * scale;
  }
  FORNAX_FIELDS(blocks, last, scale)
};

int main() {
  const Net net(2);
  // Every parameter has a path.
  const State state = named_parameters(net);
  claim(state.size() == 7 && state[0].path == "blocks.0.linear.weight");
  claim(count_parameters(net) == 2 * (16 + 4) + 4 + 1 + 1);

  // Modules are values.  train() and valid() return modules of the same type.
  const Net training = net.train();
  claim(training.blocks[0].dropout.mode.training && !net.blocks[0].dropout.mode.training);
  claim(training(ones({1, 4})).requires_grad() && !net(ones({1, 4})).requires_grad());

  // Parts can be frozen.
  Net tuned = net.train();
  for (Block& block : tuned.blocks) freeze(block);
  claim(!tuned.blocks[0].linear.weight.requires_grad() && tuned.last.weight.requires_grad());

  // What is loaded must fit; an error names everything that does not.
  Net deeper(3);
  try {
    load_state(deeper, state_of(net));
    claim(false);
  } catch (const Error& error) {
    claim(std::string(error.what()).find("missing: blocks.2.linear.bias") != std::string::npos);
  }
}
