// Modules and whole runs, saved and taken up again.
#include <fornax/fornax.h>

#include <filesystem>

#include "tests/errors.h"

namespace fornax {
namespace {

struct Net {
  nn::Linear first, last;
  explicit Net(Device device) : first(3, 4, {.device = device}), last(4, 2, {.device = device}) {}
  Tensor operator()(const Tensor& x) const { return last(relu(first(x))); }
  FORNAX_FIELDS(first, last)
};

struct Folder {
  std::string path;
  Folder() {
    std::string name = "/tmp/fornax-run-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

Device training() { return Device("cpu").autodiff(); }

void step(Net& net, optim::Adam& adam, int number) {
  const Tensor x = arange(6).cast(DType::f32).reshape({2, 3}) * (0.1 * (number + 1));
  mse_loss(net(x), zeros({2, 2})).backward();
  adam.step(net);
}

std::vector<float> values(const Net& net) {
  std::vector<float> all;
  for (const Tensor& tensor : parameters(net)) {
    const auto part = tensor.to_vector<float>();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Checkpoint, C145_resumed_run_equals_the_uninterrupted_one) {
  const Folder folder;
  const std::string path = folder.path + "/run";
  Device("cpu").seed(1);
  Net straight(training());
  optim::Adam adam;
  Net net = straight.train();
  optim::Adam resumed;
  uintmax_t size = 0;
  for (int restart = 0; restart < 5; restart++) {
    step(straight, adam, restart);
    step(net, resumed, restart);
    io::save_checkpoint(path, net, resumed, {.epoch = 2, .step = restart, .seed = 7});
    if (restart > 0) {
      EXPECT_EQ(std::filesystem::file_size(path), size);
    }
    size = std::filesystem::file_size(path);

    Device("cpu").seed(uint64_t(100 + restart));
    net = Net(training());
    resumed = optim::Adam();
    const io::RunState run = io::load_checkpoint(path, net, resumed);
    EXPECT_EQ(run.epoch, 2);
    EXPECT_EQ(run.step, restart);
    EXPECT_EQ(run.seed, 7u);
    EXPECT_EQ(resumed.state().size(), parameters(net).size() * 3);
    EXPECT_EQ(values(net), values(straight));
  }
}

TEST(Checkpoint, other_files_are_refused) {
  const Folder folder;
  const std::string path = folder.path + "/model";
  const Net net(training());
  io::save(net, path);
  expect_words(message_of(ErrorKind::io, [&] { io::read_checkpoint(path); }),
               "checkpoint: " + path + " holds tensors but is not a checkpoint; load() reads it");
}

TEST(Checkpoint, numbers_that_are_none_or_too_large_are_refused) {
  const Folder folder;
  const std::string path = folder.path + "/run";
  const auto refusal = [&](const std::string& key, const std::string& value) {
    io::Metadata metadata = {{"format", "fornax-checkpoint-1"},
                             {"epoch", "1"},
                             {"step", "2"},
                             {"seed", "3"},
                             {"random_seed", "4"},
                             {"random_counter", "5"}};
    for (auto& [name, number] : metadata) {
      if (name == key) number = value;
    }
    io::write_safetensors(path, {}, metadata);
    return message_of(ErrorKind::io, [&] { io::read_checkpoint(path); });
  };
  expect_words(refusal("epoch", "18446744073709551615"),
               "checkpoint: " + path + " has the epoch 18446744073709551615, which is too large");
  expect_words(refusal("step", "9223372036854775808"),
               "has the step 9223372036854775808, which is");
  expect_words(refusal("step", "-1"), "has the step \"-1\", which is not a number");
  expect_words(refusal("seed", ""), "has the seed \"\", which is not a number");
  expect_words(refusal("random_counter", "1e3"), "has the random_counter \"1e3\", which is not");
}

// A user's optimizer, which knows nothing of sites.
struct Counting {
  int64_t steps = 0;
  State state() const { return {{"steps", full({}, steps, {.dtype = DType::i64})}}; }
  void load_state(const State& state) { steps = find(state, "steps")->item<int64_t>(); }
};

TEST(Checkpoint, takes_any_optimizer) {
  const Folder folder;
  const std::string path = folder.path + "/run";
  Net net(training());
  Counting optimizer{7}, other;
  io::save_checkpoint(path, net, optimizer, {});
  io::load_checkpoint(path, net, other);
  EXPECT_EQ(other.steps, 7);
}

TEST(Checkpoint, options_of_the_program_come_back) {
  const Folder folder;
  const std::string path = folder.path + "/run";
  Net net(training());
  optim::Adam adam;
  const io::Metadata options = {{"batch", "32"}, {"format", "of pictures"}};
  io::save_checkpoint(path, net, adam, {.epoch = INT64_MAX, .options = options});
  const io::RunState run = io::load_checkpoint(path, net, adam);
  EXPECT_EQ(run.options, options);
  EXPECT_EQ(run.epoch, INT64_MAX);
}

struct Noisy {
  nn::Linear linear;
  nn::Dropout dropout;
  explicit Noisy(Device device) : linear(4, 3, {.device = device}), dropout(0.5, device) {}
  Tensor operator()(const Tensor& x) const { return dropout(linear(x)); }
  FORNAX_FIELDS(linear, dropout)
};

void train(Noisy& net, optim::Adam& adam, int steps) {
  for (int step = 0; step < steps; step++) {
    net(ones({8, 4}, {.device = Device("cpu")})).square().sum().backward();
    adam.step(net);
  }
}

TEST(Checkpoint, a_resumed_run_drops_what_the_straight_one_would) {
  const Folder folder;
  const std::string path = folder.path + "/run";
  Device("cpu").seed(1);
  Noisy net(training());
  optim::Adam adam;
  train(net, adam, 3);
  io::save_checkpoint(path, net, adam, {.step = 3});
  const RandomState middle = random_state(Device("cpu"));
  train(net, adam, 4);
  EXPECT_NE(random_state(Device("cpu")), middle);

  Device("cpu").seed(99);
  Noisy resumed(training());
  optim::Adam other;
  io::load_checkpoint(path, resumed, other);
  EXPECT_EQ(random_state(Device("cpu")), middle);
  train(resumed, other, 4);
  EXPECT_EQ(resumed.linear.weight.to_vector<float>(), net.linear.weight.to_vector<float>());
  EXPECT_EQ(resumed.linear.bias.to_vector<float>(), net.linear.bias.to_vector<float>());
  EXPECT_EQ(random_state(Device("cpu")), random_state(training()));
}

TEST(Modules, saved_and_loaded_strictly) {
  const Folder folder;
  const std::string path = folder.path + "/model";
  const Net net{Device("cpu")};
  io::save(net, path, {{"kind", "test"}});
  Net other{Device("cpu")};
  EXPECT_TRUE(io::load(other, path).ok());
  EXPECT_EQ(values(other), values(net));
  EXPECT_EQ(io::Safetensors(path).metadata("kind"), "test");

  nn::Linear single(3, 5);
  try {
    io::load(single, path);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* words : {"missing: bias, weight", "unexpected: first.weight"}) {
      EXPECT_NE(text.find(words), text.npos) << text;
    }
  }
}

}  // namespace
}  // namespace fornax
