// Modes speed and support: tables of all devices.
#include <fmt/core.h>
#include <fornax/ops.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "tests/ops/compare.h"
#include "tests/ops/modes.h"

namespace fornax::conformance {
namespace {

std::vector<Device> usable_devices() {
  std::vector<Device> list;
  for (const DeviceListing& listing : devices()) {
    if (listing.usable) list.emplace_back(listing.name);
  }
  return list;
}

int64_t largest(const Sample& sample) {
  int64_t count = 1;
  for (const Input& input : sample.inputs) {
    count = std::max(count, input.type.shape.element_count());
  }
  return count;
}

// Nanoseconds per element of the largest operand, the best of several rounds.
template <class Work>
double nanoseconds(const Sample& sample, Device device, Work work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  for (int round = 0; round < 7; round++) {
    const auto begin = Clock::now();
    work();
    device.sync();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  return best / double(largest(sample));
}

// One column: the op alone, and amid a chain of four elementwise ops divided by five.
std::string timings(Op op, DType dtype, Device device) {
  const Sample sample = speed_sample_of(op, dtype);
  if (sample.inputs.empty()) return fmt::format("{:>18}", "-");
  try {
    const std::vector<Tensor> inputs = make_all(sample, Form::contiguous, 1, device);
    const double alone = nanoseconds(sample, device, [&] {
      const Tensor y = apply(op, inputs, sample.attributes);
      device.flush();
    });
    const double chained = nanoseconds(sample, device, [&] {
      Tensor y = apply(op, inputs, sample.attributes);
      for (int i = 0; i < 4; i++) y = is_boolean(y.dtype()) ? bitwise_not(y) : neg(y);
      device.flush();
    });
    return fmt::format("{:9.3f}{:9.3f}", alone, chained / 5);
  } catch (const Error&) {
    return fmt::format("{:>18}", "unsupported");
  }
}

bool runs(Op op, DType dtype, Device device) {
  try {
    for (const Sample& sample : samples_of(op, dtype)) {
      if (largest(sample) > 64) continue;
      (void)read(apply(op, make_all(sample, Form::contiguous, 1, device), sample.attributes));
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// One name for the usual sets of dtypes, else a list.
std::string name_of_set(const std::vector<DType>& set) {
  const struct {
    const char* name;
    bool (*holds)(DType);
  } classes[] = {{"all", [](DType) { return true; }},
                 {"numbers", [](DType dtype) { return !is_boolean(dtype); }},
                 {"floats", is_floating},
                 {"whole", [](DType dtype) { return !is_floating(dtype); }}};
  for (const auto& one : classes) {
    std::vector<DType> members;
    for (int d = 0; d < kDTypeCount; d++) {
      if (one.holds(DType(d))) members.push_back(DType(d));
    }
    if (members == set) return one.name;
  }
  std::string list;
  for (DType dtype : set) list += (list.empty() ? "" : " ") + std::string(name_of(dtype));
  return list;
}

// The dtypes that work, and those that should and do not.
std::string supported(Op op, Device device) {
  std::vector<DType> working, missing;
  for (int d = 0; d < kDTypeCount; d++) {
    const DType dtype = DType(d);
    if (!samples_of(op, dtype).empty())
      (runs(op, dtype, device) ? working : missing).push_back(dtype);
  }
  return name_of_set(working) + (missing.empty() ? "" : " (not " + name_of_set(missing) + ")");
}

}  // namespace

void print_speed() {
  for (Device device : usable_devices()) {
    std::printf("%s: ns per element, alone and per op of a chain of five\n%-16s%18s%18s%18s\n",
                device.describe().c_str(), "", "f32", "f64", "i32");
    for (int i = 0; i < op_count(); i++) {
      std::string line = fmt::format("{:16}", info(Op(i)).name);
      for (DType dtype : {DType::f32, DType::f64, DType::i32}) {
        line += timings(Op(i), dtype, device);
      }
      std::printf("%s\n", line.c_str());
      std::fflush(stdout);
    }
  }
}

void print_support() {
  std::printf(
      "Dtypes of operands: all, numbers (all but bool), floats, whole (integers and bool).\n\n");
  std::string head = "| op |", rule = "|---|";
  for (Device device : usable_devices()) {
    head += " " + short_name(device) + " |";
    rule += "---|";
  }
  std::printf("%s\n%s\n", head.c_str(), rule.c_str());
  for (int i = 0; i < op_count(); i++) {
    const Op op = Op(i);
    if (op == Op::leaf || op == Op::full) continue;  // every other op's operands
    std::string line = fmt::format("| {} |", info(op).name);
    for (Device device : usable_devices()) line += " " + supported(op, device) + " |";
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace fornax::conformance
