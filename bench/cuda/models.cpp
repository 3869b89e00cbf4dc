// The models of the training rows, and their steps.
#include <cmath>
#include <limits>
#include <memory>

#include "bench/cuda/work.h"

namespace bench {
namespace {

struct Mlp {
  nn::Linear first, second, last;
  Mlp(const std::vector<int64_t>& sizes, Device device)
      : first(sizes[1], sizes[2], {.device = device}),
        second(sizes[2], sizes[2], {.device = device}),
        last(sizes[2], sizes[3], {.device = device}) {}
  Tensor operator()(const Tensor& x) const { return last(relu(second(relu(first(x))))); }
  FORNAX_FIELDS(first, second, last)
};

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

struct Gpt {
  nn::Embedding tokens, positions;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  Tensor hidden;
  Gpt(int64_t context, int64_t width, int64_t layers, int64_t heads, int64_t vocabulary,
      Device device)
      : tokens(vocabulary, width, {.device = device}),
        positions(context, width, {.device = device}),
        norm(width, {.device = device}),
        head(width, vocabulary, {.bias = false, .device = device}) {
    for (int64_t i = 0; i < layers; i++) blocks.emplace_back(width, heads, device);
    const Tensor steps = arange(context, {.device = device.inner()});
    hidden = (steps.unsqueeze(0) > steps.unsqueeze(1)).contiguous();
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor x = tokens(ids) + positions.weight;
    for (const Block& block : blocks) x = block(x, hidden);
    return head(norm(x));
  }
  FORNAX_FIELDS(tokens, positions, blocks, norm, head)
};

// The same start on both sides: matrices from the counter, within 1 / sqrt(rows); weights of norms
// 1 and every bias 0.
template <class Model>
void start(Model& model, Device device) {
  State state = state_of(model);
  for (uint32_t i = 0; i < state.size(); i++) {
    Tensor& value = state[i].value;
    std::vector<int64_t> shape;
    for (int axis = 0; axis < value.rank(); axis++) shape.push_back(value.shape(axis));
    if (value.rank() > 1) {
      value = values(100 + i, shape, DType::f32, device) / std::sqrt(double(shape[0]));
    } else {
      value = state[i].path.ends_with("weight") ? ones_like(value) : zeros_like(value);
    }
  }
  load_state(model, state);
  device.sync();
}

}  // namespace

Call train_mlp(const Row& row, Device device) {
  struct Training {
    Mlp net;
    optim::Adam adam{{.learning_rate = 1e-3}};
    Tensor x, targets;
  };
  const auto training = std::make_shared<Training>(Training{
      .net = Mlp(row.shape, device.autodiff()),
      .x = values(0, {row.shape[0], row.shape[1]}, DType::f32, device),
      .targets = classes(64, {row.shape[0]}, row.shape[3], device),
  });
  start(training->net, device);
  return [training](int) {
    const Tensor loss = cross_entropy(training->net(training->x), training->targets);
    loss.backward();
    training->adam.step(training->net);
    return std::vector<Tensor>{loss.detach()};
  };
}

Call train_gpt(const Row& row, Device device) {
  struct Training {
    Gpt net;
    optim::AdamW adam{{.learning_rate = 3e-4, .weight_decay = 0.01}};
    Tensor ids, targets;
    int64_t vocabulary;
  };
  const auto& s = row.shape;
  const auto training = std::make_shared<Training>(Training{
      .net = Gpt(s[1], s[2], s[3], s[4], s[5], device.autodiff()),
      .ids = classes(64, {s[0], s[1]}, s[5], device),
      .targets = classes(65, {s[0] * s[1]}, s[5], device),
      .vocabulary = s[5],
  });
  start(training->net, device);
  return [training](int) {
    const Tensor logits = training->net(training->ids).reshape({-1, training->vocabulary});
    const Tensor loss = cross_entropy(logits, training->targets);
    loss.backward();
    training->adam.step(training->net);
    return std::vector<Tensor>{loss.detach()};
  };
}

}  // namespace bench
