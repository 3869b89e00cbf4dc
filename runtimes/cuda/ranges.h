// Ranges of a thread's time with names, which NVIDIA's profilers show beside the work that was
// launched within them.  Nothing where NVTX (libnvToolsExt) is not installed.
//
// Thread-safety: may be used from several threads at once; each has ranges of its own.
#pragma once
#include <string>

namespace fornax::cuda {

class Ranges {
 public:
  Ranges() = default;
  explicit Ranges(const std::string& path);  // empty: where the library always is

  // A range that is over when this is.
  class Range {
   public:
    Range(const Ranges& ranges, const std::string& name) : ranges_(ranges) {
      if (ranges.push_) ranges.push_(name.c_str());
    }
    ~Range() {
      if (ranges_.pop_) ranges_.pop_();
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

   private:
    const Ranges& ranges_;
  };

 private:
  int (*push_)(const char* name) = nullptr;
  int (*pop_)() = nullptr;
};

}  // namespace fornax::cuda
