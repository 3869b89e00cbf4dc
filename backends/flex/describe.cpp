#include "backends/flex/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "backends/flex/pool.h"
#include "backends/flex/stages.h"

namespace fornax::flex {
namespace {

std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

std::string describe_cpu() {
  std::string set(instruction_set());
  std::transform(set.begin(), set.end(), set.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  // As the setting cpu_target names them.
  if (set == "avx3") set = "avx512";
  if (set == "emu128" || set == "scalar") set = "baseline";
  const int threads = thread_count();
  return fmt::format("{}, {}, {} thread{}", model_name(), set, threads, threads == 1 ? "" : "s");
}

}  // namespace fornax::flex
