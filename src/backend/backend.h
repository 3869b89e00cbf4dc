// Backend: the seam to what computes.  Fused groups of ops cross it, whole, and memory; no function
// here is about one op.  Each backends/<name> implements it and defines, in namespace
// fornax::<name>, std::unique_ptr<Backend> make_backend(); its line in CMakeLists.txt puts it into
// the registry.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <fornax/error.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/small.h"
#include "graph/buffer.h"
#include "graph/graph.h"

namespace fornax {

// A fused group: pointwise steps only, or one step that moves data (the anchor) with pointwise
// steps around it.  The graph's first steps are the inputs (leaf, or full for numbers), then the
// work. Outputs are written from the argument's offset on, into memory of their own.
//
// Pointwise steps before the anchor have the shape `domain` (what the anchor reads), those after it
// the anchor's result shape; inputs broadcast to the steps that read them.  Without an anchor all
// steps have the shape `domain`.  Only a reduce op anchors a group with steps before it, and only
// where fuses_after() says so are there steps after it.
struct Group {
  Graph graph;
  int inputs = 0;   // how many of the first steps are inputs
  int anchor = -1;  // number of the step that moves data, -1 where there is none
  Shape domain;
  std::vector<Layout> layouts;  // per input; offset 0 (the argument has it), strides 0 for full
  std::vector<Layout> placed;   // per output; empty: row-major, all of them

  // Where output number `i` is written, offset 0; row-major unless writes_anywhere() allows more.
  Layout output_layout(size_t i) const {
    return placed.empty() ? row_major(graph.steps[size_t(graph.outputs[i])].type.shape) : placed[i];
  }
};

// What a group is run on.  Inputs of op full come as a number, without a buffer.
struct Argument {
  Buffer* buffer = nullptr;
  int64_t offset = 0;  // in elements
  Scalar scalar;
};

// A group made ready by a backend.  Holds no memory that grows with the sizes of the data.
struct Prepared {
  virtual ~Prepared() = default;
};

// What a backend keeps of a list of executions that is run again and again.
struct Batch {
  virtual ~Batch() = default;
};

// Data that were found wrong after execute() had returned.
struct LateError {
  uint64_t execution;  // its number, as execute() returned it
  std::shared_ptr<const Error> error;
};

struct BackendDevice {
  std::string name;         // "cpu"; the registry appends ":0"
  std::string description;  // hardware as a person would name it
};

struct MemoryUse {
  size_t in_use = 0, reserved = 0, peak = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "flex"
  // The devices that exist here; where there are none, `absence` says why.
  virtual std::vector<BackendDevice> devices(std::string& absence) = 0;

  // Memory for `bytes` bytes, 64-byte aligned, uninitialised.  Error(out_of_memory).
  virtual Ref<Buffer> allocate(int device, size_t bytes) = 0;
  virtual MemoryUse memory(int device) = 0;
  virtual void trim(int device) = 0;
  virtual void write(Buffer& to, size_t offset, const void* from, size_t bytes) = 0;
  virtual void read(void* to, const Buffer& from, size_t offset, size_t bytes) = 0;

  // Error(internal): the group breaks the rules above.  A prepared group may run many times, also
  // on several threads at once.
  virtual std::unique_ptr<Prepared> prepare(int device, const Group& group) = 0;
  // One argument per input and per output, in order.  An output may be the buffer of an input that
  // is contiguous, has the output's type and is read by pointwise steps alone, of a group without
  // anchor or with one that is no reduction; then it is placed row-major.
  // Error(index, value): found in the data, an index out of range for one.  Returns 0 where all
  // errors are known by then, else a number that is used once: late_errors() tells of the rest.
  virtual uint64_t execute(const Prepared& prepared, std::span<const Argument> inputs,
                           std::span<const Argument> outputs) = 0;
  virtual void synchronize(int device) = 0;
  // (optional) Waits for what execute() left open, and returns what was wrong, each once, the first
  // one of an execution.
  virtual std::vector<LateError> late_errors(int /*device*/) { return {}; }
  // (optional) Between begin and end, what this thread executes is collected, and end() runs it:
  // cheaply where it is what the batch ran before.  The memory of all executions must be there
  // until end() returns.  One thread at a time uses a batch.  nullptr: it would gain nothing.
  virtual std::unique_ptr<Batch> new_batch(int /*device*/) { return nullptr; }
  virtual void begin(Batch& /*batch*/) {}
  // Error: as execute(); nothing of the batch has run, or the device is broken.
  virtual void end(Batch& /*batch*/) {}
  // (optional) Whether allocating is dear: then the results of a plan that do not outlive it lie in
  // one buffer, at offsets that are multiples of 256 bytes.
  virtual bool wants_arenas() const { return false; }
  // (optional) Whether a group may hold more than one reduce op.  All of them reduce the same axes
  // of `domain`; other steps have the domain's shape or the reduced one, and steps of the first
  // read those of the second as they broadcast.  The anchor is one of the reductions.
  virtual bool fuses_rows() const { return false; }
  // (optional) Whether groups of reductions over `axes` of `domain` that read the same had better
  // be one, which may also hold reductions over all other axes with more than one element along
  // them: columns, none of which is the anchor or read by a step of the group.
  virtual bool shares_rows(const Shape& /*domain*/, const Attributes& /*axes*/) const {
    return false;
  }
  // (optional) Whether the pointwise `op` costs little beside reading and writing memory: then
  // groups do it again where others have done it rather than read its result.  Op::arange: whether
  // a group may hold one that runs along the last axis.
  virtual bool repeats_work(Op /*op*/) const { return false; }
  // (optional) Whether outputs of a group with `anchor` (Op::copy: without) may lie in any order,
  // also in memory that holds more than them.
  virtual bool writes_anywhere(Op /*anchor*/) const { return false; }
  // (optional) Whether pointwise steps may follow `anchor` in its group.
  virtual bool fuses_after(Op anchor) const { return is_reduce(anchor); }
  virtual const SmallLoops* small_loops() { return nullptr; }  // (optional)
  // (optional) What a person asking about the device should also know; may take milliseconds.
  virtual std::string remark(int /*device*/) { return {}; }
};

using MakeBackend = std::unique_ptr<Backend> (*)();

}  // namespace fornax
