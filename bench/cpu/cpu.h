// The parts of bench cpu: its rows, the programs that compute them, and what is made of the times.
//
// All is measured by programs of their own, ours too: each serves rows on its standard input and
// output, one JSON object per line that it reads (serve.cpp, bench/peers/common.py and common.rs):
//
//   make OP SIZE...    the row's inputs, its peer's compiling and warming up: {"outputs": [...]},
//                      a Summary each, or {"absent": true} where the row is not for this program
//   run SAMPLES CALLS  {"seconds": ...} of a call whose results are waited for: the median of so
//                      many samples, each the mean of so many calls
//   first OP SIZE...   one call in a fresh process: {"making": seconds}, which its inputs took
//   drop               forgets the row
//
// What fails gives {"error": "..."}.
#pragma once
#include <nlohmann/json.hpp>

#include "bench/common/work.h"

namespace bench {

using Json = nlohmann::ordered_json;

struct Bar {
  std::string peer;  // "": the fastest
  double ratio;      // the largest of ours to theirs
};

struct Row : Work {
  double bytes = 0, flops = 0;  // that a call must move and compute; 0: no such figure
  std::string unit = "ms";      // of values
  double scale = 1e3;           // seconds of a call to a value
  bool compiled = false;        // whether torch.compile has something to do
  bool fresh = false;           // a program's first result
  std::vector<Bar> bars;
  std::optional<double> most;  // the largest value

  std::string name() const;  // "softmax/4096x1024"
  bool is_floor() const { return op.starts_with("floor_"); }
};

// In the order of their weight, so that a run that is cut has what matters.
std::vector<Row> rows();

// ── Floors: what the machine allows, by loops without a library around ───────────────────────────
// A call of floor_copy, _copy_stream, _read, _chain8_l1 (of that many f32) or floor_fma (of so many
// multiply-adds of a lane).  Null: another op.  Runs on the pool's threads.
std::function<void()> make_floor(const Work& work);

// ── Other libraries of products, opened where they are installed ─────────────────────────────────
// "openblas" or "onednn".  Null where it is absent.
using Product =
    std::function<void(int64_t m, int64_t k, int64_t n, const float* a, const float* b, float* c)>;
Product open_product(const std::string& library);

// ── Serving ──────────────────────────────────────────────────────────────────────────────────────
// Until the input ends.  `who`: "fornax" or a library of products.  Returns main's result.
int serve(const std::string& who, const std::string& device);

// ── Programs that serve ──────────────────────────────────────────────────────────────────────────
// A running one; started by the first request, and again by the first after it failed.
class Party {
 public:
  std::string name;
  std::vector<std::string> command, environment;  // "NAME=VALUE", beside what we have

  Party(std::string name, std::vector<std::string> command,
        std::vector<std::string> environment = {});
  Party(Party&& other) noexcept;
  Party& operator=(Party&&) = delete;
  ~Party();  // ends it

  void send(const std::string& request);
  // {"error": ...} where it fails, or says nothing for `patience` seconds; it is ended then.
  Json receive(double patience);
  Json ask(const std::string& request, double patience);
  void end();
  // That its process has used since it started, all threads together.
  double processor_seconds() const;

 private:
  void start();

  int process_ = 0, input_ = -1, output_ = -1;
  std::string received_;
};

// Ours with and without oneDNN, then every peer that is installed.
std::vector<Party> parties(const std::string& self, int threads);

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────
struct Arguments {
  bool json = false, quick = false;
  std::vector<std::string> rows;  // prefixes of names; none: all
  std::vector<int> threads;
  double seconds = 1e9;  // after which no further row is begun
};
void measure(const std::string& self, const Arguments& arguments);

}  // namespace bench
