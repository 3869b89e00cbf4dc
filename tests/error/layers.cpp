// Layers, optimizers, data and files name the user's line, and what exactly is wrong.
#include <fornax/fornax.h>

#include <functional>
#include <limits>

#include "tests/errors.h"

namespace fornax {
namespace {

// One thing that must fail, and words that its message holds beside a line of this file.
struct Wrong {
  ErrorKind kind;
  std::string words;
  std::function<void()> act;
};

void expect_errors(const std::vector<Wrong>& list) {
  for (const Wrong& wrong : list) {
    const std::string message = message_of(wrong.kind, wrong.act);
    expect_words(message, wrong.words);
    expect_words(message, "tests/error/layers.cpp:");
    EXPECT_EQ(message.find('\n'), message.npos) << message;
  }
}

Device cpu() { return Device("cpu"); }
Tensor filled(const Shape& shape) { return ones(shape, {.device = cpu()}); }

const double kNan = std::numeric_limits<double>::quiet_NaN();
const auto kShape = ErrorKind::shape;
const auto kValue = ErrorKind::value;

TEST(Layers, calls_name_the_line_of_the_caller) {
  const nn::Linear linear(3, 4, {.device = cpu()});
  const std::string message = message_of(kShape, [&] { linear(filled({2, 5})); });
  expect_words(message, "linear: inner sizes differ");
  expect_words(message, "layers.cpp:" + std::to_string(__LINE__ - 2) + ")");

  const nn::BatchNorm norm(3, {.device = cpu()}), training = norm.train();
  expect_errors({
      {kShape, "conv2d:",
       [] {
         nn::Conv2d(3, 4, 3, {.device = cpu()})(filled({1, 2, 8, 8}));
       }},
      {kShape, "max_pool2d:",
       [] {
         nn::MaxPool2d{9}(filled({1, 1, 5, 5}));
       }},
      {kShape, "avg_pool2d:",
       [] {
         nn::AvgPool2d{9}(filled({1, 1, 5, 5}));
       }},
      {ErrorKind::dtype, "embedding:", [] { nn::Embedding(3, 2, {.device = cpu()})(filled({2})); }},
      {kShape, "batch_norm:",
       [&] {
         norm(filled({4, 2}));
       }},
      {kShape, "batch_norm: x is [4,2]; axis 1 must have the layer's 3 channels",
       [&] {
         training(filled({4, 2}));
       }},
      {kShape, "batch_norm: x is [1,3]; training needs more than one value per channel",
       [&] {
         training(filled({1, 3}));
       }},
      {kShape, "layer_norm:",
       [] {
         nn::LayerNorm(3, {.device = cpu()})(filled({2, 4}));
       }},
      {kShape, "rms_norm:",
       [] {
         nn::RmsNorm(3, {.device = cpu()})(filled({2, 4}));
       }},
      {kValue, "relu: a tensor is undefined", [] { nn::Relu{}(Tensor()); }},
      {ErrorKind::index, "flatten:", [] { nn::Flatten{}(filled({2})); }},
  });
}

TEST(Layers, errors_in_values_name_the_line_of_the_caller) {
  const nn::Embedding table(3, 2, {.device = cpu()});
  const Tensor rows = table(tensor({1, 5}, {.device = cpu()}));
  const int line = __LINE__ - 1;
  const std::string message = message_of(ErrorKind::index, [&] { rows.to_vector<float>(); });
  expect_words(message, "layers.cpp:" + std::to_string(line) + ")");
}

TEST(Layers, constructors_name_the_line_of_the_caller) {
  expect_errors({
      {kShape, "linear: a size is 0; sizes must be at least 1", [] { nn::Linear(0, 1); }},
      {kShape, "conv2d: a size is -1",
       [] {
         nn::Conv2d(3, 4, {3, -1});
       }},
      {kShape, "conv2d: 2 groups do not divide 3 channels in and 4 out",
       [] { nn::Conv2d(3, 4, 3, {.groups = 2}); }},
      {kShape, "embedding: a size is 0", [] { nn::Embedding(0, 4); }},
      {kShape, "batch_norm: a size is 0", [] { nn::BatchNorm(0); }},
      {kShape, "layer_norm: a size is -3", [] { nn::LayerNorm(-3); }},
      {kShape, "rms_norm: a size is 0", [] { nn::RmsNorm(0); }},
      {kValue, "dropout: the probability is 1.5; it must be within [0, 1]",
       [] { nn::Dropout(1.5); }},
      {kShape, "orthogonal: [3] is not a matrix", [] { nn::orthogonal()({3}, {}); }},
      {ErrorKind::dtype, "uniform: the dtype must be floating, got i32",
       [] { nn::Linear(2, 2, {.dtype = DType::i32}); }},
  });
}

// A user's layer, which knows nothing of sites.
struct Half {
  Tensor operator()(const Tensor& x) const { return x.narrow(1, 0, 2); }
};

TEST(Layers, sequential_passes_its_site_on) {
  const nn::Sequential net(nn::Relu(), Half(), nn::Linear(3, 1, {.device = cpu()}));
  const std::string message = message_of(kShape, [&] { net(filled({1, 4})); });
  expect_words(message, "linear: inner sizes differ");
  expect_words(message, "layers.cpp:" + std::to_string(__LINE__ - 2) + ")");
  const nn::Sequential functions([](const Tensor& x, Site site) { return x.squeeze(0, site); });
  const std::string other = message_of(kShape, [&] { functions(filled({2})); });
  expect_words(other, "layers.cpp:" + std::to_string(__LINE__ - 1) + ")");
}

TEST(Modules, name_the_line_of_the_caller) {
  nn::Linear linear(2, 1, {.device = cpu()});
  expect_errors({
      {kValue, "load_state: the state does not fit the module: missing: bias, weight",
       [&] { load_state(linear, State{}); }},
      {kValue, "missing: bias",
       [&] {
         load_state(leaves(linear), {{"weight", linear.weight}});
       }},
  });
}

TEST(Optimizers, name_the_line_of_the_caller) {
  nn::Linear linear(2, 1, {.device = cpu()});
  optim::Sgd sgd;
  optim::Adam adam;
  expect_errors({
      {kValue, "step: none of the module's parameters is tracked", [&] { sgd.step(linear); }},
      {kValue, "clip_gradients: the largest norm is -1",
       [&] { optim::clip_gradients(linear, -1); }},
      {kValue, "clip_gradients: none of the module's parameters is tracked",
       [&] { optim::clip_gradients(linear, 1); }},
      {kValue, "load_state: \"p.mean\" is not a state of this optimizer",
       [&] {
         sgd.load_state({{"p.mean", filled({})}});
       }},
  });
}

TEST(Optimizers, options_are_checked_when_one_is_made) {
  const double infinity = std::numeric_limits<double>::infinity();
  expect_errors({
      {kValue, "sgd: learning_rate is nan; it must be finite and at least 0",
       [] { optim::Sgd({.learning_rate = kNan}); }},
      {kValue, "sgd: momentum is -0.1", [] { optim::Sgd({.momentum = -0.1}); }},
      {kValue, "sgd: dampening is nan; it must be finite", [] { optim::Sgd({.dampening = kNan}); }},
      {kValue, "sgd: weight_decay is -1", [] { optim::Sgd({.weight_decay = -1}); }},
      {kValue, "sgd: nesterov needs momentum and no dampening; momentum is 0, dampening 0",
       [] { optim::Sgd({.nesterov = true}); }},
      {kValue, "momentum is 0.9, dampening 0.5",
       [] { optim::Sgd({.momentum = 0.9, .dampening = 0.5, .nesterov = true}); }},
      {kValue, "adam: learning_rate is -0.001", [] { optim::Adam({.learning_rate = -1e-3}); }},
      {kValue, "adam: learning_rate is inf", [=] { optim::Adam({.learning_rate = infinity}); }},
      {kValue, "adam: beta1 is 1; it must be within [0, 1)", [] { optim::Adam({.beta1 = 1}); }},
      {kValue, "adam: beta2 is nan", [] { optim::Adam({.beta2 = kNan}); }},
      {kValue, "adam: epsilon is -1e-08", [] { optim::Adam({.epsilon = -1e-8}); }},
      {kValue, "adam: weight_decay is -0.5", [] { optim::AdamW({.weight_decay = -0.5}); }},
      {kValue, "adam: beta1 is -0.1", [] { optim::AdamW({.beta1 = -0.1}); }},
  });
}

TEST(Optimizers, options_are_checked_at_each_step) {
  nn::Linear linear(2, 1, {.device = cpu()});
  optim::Sgd sgd;
  optim::Adam adam;
  optim::AdamW adamw;
  sgd.options.learning_rate = adam.options.beta2 = adamw.options.epsilon = kNan;
  expect_errors({
      {kValue, "sgd: learning_rate is nan", [&] { sgd.step(linear); }},
      {kValue, "adam: beta2 is nan", [&] { adam.step(linear); }},
      {kValue, "adam: epsilon is nan", [&] { adamw.step(linear); }},
  });
}

// Examples of different sizes, and one that is broken in the user's own code.
struct Uneven {
  int64_t broken = -1;
  int64_t size() const { return 2; }
  static constexpr int kBrokenLine = __LINE__ + 2;
  data::Example get(int64_t i) const {
    if (i == broken) filled({2}).reshape({3});
    return {filled({i + 1}), filled({})};
  }
};

TEST(Data, names_the_line_of_the_caller) {
  const data::InMemory data(filled({4, 3}), filled({4}));
  const data::Pictures pictures{.count = 1, .height = 1, .width = 1, .pixels = {0}, .labels = {0}};
  const int64_t wrong[] = {7};
  expect_errors({
      {kShape, "in_memory: inputs are [4,3], targets [5]; both need a first axis",
       [] {
         data::InMemory(filled({4, 3}), filled({5}));
       }},
      {ErrorKind::index, "in_memory: there is no example 4; there are 4", [&] { data.get(4); }},
      {ErrorKind::index, "in_memory: there is no example 7", [&] { data.batch(wrong, cpu()); }},
      {ErrorKind::index, "pictures: there is no example -1; there are 1",
       [&] { pictures.get(-1); }},
      {ErrorKind::index, "pictures: there is no example 7", [&] { pictures.batch(wrong, cpu()); }},
      {ErrorKind::index, "there is no example 9",
       [&] { data::map(data, [](data::Example example) { return example; }).get(9); }},
      {kShape, "stack",
       [] {
         data::stacked({{filled({1}), filled({})}, {filled({2}), filled({})}}, cpu());
       }},
      {kValue, "loader: batch_size is 0, workers 1, prefetch 4; they must be at least 1, 0 and 1",
       [&] { data::Loader(data, {.batch_size = 0}); }},
      {kValue, "workers -1", [&] { data::Loader(data, {.workers = -1}); }},
      {kValue, "prefetch 0", [&] { data::Loader(data, {.prefetch = 0}); }},
      {ErrorKind::io, "idx: cannot open /nowhere: No such file",
       [] { data::read_idx("/nowhere"); }},
      {kValue, "fashion_mnist: there is no split \"validation\"; choose \"train\" or \"test\"",
       [] { data::fashion_mnist("validation"); }},
  });
}

TEST(Data, a_loader_names_the_line_that_asked_for_the_epoch_or_the_dataset) {
  for (const int workers : {0, 2}) {
    const data::LoaderOptions options{.batch_size = 2, .workers = workers, .device = cpu()};
    const data::Loader uneven(Uneven{}, options), broken(Uneven{1}, options);
    data::Epoch first = uneven.epoch(0);
    const int line = __LINE__ - 1;
    data::Batch batch;
    const std::string message = message_of(kShape, [&] { first.next(batch); });
    expect_words(message, "layers.cpp:" + std::to_string(line) + ")");
    data::Epoch second = broken.epoch(0);
    const std::string other = message_of(kShape, [&] { second.next(batch); });
    expect_words(other, "reshape:");
    expect_words(other, "layers.cpp:" + std::to_string(Uneven::kBrokenLine) + ")");
  }
}

TEST(Files, name_the_line_of_the_caller) {
  nn::Linear linear(2, 1, {.device = cpu()});
  optim::Sgd sgd;
  const std::string nowhere = "/nowhere/file";
  expect_errors({
      {ErrorKind::io, "safetensors: cannot open /nowhere/file: No such file",
       [&] { io::Safetensors file(nowhere); }},
      {ErrorKind::io, "cannot open", [&] { io::read_safetensors(nowhere); }},
      {ErrorKind::io, "cannot open", [&] { io::load(linear, nowhere); }},
      {ErrorKind::io, "cannot open", [&] { io::read_checkpoint(nowhere); }},
      {ErrorKind::io, "cannot open", [&] { io::load_checkpoint(nowhere, linear, sgd); }},
      {ErrorKind::io, "write_file: cannot create a file beside /nowhere/file: No such file",
       [&] { io::write_file(nowhere, {"text"}); }},
      {ErrorKind::io, "cannot create", [&] { io::check_writable(nowhere); }},
      {ErrorKind::io, "cannot create", [&] { io::save(linear, nowhere); }},
      {ErrorKind::io, "cannot create", [&] { io::save_checkpoint(nowhere, linear, sgd, {}); }},
      {kValue, "checkpoint: epoch is -1 and step 0; they must not be negative",
       [&] { io::save_checkpoint(nowhere, linear, sgd, {.epoch = -1}); }},
      {kValue, "safetensors: cannot write two tensors called \"a\"",
       [&] {
         io::write_safetensors(nowhere, {{"a", filled({})}, {"a", filled({})}});
       }},
      {kValue, "safetensors: cannot write \"b\": the tensor is undefined",
       [&] {
         io::write_safetensors(nowhere, {{"b", Tensor()}});
       }},
      {kValue, "safetensors: no tensor can be called __metadata__",
       [&] {
         io::write_safetensors(nowhere, {{"__metadata__", filled({})}});
       }},
      {kValue, "safetensors: cannot write two metadata with the key \"k\"",
       [&] {
         io::write_safetensors(nowhere, {}, {{"k", "1"}, {"k", "2"}});
       }},
  });
}

TEST(Training, names_the_line_of_the_caller) {
  train::Average average;
  const train::Interrupt interrupt;
  expect_errors({
      {kValue, "interrupt: another one lives; keep one per process", [] { train::Interrupt(); }},
      {kValue, "a tensor is undefined", [&] { average.add(Tensor()); }},
  });
}

}  // namespace
}  // namespace fornax
