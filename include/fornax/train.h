// What a training loop needs beside tensors: averages that wait for nothing, progress on a terminal
// or in a log, stopping by Ctrl-C, and a report of what runs here.
//
// A loop stays the user's own code; none of these takes it over.  Use each from one thread.
#pragma once
#include <fornax/tensor.h>

#include <string>
#include <string_view>

namespace fornax::train {

// A weighted mean of single numbers that stay on their device until value() reads them.  What is
// added keeps no graph alive.
class Average {
 public:
  void add(const Tensor& value, double weight = 1, Site site = Site::here());
  // Waits for what was added.  NaN when that is nothing.
  double value(Site site = Site::here()) const;
  double weight() const { return weight_; }

 private:
  Tensor sum_;
  double weight_ = 0;
};

// While one lives, SIGINT (Ctrl-C) sets requested() instead of ending the process; a second one
// ends it.  One at a time per process.
class Interrupt {
 public:
  explicit Interrupt(Site site = Site::here());  // Error(value): another one lives
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool requested() const;
};

// Progress through a known amount of work: on a terminal a bar that is redrawn in place, elsewhere
// a plain line now and then.  Never fails: what cannot be printed is not printed.
struct ProgressOptions {
  std::string unit = "pictures";
  int descriptor = 1;  // where to write: 1 is standard output
  double every = 10;   // seconds between plain lines
};
class Progress {
 public:
  Progress(std::string label, int64_t total, ProgressOptions o = {});
  ~Progress();  // leaves the cursor on a line of its own
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether show() would print now: ask before computing what it is to say.
  bool due() const;
  void show(int64_t done, std::string_view note = "");
  // The last line, printed always.
  void finish(int64_t done, std::string_view note = "");
  double seconds() const;  // since the start

  // The line for `done` of the total after `seconds`, in at most `width` columns; with a bar or
  // without.
  std::string line(int64_t done, double seconds, std::string_view note, int width, bool bar) const;

 private:
  std::string label_;
  int64_t total_;
  ProgressOptions options_;
  double start_, shown_;
  bool terminal_, open_ = false;
};
// Columns of the terminal behind a descriptor; 0 where it is none.
int terminal_width(int descriptor = 1);

// Version, build, processor, devices found and missing, settings, cache, and what would make this
// installation slow.  For people and bug reports.
std::string doctor();

}  // namespace fornax::train
