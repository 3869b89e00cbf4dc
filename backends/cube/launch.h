// From groups to launches.  A family of kernels (kernels.h) turns a group into a PreparedGroup,
// which usually is a list of launches: each a program, a grid and the rules for its arguments, all
// worked out in advance, so that running it only fills in addresses and numbers.
//
// Objects do not change once prepared; running them is safe from several threads at once.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backends/cube/device.h"

namespace fornax::cube {

struct PreparedGroup : Prepared {
  virtual void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const = 0;
};

// Where a buffer of a launch comes from: an input or output of the group, or memory that the group
// needs while it runs (LaunchList::scratch); or the device's tickets.
struct Place {
  enum class Kind : uint8_t { input, output, scratch, tickets };
  Kind kind;
  int number;
  static Place input(int i) { return {Kind::input, i}; }
  static Place output(int i) { return {Kind::output, i}; }
  static Place scratch(int i) { return {Kind::scratch, i}; }
  static Place tickets() { return {Kind::tickets, 0}; }
};

// The arguments of a launch, in the order of the kernel's parameters.
class Arguments {
 public:
  // The address of element `first`, counted from the argument's own offset; the kernel touches
  // `count` elements from there on at most.
  void buffer(Place place, DType dtype, int64_t first, int64_t count);
  // The number of an input of op full; declare_scalar() (operand.h) is the other side.
  void scalar(int input, DType dtype);
  void number(DType dtype, int64_t value);
  // A map of a matrix that begins where the argument does (kernel/codes.def); the base is filled
  // in.
  void map(Place place, DType dtype, const runtime::TensorMapRequest& request);

 private:
  friend class Launch;
  struct Rule {
    enum class Kind : uint8_t { buffer, scalar, number, map };
    Kind kind;
    Place place;
    DType dtype;
    int64_t value;  // buffer: bytes from the argument's offset; number: the word; map: which
  };
  std::vector<Rule> rules_;
  std::vector<int64_t> counts_;  // of the buffers
  bool passes_counts_ = false;   // as arguments too
  std::vector<runtime::TensorMapRequest> maps_;
};

// What to throw where the kernel's own assertion (Builder::require) fails; `number` is its number.
using Complaint = std::function<void(int64_t number)>;

class Launch {
 public:
  // Has the program compiled meanwhile.
  Launch(Device& device, KernelRecipe recipe, runtime::Grid grid, Arguments arguments,
         Complaint complaint = {});
  // Waits for the program at first.  Error: as Runtime::compile.
  void run(Device& device, std::span<const Argument> inputs, std::span<const Argument> outputs,
           std::span<const runtime::Address> scratch) const;
  bool ready() const { return program_->done(); }
  bool waits() const { return !program_->ended(); }  // would, if it ran now

 private:
  struct Filled;
  void fill(Filled& to, const Arguments::Rule& rule) const;

  std::shared_ptr<ComingProgram> program_;
  runtime::Grid grid_;
  Arguments arguments_;
  std::shared_ptr<const Explain> explain_;  // where the kernel reports
};

// Launches one after another.
class LaunchList : public PreparedGroup {
 public:
  explicit LaunchList(Device& device) : device_(device) {}
  void add(Launch launch) { launches_.push_back(std::move(launch)); }
  bool waits() const {  // would, if it ran now
    return std::any_of(launches_.begin(), launches_.end(),
                       [](const Launch& l) { return l.waits(); });
  }
  // Memory of `bytes` bytes that lives while the group runs, not initialised.
  Place scratch(size_t bytes);
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  Device& device_;
  std::vector<Launch> launches_;
  std::vector<size_t> scratch_;
};

// Parts that run one after another.
class Sequence : public PreparedGroup {
 public:
  void add(std::unique_ptr<PreparedGroup> part) { parts_.push_back(std::move(part)); }
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    for (const auto& part : parts_) part->run(inputs, outputs);
  }

 private:
  std::vector<std::unique_ptr<PreparedGroup>> parts_;
};

// A group whose operands may turn out to be less aligned than the best kernel wants, because an
// input begins anywhere in its buffer: the kernels for vectors of 16, 8, 4, 2, 1 lanes are made as
// they are needed.
class VectorGroup : public PreparedGroup {
 public:
  using Make = std::function<std::unique_ptr<PreparedGroup>(int lanes)>;
  // An operand that is read or written in vectors, beginning at element `first`.
  struct Operand {
    Place place;
    DType dtype;
    int64_t first;
  };
  // Makes the best one, for `lanes` lanes, at once.
  VectorGroup(int lanes, std::vector<Operand> operands, Make make);
  ~VectorGroup() override;
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  struct Variants;
  std::vector<Operand> operands_;
  std::unique_ptr<Variants> variants_;
};

// How many blocks of `threads` threads make `count` threads.
runtime::Grid blocks_for(int64_t count, int threads);

}  // namespace fornax::cube
