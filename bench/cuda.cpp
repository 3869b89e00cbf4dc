// What the CUDA backend does in a second, beside PyTorch, torch.compile, JAX and cuBLASLt.
//
//   cuda [--json] [--rows PREFIX,...] [--quick] [--seconds N] [--device NAME] [--tiny]
//   cuda --serve    answers lines of standard input with a JSON object each
//   cuda --first WORK   one piece of work in this fresh process, and the seconds since its start
//
// The first form runs bench/cuda_peers.py (its options are there), which starts the second and
// times the peers between, on the same inputs.  Lines that are served:
//
//   list                 the rows (bench/cuda/rows.cpp), as one array
//   run ROW sync N       microseconds of a call that is waited for, the median of N
//   run ROW batch N      microseconds of a call when one wait follows N
//   run ROW record N     nanoseconds of recording a call, not of running it, the median of N
//   check ROW            what it computes, in memory that was filled with NaN before, and the
//                        seconds of its first call
//   drop                 forgets the inputs of the last row
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/cuda/work.h"

namespace {

using namespace fornax;
using bench::median, bench::seconds;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::string device = "cuda:0", first;
  bool serve = false, tiny = false;
};

Json describe(const bench::Row& row) {
  Json json{{"name", row.name},   {"op", row.op},       {"dtype", row.dtype},
            {"shape", row.shape}, {"bytes", row.bytes}, {"flops", row.flops},
            {"ring", row.ring},   {"per", row.per},     {"check_calls", bench::check_calls(row.op)},
            {"peers", row.peers}};
  if (row.bar) json["bar"] = *row.bar;
  if (row.of_copy) json["of_copy"] = *row.of_copy;
  if (row.most) json["most"] = *row.most;
  return json;
}

// JSON has no NaN: it becomes null, which equals nothing.
Json describe(const bench::Summary& summary) {
  return {{"count", summary.count},
          {"sum", summary.sum},
          {"squares", summary.squares},
          {"samples", summary.samples}};
}

// ── A row, made ──────────────────────────────────────────────────────────────────────────────────
class Work {
 public:
  Work(const bench::Row& row, Device device)
      : row_(row), device_(device), call_(bench::make(row, device)), held_(size_t(row.ring)) {}

  const std::string& name() const { return row_.name; }

  double sync(int repeats) {
    return timed(repeats, 1e6, [&] {
      step();
      device_.sync();
    });
  }
  double batch(int repeats) {
    device_.sync();
    const double begin = seconds();
    for (int i = 0; i < repeats; i++) step();
    device_.sync();
    return (seconds() - begin) / repeats / row_.per * 1e6;
  }
  double record(int repeats) {
    std::vector<double> times;
    for (int i = 0; i < repeats; i++) {
      const double begin = seconds();
      std::vector<Tensor> results = call_(0);
      times.push_back(seconds() - begin);
      device_.sync();
    }
    return median(times) / row_.per * 1e9;
  }

  // What is computed, and the seconds of the first call.
  Json check() {
    double first = 0;
    const bench::Call call = [&](int turn) {
      const double begin = seconds();
      std::vector<Tensor> results = call_(turn);
      device_.sync();
      if (first == 0) first = seconds() - begin;
      return results;
    };
    Json all = Json::array();
    for (const Tensor& output : bench::checked(row_, call, device_)) {
      all.push_back(describe(bench::summary(output)));
    }
    return {{"name", row_.name}, {"outputs", all}, {"first", first}};
  }

 private:
  void step() {
    held_[turn_] = call_(int(turn_));
    turn_ = (turn_ + 1) % held_.size();
    device_.flush();
  }

  template <class Body>
  double timed(int repeats, double unit, Body body) {
    std::vector<double> times;
    for (int i = 0; i < repeats; i++) {
      const double begin = seconds();
      body();
      times.push_back(seconds() - begin);
    }
    return median(times) / row_.per * unit;
  }

  bench::Row row_;
  Device device_;
  bench::Call call_;
  std::vector<std::vector<Tensor>> held_;  // the last outputs, so that these take turns as well
  size_t turn_ = 0;
};

// ── Serving ──────────────────────────────────────────────────────────────────────────────────────
class Server {
 public:
  explicit Server(const Arguments& options)
      : device_(options.device), rows_(bench::rows(options.tiny)) {}

  Json answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, name, mode;
    int repeats = 1;
    words >> verb >> name >> mode >> repeats;
    if (verb == "list") return list();
    if (verb == "drop") return work_.reset(), Json{{"dropped", true}};
    try {
      if (verb == "check") return fresh(name).check();
      if (verb == "run") return {{"name", name}, {"value", run(name, mode, std::max(1, repeats))}};
    } catch (const std::exception& error) {
      return {{"name", name}, {"error", error.what()}};
    }
    return {{"error", "unknown request: " + line}};
  }

 private:
  Json list() const {
    Json all = Json::array();
    for (const bench::Row& row : rows_) all.push_back(describe(row));
    return {{"device", device_.describe()}, {"rows", all}};
  }

  double run(const std::string& name, const std::string& mode, int repeats) {
    Work& work = made(name);
    if (mode == "sync") return work.sync(repeats);
    if (mode == "batch") return work.batch(repeats);
    if (mode == "record") return work.record(repeats);
    throw std::runtime_error("modes are sync, batch and record");
  }

  Work& made(const std::string& name) {
    return work_ && work_->name() == name ? *work_ : fresh(name);
  }
  Work& fresh(const std::string& name) {
    work_.reset();
    device_.sync();
    for (const bench::Row& row : rows_) {
      if (row.name == name) return work_.emplace(row, device_);
    }
    throw std::runtime_error("no such row");
  }

  Device device_;
  std::vector<bench::Row> rows_;
  std::optional<Work> work_;
};

int serve(const Arguments& options) {
  Server server(options);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::printf("%s\n", server.answer(line).dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

// ── First ────────────────────────────────────────────────────────────────────────────────────────
// Work whose first run people wait for; `nothing` only starts the device and copies a few numbers.
int first(const Arguments& options, double begin) {
  const Device device(options.device);
  std::vector<Tensor> results;
  if (options.first == "nothing") {
    results = {from(std::vector<float>(1024, 1.0f), device)};
  } else {
    const std::string prefix = options.first == "matmul"   ? "matmul_nn/bf16"
                               : options.first == "chain8" ? "chain8/f32"
                                                           : options.first;
    for (bench::Row row : bench::rows(options.tiny)) {
      if (row.name.rfind(prefix, 0) != 0) continue;
      if (options.first == "matmul") row.shape = {1024, 1024, 1024};
      if (options.first == "chain8") row.shape = {1024, 1024};
      row.ring = 1;
      results = bench::make(row, device)(0);
      break;
    }
    if (results.empty()) throw std::runtime_error("no such work: " + options.first);
  }
  device.sync();
  const double spent = seconds() - begin;
  for (const Tensor& result : results) (void)result.to_vector<float>();
  std::printf("%s\n", Json{{"name", options.first}, {"seconds", spent}}.dump().c_str());
  return 0;
}

// The driver with this program's own options; comes back only where there is no Python.
int drive(int count, char** arguments) {
  const std::string own = "build/peers/venv/bin/python";
  std::string python = std::filesystem::exists(own) ? own : "python3";
  std::string script = "bench/cuda_peers.py", program = "--program";
  std::vector<char*> all = {python.data(), script.data(), program.data(), arguments[0]};
  for (int i = 1; i < count; i++) all.push_back(arguments[i]);
  all.push_back(nullptr);
  execvp(all[0], all.data());
  std::fprintf(stderr, "cuda: %s cannot be run; the peers need Python\n", python.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const double begin = seconds();
  Arguments options;
  for (int i = 1; i < count; i++) {
    const std::string_view option = arguments[i];
    if (option == "--serve") options.serve = true;
    if (option == "--tiny") options.tiny = true;
    if (option == "--device" && i + 1 < count) options.device = arguments[++i];
    if (option == "--first" && i + 1 < count) options.first = arguments[++i];
  }
  try {
    if (!options.first.empty()) return first(options, begin);
    return options.serve ? serve(options) : drive(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda: %s\n", error.what());
    return 1;
  }
}
