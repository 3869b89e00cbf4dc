// The models of the training rows, and their steps.
#include <cmath>
#include <limits>
#include <memory>

#include "bench/common/models.h"

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

struct Cnn {
  nn::Conv2d first, second;
  nn::Linear hidden, output;
  Cnn(const std::vector<int64_t>& s, Device device)
      : first(1, s[2], 3, {.padding = 1, .device = device}),
        second(s[2], s[3], 3, {.padding = 1, .device = device}),
        hidden(s[3] * (s[1] / 4) * (s[1] / 4), s[4], {.device = device}),
        output(s[4], s[5], {.device = device}) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor half = max_pool2d(relu(first(x)), 2);
    return output(relu(hidden(max_pool2d(relu(second(half)), 2).flatten(1))));
  }
  FORNAX_FIELDS(first, second, hidden, output)
};

// A classifier and Adam, on one batch.
template <class Net>
Call train(Net net, Tensor x, Tensor targets, Device device) {
  struct Training {
    Net net;
    optim::Adam adam{{.learning_rate = 1e-3}};
    Tensor x, targets;
  };
  const auto training = std::make_shared<Training>(
      Training{.net = std::move(net), .x = std::move(x), .targets = std::move(targets)});
  start(training->net, device);
  return [training](int) {
    const Tensor loss = cross_entropy(training->net(training->x), training->targets);
    loss.backward();
    training->adam.step(training->net);
    return std::vector<Tensor>{loss.detach()};
  };
}

}  // namespace

Call train_mlp(const std::vector<int64_t>& s, Device device) {
  return train(Mlp(s, device.autodiff()), values(0, {s[0], s[1]}, DType::f32, device),
               classes(64, {s[0]}, s[3], device), device);
}

Call train_cnn(const std::vector<int64_t>& s, Device device) {
  return train(Cnn(s, device.autodiff()), values(0, {s[0], 1, s[1], s[1]}, DType::f32, device),
               classes(64, {s[0]}, s[5], device), device);
}

Call train_gpt(const std::vector<int64_t>& s, Device device) {
  struct Training {
    Gpt net;
    optim::AdamW adam{{.learning_rate = 3e-4, .weight_decay = 0.01}};
    Tensor ids, targets;
    int64_t vocabulary;
  };
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
