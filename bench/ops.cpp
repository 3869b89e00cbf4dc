// What an op costs, and an epoch of the demo; against the peers of ./do peers where they are
// installed, ours and theirs in turns so that the machine's moods meet both.
//
//   ops [--json] [--steps N] [--rounds R]
//
//   record          recording one add of large tensors, not running it
//   flush_cached    running ten recorded ops of 1,000 elements whose plan is known
//   small_add       one add of 16 f32, each of its own
//   small_add_chain the same, each of the last one's result
//   small_add_eager as small_add, on device.eager()
//   cnn_epoch       an epoch of the demo's model on Fashion-MNIST, from N steps (30)
//
// --json prints one object a line: name, value, unit; with a peer also peer (the fastest),
// peer_value, ratio (ours to theirs), bar (the largest ratio we allow) and ok.
#include <fmt/core.h>
#include <fornax/fornax.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/common/work.h"
#include "cli/fashion.h"

namespace {

using namespace fornax;
using bench::median, bench::seconds;

struct Arguments {
  bool json = false;
  int steps = 30, rounds = 3;
};

// ── Ours ─────────────────────────────────────────────────────────────────────────────────────────
constexpr int kChain = 1000, kChains = 1000, kWarmUp = 3;

// Nanoseconds per add: the median of `kChains` times a thousand, since whoever else runs on the
// machine takes a processor away for far longer than a thousand adds last.
double per_add(const std::function<double()>& time_of_thousand) {
  std::vector<double> times;
  for (int i = -kWarmUp; i < kChains; i++) {
    const double time = time_of_thousand();
    if (i >= 0) times.push_back(time);
  }
  return median(times) / kChain * 1e9;
}
double time_of(const std::function<void()>& work) {
  const double begin = seconds();
  work();
  return seconds() - begin;
}

double record() {
  const Tensor a = uniform({2000}).contiguous(), b = uniform({2000}).contiguous();
  const Device device;
  device.sync();
  return per_add([&] {
    Tensor y = a;
    const double time = time_of([&] {
      for (int k = 0; k < kChain; k++) y = y + b;
    });
    y = Tensor();
    device.flush();  // nobody can read the results: nothing runs
    return time;
  });
}

double flush_cached() {
  const Device device;
  const Tensor a = uniform({1000}).contiguous();
  device.sync();
  std::vector<double> times;
  for (int i = -kWarmUp; i < 500; i++) {
    Tensor y = a;
    for (int k = 0; k < 10; k++) y = k % 2 ? y + a : y * 0.5;
    const double begin = seconds();
    device.flush();
    if (i >= 0) times.push_back(seconds() - begin);
  }
  return median(times) * 1e9;
}

double small_add(Device device) {
  const Tensor a = uniform({16}, 0, 1, {.device = device}).contiguous();
  const Tensor b = uniform({16}, 0, 1, {.device = device}).contiguous();
  device.sync();
  return per_add([&] {
    return time_of([&] {
      for (int i = 0; i < kChain; i++) const Tensor y = a + b;
    });
  });
}

double small_add_chain() {
  const Tensor a = uniform({16}).contiguous(), b = uniform({16}).contiguous();
  Device().sync();
  return per_add([&] {
    return time_of([&] {
      Tensor y = a;
      for (int i = 0; i < kChain; i++) y = y + b;
      Device().flush();
    });
  });
}

// The time of a step, batches and the reading of the loss included, times the steps of an epoch.
double cnn_epoch(int steps) {
  const Device device;
  device.seed(0);
  data::Loader loader(data::fashion_mnist("train"),
                      {.batch_size = 128, .shuffle = true, .drop_last = true, .device = device});
  fashion::Net net(device.autodiff());
  optim::Adam adam({.learning_rate = 1e-3});
  std::vector<double> times;
  double begin = seconds();
  for (const data::Batch& batch : loader.epoch(0)) {
    const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
    loss.backward();
    adam.step(net);
    (void)loss.item<float>();
    const double end = seconds();
    times.push_back(end - begin);
    begin = end;
    if (int(times.size()) == steps + kWarmUp) break;
  }
  times.erase(times.begin(), times.begin() + kWarmUp);
  return median(times) * double(loader.batches());
}

// ── Theirs ───────────────────────────────────────────────────────────────────────────────────────
struct Peer {
  std::string name, command;
};

// The installed ones.
std::vector<Peer> peers() {
  const std::string home = "build/peers/", python = home + "venv/bin/python";
  std::vector<Peer> list;
  for (const char* name : {"torch", "jax"}) {
    // Both share the environment; one that is not installed there fails and prints no figure.
    if (std::filesystem::exists(python)) {
      list.push_back({name, fmt::format("{} bench/peers/peer_{}.py", python, name)});
    }
  }
  for (const char* name : {"burn", "candle"}) {
    const std::string program = fmt::format("{}target/release/peer-{}", home, name);
    if (std::filesystem::exists(program)) list.push_back({name, program});
  }
  return list;
}

// The figures that one run of a peer prints; none where it fails.
std::map<std::string, double> run_peer(const Peer& peer, const std::string& arguments) {
  std::map<std::string, double> figures;
  std::FILE* output = popen((peer.command + " " + arguments + " 2>/dev/null").c_str(), "r");
  if (!output) return figures;
  char line[512];
  while (std::fgets(line, sizeof line, output)) {
    const auto figure = nlohmann::json::parse(line, nullptr, false);
    if (figure.is_object()) figures[figure.value("name", "")] = figure.value("value", 0.0);
  }
  if (pclose(output) != 0) figures.clear();
  return figures;
}

// ── Together ─────────────────────────────────────────────────────────────────────────────────────
struct Ours {
  std::string name, unit;
  std::function<double()> measure;
  std::optional<double> bar;  // none: no peer has the like
};

// Figures that one run of a peer gives together.
struct Work {
  std::string arguments;
  std::vector<Ours> figures;
};

using Samples = std::map<std::string, std::map<std::string, std::vector<double>>>;  // figure, peer

void print(const Ours& ours, double value, const Samples& samples, bool json) {
  nlohmann::ordered_json row{{"name", ours.name}, {"value", value}, {"unit", ours.unit}};
  const auto theirs = samples.find(ours.name);
  if (ours.bar && theirs != samples.end()) {
    std::string fastest;
    double best = 0;
    for (const auto& [peer, values] : theirs->second) {
      const double time = median(values);
      if (fastest.empty() || time < best) fastest = peer, best = time;
    }
    row.update({{"peer", fastest},
                {"peer_value", best},
                {"ratio", value / best},
                {"bar", *ours.bar},
                {"ok", value <= *ours.bar * best}});
  }
  if (json) {
    std::printf("%s\n", row.dump().c_str());
  } else {
    std::string text = fmt::format("{:16} {:12.2f} {}", ours.name, value, ours.unit);
    if (row.contains("peer")) {
      text += fmt::format("   {} {:.2f}, ratio {:.2f}", row["peer"].get<std::string>(),
                          row["peer_value"].get<double>(), row["ratio"].get<double>());
    }
    std::printf("%s\n", text.c_str());
  }
  std::fflush(stdout);
}

void run(const Work& work, const std::vector<Peer>& others, const Arguments& options) {
  std::map<std::string, std::vector<double>> mine;
  Samples theirs;
  for (int round = 0; round < options.rounds; round++) {
    for (const Ours& figure : work.figures) mine[figure.name].push_back(figure.measure());
    if (work.arguments.empty()) continue;
    for (const Peer& peer : others) {
      for (const auto& [name, value] : run_peer(peer, work.arguments)) {
        theirs[name][peer.name].push_back(value);
      }
    }
  }
  for (const Ours& figure : work.figures) {
    print(figure, median(mine[figure.name]), theirs, options.json);
  }
}

Arguments parse(int count, char** arguments) {
  Arguments options;
  for (int i = 1; i < count; i++) {
    const std::string_view option = arguments[i];
    int* number = option == "--steps"    ? &options.steps
                  : option == "--rounds" ? &options.rounds
                                         : nullptr;
    if (option == "--json") {
      options.json = true;
    } else if (number && i + 1 < count) {
      *number = std::max(1, std::atoi(arguments[++i]));
    } else {
      std::fprintf(stderr, "usage: ops [--json] [--steps N] [--rounds R]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Arguments options = parse(count, arguments);
  const std::vector<Peer> others = peers();
  if (others.empty())
    std::fprintf(stderr, "ops: no peers in build/peers; run ./do peers for them\n");
  const std::vector<Work> works = {
      {"", {{"record", "ns", record, {}}, {"flush_cached", "ns", flush_cached, {}}}},
      {"--work small_add --repeat 3",
       {{"small_add", "ns", [] { return small_add(Device()); }, 1.0},
        {"small_add_chain", "ns", small_add_chain, 1.0},
        {"small_add_eager", "ns", [] { return small_add(Device().eager()); }, {}}}},
      {fmt::format("--work cnn_epoch --steps {}", options.steps),
       {{"cnn_epoch", "s", [&] { return cnn_epoch(options.steps); }, 1.0}}},
  };
  try {
    for (const Work& work : works) run(work, others, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "ops: %s\n", error.what());
    return 1;
  }
}
