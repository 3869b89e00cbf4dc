// Modules: fields, paths, copies, modes, freezing, moving and loading.
#include <fornax/fornax.h>
#include <gtest/gtest.h>

#include <array>

namespace fornax {
namespace {

Device cpu() { return Device("cpu"); }

struct Block {
  nn::Linear linear;
  nn::BatchNorm norm;
  explicit Block(Device device) : linear(2, 3, {.device = device}), norm(3, {.device = device}) {}
  Tensor operator()(const Tensor& x) const { return norm(linear(x)); }
  FORNAX_FIELDS(linear, norm)
};

struct Net {
  std::vector<Block> blocks;
  std::array<nn::Linear, 2> pair;
  std::optional<nn::Linear> present, absent;
  nn::Dropout dropout;
  explicit Net(Device device)
      : blocks{Block(device)},
        pair{nn::Linear(1, 1, {.bias = false, .device = device}),
             nn::Linear(1, 1, {.device = device})},
        present(nn::Linear(3, 1, {.device = device})),
        dropout(0.5, device) {}
  Tensor operator()(const Tensor& x) const { return (*present)(dropout(blocks[0](x))); }
  FORNAX_FIELDS(blocks, pair, present, absent, dropout)
};

struct Tied {
  Tensor first, second;
  explicit Tied(Device device) : first(ones({2}, {DType::f32, device})), second(first) {}
  FORNAX_FIELDS(first, second)
};

std::vector<std::string> paths(const State& state) {
  std::vector<std::string> names;
  for (const NamedTensor& item : state) names.push_back(item.path);
  return names;
}

TEST(Module, paths_follow_the_fields) {
  const Net net(cpu());
  EXPECT_EQ(
      paths(named_parameters(net)),
      (std::vector<std::string>{"blocks.0.linear.weight", "blocks.0.linear.bias",
                                "blocks.0.norm.weight", "blocks.0.norm.bias", "pair.0.weight",
                                "pair.1.weight", "pair.1.bias", "present.weight", "present.bias"}));
  EXPECT_EQ(state_of(net).size(), 11u);
  EXPECT_EQ(count_parameters(net), 6 + 3 + 3 + 3 + 1 + 1 + 1 + 3 + 1);
}

TEST(Module, summary_lists_types_counts_and_what_is_trained) {
  Block block(cpu().autodiff());
  block.linear.weight = block.linear.weight.detach();
  EXPECT_EQ(summary(block),
            "linear.weight      f32[2,3]                        6\n"
            "linear.bias        f32[3]                          3\n"
            "norm.weight        f32[3]                          3\n"
            "norm.bias          f32[3]                          3\n"
            "norm.running_mean  f32[3]                          3  not trained\n"
            "norm.running_var   f32[3]                          3  not trained\n"
            "total                                             15  9 tracked\n");
  EXPECT_EQ(summary(Tied(cpu())),
            "first   f32[2]                          2\n"
            "second  f32[2]                          2  shared\n"
            "total                                   2  0 tracked\n");
}

TEST(Module, each_visits_names_and_fields) {
  const nn::Linear linear(2, 3, {.device = cpu()});
  std::vector<std::string> names;
  linear.each([&](std::string_view name, const Tensor& tensor) {
    names.push_back(std::string(name) + text_of(tensor.shape()));
  });
  EXPECT_EQ(names, (std::vector<std::string>{"weight[2,3]", "bias[3]"}));
}

TEST(Module, training_and_evaluation) {
  const Net plain(cpu());
  const Net training = plain.train();
  EXPECT_FALSE(plain.dropout.mode.training);
  EXPECT_TRUE(training.dropout.mode.training);
  EXPECT_TRUE(training.blocks[0].norm.mode.training);
  for (const Tensor& tensor : parameters(training)) EXPECT_TRUE(tensor.requires_grad());
  for (const Tensor& tensor : parameters(plain)) EXPECT_FALSE(tensor.requires_grad());
  EXPECT_FALSE(training.blocks[0].norm.running_mean.value.requires_grad());
  const Net again = training.valid();
  for (const Tensor& tensor : parameters(again)) EXPECT_FALSE(tensor.requires_grad());
  EXPECT_FALSE(again.dropout.mode.training);
  EXPECT_FALSE(again(ones({2, 2}, {DType::f32, cpu()})).requires_grad());
}

TEST(Module, made_on_an_autodiff_device_it_trains) {
  const Net net(cpu().autodiff());
  for (const Tensor& tensor : parameters(net)) EXPECT_TRUE(tensor.requires_grad());
  EXPECT_TRUE(net.dropout.mode.training);
}

TEST(Module, copies_are_independent) {
  nn::Linear linear(2, 1, {.device = cpu()});
  const auto before = linear.weight.to_vector<float>();
  nn::Linear copy = linear;
  copy.weight += 1;
  EXPECT_EQ(linear.weight.to_vector<float>(), before);
  const nn::Linear training = linear.train(), other = linear.train();
  training(ones({1, 2})).sum().backward();
  EXPECT_TRUE(training.weight.grad().defined());
  EXPECT_FALSE(other.weight.grad().defined());
}

TEST(Module, freezing_a_part) {
  Net net = Net(cpu()).train();
  freeze(net.blocks[0]);
  net(ones({4, 2})).sum().backward();
  EXPECT_FALSE(net.blocks[0].linear.weight.requires_grad());
  EXPECT_FALSE(net.blocks[0].linear.weight.grad().defined());
  EXPECT_TRUE(net.present->weight.grad().defined());
  optim::Sgd sgd({.learning_rate = 1});
  const auto before = net.blocks[0].linear.weight.to_vector<float>();
  sgd.step(net);
  EXPECT_EQ(net.blocks[0].linear.weight.to_vector<float>(), before);
}

TEST(Module, shared_tensors_stay_shared) {
  Tied tied(cpu());
  EXPECT_EQ(count_parameters(tied), 2);
  tied = tied.train();
  EXPECT_EQ(tied.first.node(), tied.second.node());
  (tied.first * 2 + tied.second).sum().backward();
  optim::Sgd sgd({.learning_rate = 1});
  sgd.step(tied);
  EXPECT_EQ(tied.first.node(), tied.second.node());
  EXPECT_EQ(tied.first.to_vector<float>(), (std::vector<float>{-2, -2}));
  load_state(tied, state_of(Tied(cpu())));
  EXPECT_EQ(tied.first.node(), tied.second.node());
  EXPECT_TRUE(tied.first.requires_grad());
}

TEST(Module, loading_reports_everything_at_once) {
  Block block(cpu());
  State state = state_of(block);
  state.erase(state.begin());                       // linear.weight
  state[0].value = ones({4}, {DType::f32, cpu()});  // linear.bias
  state.push_back({"extra", ones({1})});
  try {
    load_state(block, state);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* words : {"missing: linear.weight", "unexpected: extra",
                              "linear.bias is f32[3], the state has f32[4]"}) {
      EXPECT_NE(text.find(words), text.npos) << text;
    }
  }
  const LoadReport report = load_state(block, state, {.strict = false});
  EXPECT_EQ(report.missing, std::vector<std::string>{"linear.weight"});
  EXPECT_FALSE(report.ok());
}

TEST(Module, loading_keeps_tracking_and_gives_equal_results) {
  const Block source(cpu());
  Block target = Block(cpu()).train();
  EXPECT_TRUE(load_state(target, state_of(source)).ok());
  EXPECT_TRUE(target.linear.weight.requires_grad());
  const Tensor x = ones({3, 2}, {DType::f32, cpu()});
  EXPECT_EQ(target.valid()(x).to_vector<float>(), source(x).to_vector<float>());
}

TEST(Module, moving) {
  const Block block = Block(cpu()).train();
  const Block moved = block.to(Device("reference"));
  EXPECT_TRUE(moved.linear.weight.device() == Device("reference"));
  EXPECT_TRUE(moved.linear.weight.requires_grad());
  EXPECT_TRUE(moved.norm.running_mean.value.device() == Device("reference"));
  EXPECT_EQ(moved.linear.weight.to_vector<float>(), block.linear.weight.to_vector<float>());
}

}  // namespace
}  // namespace fornax
