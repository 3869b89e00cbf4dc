// Modules and whole runs, saved and taken up again.
#include <fornax/fornax.h>
#include <gtest/gtest.h>

#include <filesystem>

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
  EXPECT_THROW(io::read_checkpoint(path), Error);
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
