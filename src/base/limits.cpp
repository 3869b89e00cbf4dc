#include "base/limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace fornax {
namespace {

// The least that `read` finds in the file `name` of this process's control group and of those above
// it; `most` where none has a limit.
template <class Number, class Read>
Number least_of_groups(const char* name, Number most, Read read) {
  std::ifstream membership("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(membership, line)) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  for (;; path.resize(std::min(path.rfind('/'), path.size()))) {
    std::ifstream file("/sys/fs/cgroup" + path + "/" + name);
    Number found{};
    if (read(file, found)) most = std::min(most, found);
    if (path.empty()) return most;
  }
}

// "max 100000", or microseconds of processor time in a period of so many.
bool read_processors(std::ifstream& file, double& found) {
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return false;
  found = std::ceil(quota / period);
  return true;
}

// "max", or bytes.
bool read_bytes(std::ifstream& file, size_t& found) { return bool(file >> found); }

int count_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = sched_getaffinity(0, sizeof(set), &set) == 0
                        ? CPU_COUNT(&set)
                        : int(std::thread::hardware_concurrency());
  return std::max(1, int(least_of_groups("cpu.max", double(count), read_processors)));
}

size_t count_memory() {
  const size_t machine = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGE_SIZE));
  return least_of_groups("memory.max", machine, read_bytes);
}

}  // namespace

int granted_threads() {
  static const int threads = count_threads();
  return threads;
}

size_t granted_memory() {
  static const size_t bytes = count_memory();
  return bytes;
}

}  // namespace fornax
