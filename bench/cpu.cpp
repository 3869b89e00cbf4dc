// What the CPU backend does in a second, beside PyTorch, torch.compile, JAX, burn, candle, oneDNN
// and OpenBLAS, as many of them as are installed (./do peers).
//
//   cpu [--json] [--rows PREFIX,...] [--threads N,...] [--quick] [--seconds N]
//   cpu --serve WHO [--device NAME]   fornax, onednn or openblas, serving rows (bench/cpu/cpu.h)
//
//   --threads  how many compute, one after another (all cores, then 1)
//   --quick    fewer and shorter rounds
//   --seconds  after which no further row is begun
//
// All take turns, on the same inputs, and what they compute is compared.  Each row is printed as
// soon as it is known; with --json as an object on a line of its own:
//
//   name, value, unit  "softmax/4096x1024/t2"; the median of the rounds
//   peers              every peer's value
//   peer, peer_value, ratio, bar
//                      of the bars that the row has, the one that is missed by most: the peer it
//                      is against, ours to theirs, and the largest such ratio
//   most               the largest value, where that is what the row has to meet
//   over               how far that is from being met: ratio / bar or value / most; 1 is just met
//   gbps, of_copy      bandwidth, and its share of the fastest copy's in this run
//   gflops, of_peak    of products, likewise
//   without_onednn     our value with FORNAX_ONEDNN=0
//   cpu                what a call takes of processors, all threads together, waiting ones too; the
//                      load of other programs, which tells most on long calls, changes it little
//   off                the largest deviation from a peer's results, in units of the tolerance
//   ok                 whether the results and all bars hold
//
// A row that fails has an `error` in place of a value.
#include <cstdio>
#include <cstring>
#include <sstream>
#include <thread>

#include "bench/cpu/cpu.h"

namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream words(list);
  for (std::string item; std::getline(words, item, ',');) items.push_back(item);
  return items;
}

[[noreturn]] void usage() {
  std::fprintf(
      stderr,
      "usage: cpu [--json] [--rows PREFIX,...] [--threads N,...] [--quick] [--seconds N]\n");
  std::exit(2);
}

}  // namespace

int main(int count, char** arguments) {
  bench::Arguments options;
  std::string who, device = "cpu";
  for (int i = 1; i < count; i++) {
    const std::string_view option = arguments[i];
    if (option == "--json") {
      options.json = true;
    } else if (option == "--quick") {
      options.quick = true;
    } else if (i + 1 == count) {
      usage();
    } else if (option == "--rows") {
      options.rows = split(arguments[++i]);
    } else if (option == "--threads") {
      for (const std::string& item : split(arguments[++i])) {
        options.threads.push_back(std::max(1, std::atoi(item.c_str())));
      }
    } else if (option == "--seconds") {
      options.seconds = std::atof(arguments[++i]);
    } else if (option == "--serve") {
      who = arguments[++i];
    } else if (option == "--device") {
      device = arguments[++i];
    } else {
      usage();
    }
  }
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  if (options.threads.empty()) {
    options.threads = cores > 1 ? std::vector{cores, 1} : std::vector{1};
  }
  try {
    if (!who.empty()) return bench::serve(who, device);
    bench::measure("/proc/self/exe", options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpu: %s\n", error.what());
    return 1;
  }
}
