// The language models of the training rows: a small one in f32, and GPT-2 under Autocast.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "bench/common/models.h"

namespace bench {
namespace {

struct Block {
  int64_t heads;
  nn::LayerNorm before;
  nn::Linear qkv, out;
  nn::LayerNorm between;
  nn::Linear up, down;
  Block(int64_t width, int64_t heads, Device device)
      : heads(heads),
        before(width, {.device = device}),
        qkv(width, 3 * width, {.device = device}),
        out(width, width, {.device = device}),
        between(width, {.device = device}),
        up(width, 4 * width, {.device = device}),
        down(4 * width, width, {.device = device}) {}

  // `hidden` marks what lies in the future.
  Tensor attend(const Tensor& x, const Tensor& hidden) const {
    const int64_t batch = x.shape(0), length = x.shape(1), width = x.shape(2);
    const Tensor all =
        qkv(x).reshape({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const Tensor q = all.select(0, 0), k = all.select(0, 1), v = all.select(0, 2);
    const Tensor scores = q.matmul(k.transpose()) / std::sqrt(double(width / heads));
    const Tensor weights =
        softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()));
    return out(weights.matmul(v).transpose(1, 2).reshape({batch, length, width}));
  }
  Tensor operator()(const Tensor& x, const Tensor& hidden) const {
    const Tensor y = x + attend(before(x), hidden);
    return y + down(gelu_tanh(up(between(y))));
  }
  FORNAX_FIELDS(before, qkv, out, between, up, down)
};

// Everything up to the states that a head reads.
struct Trunk {
  nn::Embedding tokens, positions;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  Tensor hidden;
  Trunk(int64_t context, int64_t width, int64_t layers, int64_t heads, int64_t vocabulary,
        Device device)
      : tokens(vocabulary, width, {.device = device}),
        positions(context, width, {.device = device}),
        norm(width, {.device = device}) {
    for (int64_t i = 0; i < layers; i++) blocks.emplace_back(width, heads, device);
    const Tensor steps = arange(context, {.device = device.inner()});
    hidden = (steps.unsqueeze(0) > steps.unsqueeze(1)).contiguous();
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor x = tokens(ids) + positions.weight;
    for (const Block& block : blocks) x = block(x, hidden);
    return norm(x);
  }
  FORNAX_FIELDS(tokens, positions, blocks, norm)
};

// Of a batch, context, width, layers, heads and vocabulary.
Trunk trunk(const std::vector<int64_t>& s, Device device) {
  return Trunk(s[1], s[2], s[3], s[4], s[5], device);
}

struct Gpt {
  static constexpr bool kNarrow = false;  // products of bf16
  static constexpr double kRate = 3e-4;
  Trunk states;
  nn::Linear head;
  Gpt(const std::vector<int64_t>& s, Device device)
      : states(trunk(s, device)), head(s[2], s[5], {.bias = false, .device = device}) {}
  Tensor operator()(const Tensor& ids) const { return head(states(ids)); }
  FORNAX_FIELDS(states, head)
};

// The head is the embedding.
struct Gpt2 {
  static constexpr bool kNarrow = true;
  // At 3e-4, without a warm-up, PyTorch's curves part by 1.5 % with the kernel for attention.
  static constexpr double kRate = 1e-4;
  Trunk states;
  Gpt2(const std::vector<int64_t>& s, Device device) : states(trunk(s, device)) {}
  Tensor operator()(const Tensor& ids) const {
    return states(ids).matmul(states.tokens.weight.transpose());
  }
  FORNAX_FIELDS(states)
};

// AdamW on one batch of tokens and of what follows each.
template <class Net>
struct Training {
  Net net;
  optim::AdamW adam{{.learning_rate = Net::kRate, .weight_decay = 0.01}};
  Tensor ids, targets;
  int64_t vocabulary;
  Training(const std::vector<int64_t>& s, Device device)
      : net(s, device.autodiff()),
        ids(classes(64, {s[0], s[1]}, s[5], device)),
        targets(classes(65, {s[0] * s[1]}, s[5], device)),
        vocabulary(s[5]) {
    start(net, device);
  }
  Tensor loss() const {
    std::optional<Autocast> products;
    if (Net::kNarrow) products.emplace(DType::bf16);
    return cross_entropy(net(ids).reshape({-1, vocabulary}), targets);
  }
  Tensor step() {
    const Tensor before = loss();
    before.backward();
    adam.step(net);
    return before.detach();
  }
};

}  // namespace

Call train_gpt(const std::vector<int64_t>& shape, Device device) {
  const auto training = std::make_shared<Training<Gpt>>(shape, device);
  return [training](int) { return std::vector<Tensor>{training->step()}; };
}

Call gpt2(const std::string& op, const std::vector<int64_t>& shape, Device device) {
  const auto training = std::make_shared<Training<Gpt2>>(shape, device);
  if (op == "gpt2_step") return [training](int) { return std::vector<Tensor>{training->step()}; };
  if (op == "gpt2_forward") {
    return [training](int) {
      const NoGrad untracked;
      return std::vector<Tensor>{training->loss()};
    };
  }
  return [training, device](int) {
    std::vector<Tensor> losses;
    for (int i = 0; i < kLosses; i++) {
      losses.push_back(training->step());
      device.flush();
    }
    return std::vector<Tensor>{stack(losses)};
  };
}

}  // namespace bench
