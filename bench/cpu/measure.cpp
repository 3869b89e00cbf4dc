// Rounds of all parties in turns, results compared, and the bars held against the times.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "bench/cpu/cpu.h"

namespace bench {
namespace {

constexpr double kPatience = 300;  // seconds until an answer counts as lost
const std::string kOurs = "fornax", kOwn = "without_onednn";

void note(const std::string& text) { std::fprintf(stderr, "cpu: %s\n", text.c_str()); }

// ── Comparing ────────────────────────────────────────────────────────────────────────────────────
constexpr double kTolerance = 2e-5, kTrainingTolerance = 1e-3;
// Rounding moves some activations of a deep net past the kink of relu; gradients of f32 are then
// off from those of f64 by up to 0.06, PyTorch's and JAX's as ours.
constexpr double kDeepTolerance = 0.1;

double tolerance_of(const Row& row) {
  if (check_calls(row.op) > 1 || row.op == "resnet18") return kTrainingTolerance;
  if (row.op == "resnet18_grad") return kDeepTolerance;
  const bool long_sums =
      row.flops > 0 || row.op.starts_with("sum") || row.op.ends_with("_norm_grad");
  return kTolerance * (long_sums ? 5 : 1);
}

// The largest difference of two summaries in units of the tolerance: of elements relative to their
// size and the root of the mean square.  What is no number (null in JSON) is infinitely far off.
double deviation(const Json& ours, const Json& theirs, double tolerance) {
  const auto number = [](const Json& value) {
    return value.is_number() ? value.get<double>() : std::nan("");
  };
  const double count = number(theirs["count"]);
  if (number(ours["count"]) != count) return INFINITY;
  const double root = std::sqrt(number(theirs["squares"]) / count), size = root > 0 ? root : 1e-30;
  double most = 0;
  const auto meet = [&](double difference) {
    most = difference <= most ? most : std::isnan(difference) ? INFINITY : difference;
  };
  const Json &a = ours["samples"], &b = theirs["samples"];
  for (size_t i = 0; i < b.size(); i++) {
    meet(std::abs(number(a[i]) - number(b[i])) / (std::abs(number(b[i])) + size));
  }
  meet(std::abs(number(ours["sum"]) - number(theirs["sum"])) / (count * size));
  meet(std::abs(number(ours["squares"]) - number(theirs["squares"])) / (4 * count * size * size));
  return most / tolerance;
}

double deviation_of_all(const Json& ours, const Json& theirs, double tolerance) {
  if (ours.size() != theirs.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < ours.size(); i++) {
    most = std::max(most, deviation(ours[i], theirs[i], tolerance));
  }
  return most;
}

// ── Printing ─────────────────────────────────────────────────────────────────────────────────────
void print_line(const Json& result) {
  std::string text = fmt::format("{:34}", result["name"].get<std::string>());
  if (result.contains("error")) {
    text += " " + result["error"].get<std::string>();
  } else {
    text += fmt::format(" {:12.4f} {}", result["value"].get<double>(),
                        result["unit"].get<std::string>());
    if (result.contains("peer")) {
      text += fmt::format("   {} {:.4f}, ratio {:.2f} of {:.2f}", result["peer"].get<std::string>(),
                          result["peer_value"].get<double>(), result["ratio"].get<double>(),
                          result["bar"].get<double>());
    }
    for (const char* key : {"gbps", "of_copy", "gflops", "of_peak"}) {
      if (result.contains(key)) text += fmt::format("   {} {:.2f}", key, result[key].get<double>());
    }
    if (result.contains("ok")) text += result["ok"].get<bool>() ? "   ok" : "   NOT OK";
  }
  std::printf("%s\n", text.c_str());
}

// Five digits say all that a time does.
double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────
using Times = std::map<std::string, double>;  // seconds of a call, by party

class Measurement {
 public:
  Measurement(std::string self, int threads, const Arguments& arguments)
      : self_(std::move(self)),
        threads_(threads),
        arguments_(arguments),
        parties_(parties(self_, threads)),
        reference_("reference", {self_, "--serve", kOurs, "--device", "reference"}) {}

  void measure(const Row& row) {
    Json result{{"name", fmt::format("{}/t{}", row.name(), threads_)}};
    Json found = Json::object();
    try {
      const Times times = row.fresh ? fresh(row) : rounds(row, found);
      fill(row, times, result);
    } catch (const std::exception& error) {
      result.update({{"error", error.what()}, {"ok", false}});
    }
    result.update(found);
    if (arguments_.json) {
      std::printf("%s\n", result.dump().c_str());
    } else {
      print_line(result);
    }
    std::fflush(stdout);
  }

 private:
  bool invited(const Party& party, const Row& row) const {
    if (party.name == kOurs) return true;
    if (party.name == kOwn) return row.op.starts_with("matmul");
    if (party.name == "compile") return row.compiled;
    return !row.is_floor() && row.op != "fork_join";
  }

  struct Plan {
    int samples, calls;
  };

  // What a party takes: seconds of a call, by the wall's clock and of processors.
  struct Spent {
    std::vector<double> wall, processor;
  };

  // Of each party that takes part, the seconds of a call.
  Times rounds(const Row& row, Json& found) {
    std::vector<Party*> present = prepare(row, found);
    const double slice = arguments_.quick ? 0.04 : 0.25;
    std::map<Party*, Plan> plans;
    double of_a_round = 0;  // seconds that one call of each takes
    each(present, row, [&](Party& party) {
      double once = run(party, {1, 1});
      if (once < slice) once = run(party, {3, 1});
      const int calls = std::max(1, int(2e-4 / std::max(1e-7, once)));
      plans[&party] = {std::clamp(int(slice / (once * calls)), 1, 200), calls};
      of_a_round += once;
    });
    const int rounds = (arguments_.quick ? 5 : 9) - (of_a_round > 2 ? 2 : 0);
    std::map<Party*, Spent> spent;
    for (int round = 0; round < rounds; round++) {
      each(present, row, [&](Party& party) {
        const Plan plan = plans[&party];
        const double before = party.processor_seconds();
        spent[&party].wall.push_back(run(party, plan));
        const double used = party.processor_seconds() - before;
        spent[&party].processor.push_back(used / (plan.samples * plan.calls));
      });
    }
    Times medians;
    for (Party* party : present) {
      medians[party->name] = median(spent[party].wall);
      found["cpu"][party->name] = rounded(median(spent[party].processor) * row.scale);
      (void)party->ask("drop", kPatience);
    }
    return medians;
  }

  // Calls `body` with each; a peer that fails is left out from then on.
  template <class Body>
  void each(std::vector<Party*>& present, const Row& row, Body body) {
    std::erase_if(present, [&](Party* party) {
      try {
        body(*party);
        return false;
      } catch (const std::exception& error) {
        if (party->name == kOurs) throw;
        note(row.name() + ": " + error.what() + "; left out");
        return true;
      }
    });
  }

  double run(Party& party, Plan plan) {
    const Json answer = party.ask(fmt::format("run {} {}", plan.samples, plan.calls), kPatience);
    if (answer.contains("seconds")) return answer["seconds"].get<double>();
    throw std::runtime_error(party.name + ": " + answer.value("error", "no time"));
  }

  // Has the row made by all, who do so side by side, and compares what they compute with the first
  // peer's; those that are wrong are left out, and of ours it is an error.
  std::vector<Party*> prepare(const Row& row, Json& found) {
    std::string request = "make " + row.op;
    for (const int64_t size : row.shape) request += " " + std::to_string(size);
    std::vector<Party*> asked, present;
    for (Party& party : parties_) {
      if (invited(party, row)) asked.push_back(&party);
    }
    for (Party* party : asked) party->send(request);
    std::map<Party*, Json> outputs;
    std::string failure;  // ours; all have to answer first
    for (Party* party : asked) {
      const Json answer = party->receive(kPatience);
      if (answer.contains("outputs")) {
        outputs[party] = answer["outputs"];
        present.push_back(party);
      } else if (answer.contains("error")) {
        const std::string text = party->name + ": " + answer["error"].get<std::string>();
        if (party->name == kOurs) failure = text;
        note(row.name() + ": " + text);
      }
    }
    if (!failure.empty()) throw std::runtime_error(failure);
    const Json expected = expectation(row, request, present, outputs);
    if (expected.empty()) return present;
    const double tolerance = tolerance_of(row);
    std::erase_if(present, [&](Party* party) {
      const bool ours = party->name == kOurs || party->name == kOwn;
      const double off =
          deviation_of_all(outputs[party], expected, ours ? tolerance : 5 * tolerance);
      if (party->name == kOurs) found["off"] = rounded(off);
      if (off <= 1) return false;
      const std::string text =
          fmt::format("{}: the result is off by {:.3g} tolerances", party->name, off);
      if (ours) throw std::runtime_error(text);
      note(row.name() + ": " + text + "; left out");
      return true;
    });
    return present;
  }

  // What the first peer computed; without one, the reference backend where it is quick enough.
  Json expectation(const Row& row, const std::string& request, const std::vector<Party*>& present,
                   std::map<Party*, Json>& outputs) {
    for (Party* party : present) {
      if (party->name != kOurs && party->name != kOwn) return outputs[party];
    }
    const bool model = check_calls(row.op) > 1 || row.op.starts_with("resnet18");
    if (outputs[present[0]].empty() || model || row.flops > 1e9) return Json::array();
    const Json answer = reference_.ask(request, kPatience);
    reference_.end();
    return answer.value("outputs", Json::array());
  }

  // Seconds from the start of a process to its first result, without those that inputs took.
  Times fresh(const Row& row) {
    std::string request = "first " + row.op;
    for (const int64_t size : row.shape) request += " " + std::to_string(size);
    Times times;
    for (const Party& party : parties_) {
      if (party.name == kOwn || party.name == "compile") continue;
      std::vector<double> samples;
      // Ours are milliseconds and need more samples than the seconds of others.
      for (int i = 0; i < (party.name == kOurs ? 9 : arguments_.quick ? 1 : 3); i++) {
        Party one(party.name, party.command, party.environment);
        const double begin = seconds();
        const Json answer = one.ask(request, kPatience);
        if (!answer.contains("making")) break;
        samples.push_back(seconds() - begin - answer["making"].get<double>());
      }
      if (!samples.empty()) times[party.name] = median(samples);
    }
    if (!times.contains(kOurs)) throw std::runtime_error("no result of a fresh process");
    return times;
  }

  void fill(const Row& row, const Times& times, Json& result) {
    const double spent = times.at(kOurs);
    Times peers;
    for (const auto& [name, time] : times) {
      if (name != kOurs && name != kOwn) peers[name] = time;
    }
    result.update({{"value", rounded(spent * row.scale)}, {"unit", row.unit}});
    if (times.contains(kOwn)) result[kOwn] = rounded(times.at(kOwn) * row.scale);
    for (const auto& [name, time] : peers) result["peers"][name] = rounded(time * row.scale);
    if (row.op.starts_with("floor_copy")) copy_ = std::max(copy_, row.bytes / spent);
    if (row.op == "floor_fma") peak_ = row.flops / spent;
    if (row.bytes > 0) result["gbps"] = rounded(row.bytes / spent / 1e9);
    if (row.bytes > 0 && copy_ > 0) result["of_copy"] = rounded(row.bytes / spent / copy_);
    if (row.flops > 0) result["gflops"] = rounded(row.flops / spent / 1e9);
    if (row.flops > 0 && peak_ > 0) result["of_peak"] = rounded(row.flops / spent / peak_);
    judge(row, spent, peers, result);
  }

  // The bar that is missed by most, and whether all hold.
  void judge(const Row& row, double spent, const Times& peers, Json& result) {
    const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
    std::optional<double> over;
    for (const Bar& bar : row.bars) {
      const auto peer = bar.peer.empty() ? std::min_element(peers.begin(), peers.end(), by_time)
                                         : peers.find(bar.peer);
      if (peer == peers.end()) continue;
      const double ratio = spent / peer->second;
      if (over && ratio / bar.ratio <= *over) continue;
      over = ratio / bar.ratio;
      result["peer"] = peer->first;
      result["peer_value"] = rounded(peer->second * row.scale);
      result["ratio"] = rounded(ratio);
      result["bar"] = rounded(bar.ratio);
    }
    if (row.most) {
      over = spent * row.scale / *row.most;
      result["most"] = *row.most;
    }
    if (!over) return;
    result["over"] = rounded(*over);
    result["ok"] = *over <= 1;
  }

  const std::string self_;
  const int threads_;
  const Arguments& arguments_;
  std::vector<Party> parties_;
  Party reference_;
  double copy_ = 0, peak_ = 0;  // bytes and operations a second, once measured
};

bool wanted(const Row& row, const Arguments& arguments) {
  if (arguments.rows.empty() || row.is_floor()) return true;
  return std::any_of(arguments.rows.begin(), arguments.rows.end(),
                     [&](const std::string& prefix) { return row.name().starts_with(prefix); });
}

}  // namespace

void measure(const std::string& self, const Arguments& arguments) {
  const double begin = seconds();
  std::string left;
  for (const int threads : arguments.threads) {
    Measurement measurement(self, threads, arguments);
    for (const Row& row : rows()) {
      if (!wanted(row, arguments) || (threads == 1 && row.op == "fork_join")) continue;
      if (seconds() - begin < arguments.seconds) {
        measurement.measure(row);
      } else {
        left += fmt::format(" {}/t{}", row.name(), threads);
      }
    }
  }
  if (!left.empty()) note("out of time; not measured:" + left);
}

}  // namespace bench
