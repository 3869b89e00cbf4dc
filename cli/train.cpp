// fornax train fashion-mnist: the whole path, from files of pictures to a saved and checked model.
// Two runs with one seed print the same numbers, also when the second was stopped and resumed.
#include <fornax/fornax.h>

#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/fashion.h"

namespace cli {
namespace {

using namespace fornax;

constexpr int64_t kTestBatch = 500;

// The share of pictures whose class the model names.
double accuracy(const fashion::Net& net, const data::Loader& loader) {
  Tensor right;
  for (const data::Batch& batch : loader.epoch(0)) {
    const Tensor hits = (net(batch.inputs).argmax(1) == batch.targets).sum();
    right = right.defined() ? right + hits : hits;
    hits.device().flush();
  }
  return double(right.item<int64_t>()) / double(loader.examples());
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", share * 100);
  return text;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// What the meaning of a step depends on, by the names of the program's options.
io::Metadata what_counts(const TrainOptions& o) {
  return {{"seed", std::to_string(o.seed)},
          {"batch", std::to_string(o.batch)},
          {"epochs", std::to_string(o.epochs)},
          {"lr", text_of(o.learning_rate)}};
}

// One run: model, optimizer, where it stands, and what ends it early.
class Run {
 public:
  explicit Run(const TrainOptions& o)
      : options_(o),
        device_(o.device.empty() ? Device() : Device(o.device)),
        train_(data::fashion_mnist("train", o.data), {.batch_size = o.batch,
                                                      .shuffle = true,
                                                      .seed = o.seed,
                                                      .workers = o.workers,
                                                      .device = device_}),
        test_pictures_(data::fashion_mnist("test", o.data)),
        test_(test_pictures_, {.batch_size = kTestBatch, .workers = o.workers, .device = device_}),
        net_(seeded().autodiff()),
        adam_({.learning_rate = o.learning_rate}),
        rate_{.peak = o.learning_rate, .total = o.epochs * train_.batches()} {}

  int operator()() {
    io::check_writable(options_.save);
    io::check_writable(checkpoint_path());
    std::printf("%s\n%s", device_.autodiff().describe().c_str(), summary(net_).c_str());
    std::fflush(stdout);
    if (options_.resume) resume();
    while (state_.epoch < options_.epochs) {
      if (!train_epoch()) return stopped();
      state_.epoch++;
      std::printf("epoch %ld: %s of the test pictures\n", long(state_.epoch),
                  percent(accuracy(net_.valid(), test_)).c_str());
      std::fflush(stdout);
      checkpoint();
    }
    return finish();
  }

 private:
  Device seeded() const {
    device_.seed(options_.seed);
    return device_;
  }
  std::string checkpoint_path() const { return options_.save + ".checkpoint"; }
  void checkpoint() { io::save_checkpoint(checkpoint_path(), net_, adam_, state_); }

  void resume() {
    if (access(checkpoint_path().c_str(), F_OK) != 0) {
      std::printf("no checkpoint at %s; starting anew\n", checkpoint_path().c_str());
      return;
    }
    const io::RunState found = io::load_checkpoint(checkpoint_path(), net_, adam_);
    compare(found.options, state_.options);
    state_ = found;
    std::printf("resuming after step %ld\n", long(state_.step));
  }

  static void compare(const io::Metadata& found, const io::Metadata& given) {
    for (const auto& [name, value] : given) {
      std::string theirs = "another version";
      for (const auto& [their_name, their_value] : found) {
        if (their_name == name) theirs = "--" + name + " " + their_value;
      }
      if (theirs == "--" + name + " " + value) continue;
      throw Error(ErrorKind::value, "resume: the checkpoint was made with " + theirs +
                                        ", and this run has --" + name + " " + value +
                                        "; give the same, or another --save");
    }
  }

  bool must_stop() const {
    return interrupt_.requested() || (options_.steps > 0 && state_.step >= options_.steps);
  }

  // False when it was stopped within the epoch.
  bool train_epoch() {
    train::Progress progress("epoch " + std::to_string(state_.epoch + 1), train_.examples());
    train::Average loss, right;
    int64_t done = 0, position = state_.epoch * train_.batches();
    const auto note = [&] {
      char text[64];
      std::snprintf(text, sizeof text, "loss %.4f  accuracy %s", loss.value(),
                    percent(right.value()).c_str());
      return std::string(text);
    };
    for (const data::Batch& batch : train_.epoch(state_.epoch)) {
      const int64_t count = batch.targets.shape(0);
      done += count;
      if (position++ < state_.step) continue;  // done before the run was stopped
      if (must_stop()) return false;
      step(batch, loss, right);
      if (progress.due()) progress.show(done, note());
    }
    progress.finish(done, note());
    return true;
  }

  void step(const data::Batch& batch, train::Average& loss, train::Average& right) {
    const Tensor logits = net_(batch.inputs);
    const Tensor cost = cross_entropy(logits, batch.targets);
    cost.backward();
    const double count = double(batch.targets.shape(0));
    loss.add(cost, count);
    right.add((logits.argmax(1) == batch.targets).cast(DType::f32).mean(), count);
    adam_.options.learning_rate = rate_(state_.step);
    adam_.step(net_);
    state_.step++;
  }

  int stopped() {
    checkpoint();
    std::printf("stopped after step %ld; go on with --resume (%s)\n", long(state_.step),
                checkpoint_path().c_str());
    return 0;
  }

  // Saves, loads into a fresh model and shows that nothing was lost.
  int finish() {
    const fashion::Net trained = net_.valid();
    const double before = accuracy(trained, test_);
    io::save(trained, options_.save);
    fashion::Net loaded(device_);
    io::load(loaded, options_.save);
    const double after = accuracy(loaded, test_);
    std::printf("saved %s; loaded again, it names %s of the test pictures: %s\n",
                options_.save.c_str(), percent(after).c_str(),
                after == before ? "identical" : "NOT identical");
    show_some(loaded);
    return after == before ? 0 : 1;
  }

  void show_some(const fashion::Net& net) const {
    const std::vector<int64_t> positions = {0, 1, 12, 23, 68};
    const data::Batch batch = test_pictures_.batch(positions, device_);
    const auto guesses = net(batch.inputs).argmax(1).to_vector<int64_t>();
    const auto classes = data::fashion_mnist_classes();
    std::vector<Caption> captions;
    for (size_t i = 0; i < positions.size(); i++) {
      const size_t truth = test_pictures_.labels[size_t(positions[i])];
      const bool good = size_t(guesses[i]) == truth;
      std::string text = classes[size_t(guesses[i])];
      if (!good) text += std::string(", is ") + classes[truth];
      captions.push_back({positions[i], text, good});
    }
    draw(test_pictures_, captions);
  }

  const TrainOptions& options_;
  Device device_;
  data::Loader train_;
  data::Pictures test_pictures_;
  data::Loader test_;
  fashion::Net net_;
  optim::Adam adam_;
  optim::Cosine rate_;
  io::RunState state_{.seed = options_.seed, .options = what_counts(options_)};
  train::Interrupt interrupt_;
};

}  // namespace

int train_fashion_mnist(const TrainOptions& options) { return Run(options)(); }

}  // namespace cli
