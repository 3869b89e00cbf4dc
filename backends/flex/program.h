// Program: a pointwise graph compiled to the register pipeline, run on any stretch of its domain.
//
// Inputs that lie scattered in memory are gathered, in tiles that stay in the L1 cache.  A program
// is constant once built and runs on several threads at once.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backends/flex/pipeline.h"
#include "base/few.h"

namespace fornax::flex {

class Program {
 public:
  // All steps have the shape `domain`; inputs broadcast to it.
  Program(const Graph& graph, int inputs, const Shape& domain, std::span<const Layout> layouts,
          CompileOptions options = {});

  // Computes elements [begin, end) of the domain in row-major order.  An output's pointer is where
  // element 0 would lie.
  void run(std::span<const Argument> inputs, std::span<char* const> outputs, int64_t begin,
           int64_t end, Stores stores = Stores::cached) const;

  // The whole domain, on all threads.
  void run_whole(std::span<const Argument> inputs, std::span<char* const> outputs,
                 Stores stores = Stores::cached) const;

  // Estimated nanoseconds per element on one thread, memory traffic included.
  double cost() const;

 private:
  friend class ProgramRun;
  struct Input {
    DType dtype;
    bool number;  // comes as a scalar
    Reach reach;
    int tile = 0;                    // gathered: which
    int64_t strides[kMaxRank] = {};  // of the collapsed axes
  };

  void collapse(const Shape& domain);
  Reach reach_of(const Input& input) const;
  // The place of `element` along the collapsed axes.
  using Index = std::array<int64_t, kMaxRank>;
  Index index_of(int64_t element) const;
  int64_t offset_of(const Input& input, const Index& index) const;

  std::vector<Input> inputs_;
  std::vector<DType> outputs_;
  int rank_ = 0;
  int64_t sizes_[kMaxRank] = {};
  int64_t count_ = 0;        // elements of the domain
  int64_t row_ = 0;          // runs end where rows of this many elements do; 0: anywhere
  int64_t longest_run_ = 0;  // elements
  int gathered_ = 0;
  Code code_;
};

// A program at work on one thread, in scratch memory of that thread: one at a time there.
class ProgramRun {
 public:
  ProgramRun(const Program& program, std::span<const Argument> inputs, Stores stores);
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  // As Program::run; what is stored past the caches is there when this object has ended.
  void run(std::span<char* const> outputs, int64_t begin, int64_t end);

 private:
  void stretch(std::span<char* const> outputs, const Program::Index& index, int64_t begin,
               int64_t count);
  void fill_constants(Reach reach, const Program::Index& index);
  const char* element_of(size_t input, const Program::Index& index) const;

  const Program& program_;
  const std::span<const Argument> inputs_;
  const Stores stores_;
  char* tiles_;
  Pipeline pipeline_;
  Few<const char*, 8> from_;
  Few<char*, 4> to_;
};

// How an input of `type` and `layout` is walked as it broadcasts to `domain`: one stride per axis.
void broadcast_strides(const Type& type, const Layout& layout, const Shape& domain,
                       int64_t (&strides)[kMaxRank]);

}  // namespace fornax::flex
