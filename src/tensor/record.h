// Recording: the one way in which ops come to be, and the bridge between Tensors and nodes.
#pragma once
#include <fornax/tensor.h>

#include <initializer_list>
#include <unordered_set>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/node.h"
#include "graph/tape.h"

namespace fornax {

// Records `op` on `inputs`, which share a device, and returns the result: pending, or ready where
// it is a view of a ready value or small enough to run at once.  Tracked where an input is tracked,
// the result is floating and gradients are on.  Error: as infer(), and Error(device) for mixed
// devices.
Tensor record(Op op, std::span<const Tensor* const> inputs, Attributes attributes = {},
              Site site = {});
inline Tensor record(Op op, std::initializer_list<const Tensor*> inputs, Attributes attributes = {},
                     Site site = {}) {
  return record(op, std::span(inputs.begin(), inputs.size()), std::move(attributes), site);
}

// A pointwise op on operands: numbers adopt dtypes, dtypes are promoted by the op's rule.
Tensor record_pointwise(Op op, std::initializer_list<const Operand*> operands);

// One number everywhere.
Tensor constant(Device device, Type type, Scalar value);

// A ready value copied from host memory.
Tensor from_host(const void* data, const Type& type, Device device);
// A tape whose gradient is `custom`, for a result that was made from `inputs`.
Ref<Tape> custom_tape(const Tensor& result, const std::vector<Tensor>& inputs,
                      std::shared_ptr<CustomGradient> custom);
// Error(device): the gradient of a value on that physical device is on another one.
void expect_device(const char* name, const Tensor& gradient, int device);
Marks marks_of(Device device);

// The node of a defined tensor.  Error(value): undefined, with the name and the line of the call
// under way, or those given.
Node& node_of(const Tensor& tensor, const char* name = "tensor", Site site = {});
// A new handle to the node.
Tensor tensor_of(const Ref<Node>& node);
// A new handle to the node's value that is tracked by `tape`; used where a gradient is itself
// differentiated.
Tensor tracked_tensor(const Ref<Node>& node, Ref<Tape> tape);
Ref<Tape> tape_of(const Tensor& tensor);
// Gives the tensor's node a tape.  Requires: nobody else has a handle to it yet.
void set_tape(const Tensor& tensor, Ref<Tape> tape);

// Computes the node if it is pending; afterwards it is ready or constant.  Error: its failure.
void realise(Node& node);
// The same, and waits until it is known whether the value is right.
void await(Node& node);
// A ready, contiguous, readable value: computed, copied and materialised as needed.
Ref<Node> materialise(const Tensor& tensor);

// Whether ops on this thread are tracked (NoGrad switches it off).
bool grad_enabled();
bool set_grad_enabled(bool enabled);  // returns what was
// While one lives, what this thread records is not tracked.
class Untracked {
 public:
  Untracked() : before_(set_grad_enabled(false)) {}
  ~Untracked() { set_grad_enabled(before_); }
  Untracked(const Untracked&) = delete;
  Untracked& operator=(const Untracked&) = delete;

 private:
  bool before_;
};

// While one lives, ops on this thread are not tracked, and the tracked operands that they read are
// listed: what a checkpointed function captures.  Requires: grad_enabled().
class ReadList {
 public:
  ReadList();
  ~ReadList();
  ReadList(const ReadList&) = delete;
  ReadList& operator=(const ReadList&) = delete;
  void add(const Ref<Tape>& tape);
  const std::vector<Ref<Tape>>& tapes() const { return tapes_; }  // each once

 private:
  std::vector<Ref<Tape>> tapes_;
  std::unordered_set<const Tape*> known_;
};
// Adds the tensor to this thread's list, if there is one and gradients are on.
void note_read(const Tensor& tensor);

// From 0 on.  Error(index): it names no axis of a value with `rank` axes, `what` in words.
int normal_axis(int64_t axis, int rank, const std::string& what = "the result");
int normal_axis(int64_t axis, const Tensor& x);
// Ascending, each axis once; a single number has none, but may be asked for its only one.
// Error(index, value).
Attributes normal_axes(const Axes& axes, const Tensor& x);

}  // namespace fornax
