// Node: one recorded step and, once computed, its value.  The form in which a user's ops live.
//
// Invariants
//  (1) op, type, inputs, attributes, scalar, site and marks do not change after recording, except
//      that computing a node drops its inputs.
//  (2) A node is in one state: constant (op full: a number, no memory), pending (recorded in a
//      stream), ready (buffer and layout are set) or failed (failure is set).  pending turns into
//      ready or failed once, under its stream's lock; readers load the state first.  A ready node
//      whose value is found wrong later (stream/doubt.h) turns into a failed one, and keeps its
//      buffer, which others may be reading.
//  (3) `references` counts everybody, and in kHandle's multiples the user's Tensors, each of which
//      is a reference besides: one locked instruction makes or ends a handle.  The handles own the
//      tape: when the last one goes, nobody can ask for gradients of this value any more, so the
//      tape goes although saved copies of the value may live on.
#pragma once
#include <fornax/error.h>

#include <atomic>
#include <memory>

#include "base/blocks.h"
#include "base/few.h"
#include "graph/buffer.h"
#include "graph/type.h"

namespace fornax {

struct Node;
struct Tape;
class Stream;
void destroy(Node* node);
void destroy(Tape* tape);

enum class NodeState : uint8_t { constant, pending, ready, failed };

// How results derived from a value are to be treated; the union of the operands' marks.
struct Marks {
  bool autodiff = false;   // made on an autodiff device, or tracked
  bool recompute = false;  // checkpointing: cheap ops are recomputed in the backward pass
  bool eager = false;      // run each op as it is written
};

inline Marks union_of(Marks a, Marks b) {
  a.autodiff |= b.autodiff;
  a.recompute |= b.recompute;
  a.eager |= b.eager;
  return a;
}

inline constexpr uint64_t kHandle = (uint64_t(1) << 32) + 1;  // a handle in Node::references
inline uint32_t handles_in(uint64_t references) { return uint32_t(references >> 32); }

// What most ops touch comes first: a node fills five cache lines.
struct Node {
  std::atomic<uint64_t> references{1};
  std::atomic<NodeState> state{NodeState::pending};
  Op op = Op::leaf;
  Marks marks;
  int16_t device = 0;                // number of the physical device
  uint32_t index = 0;                // pending: position in the stream's list
  std::atomic<Tape*> tape{nullptr};  // owned; set while gradients may be asked for
  Stream* stream = nullptr;          // pending: where
  Ref<Buffer> buffer;
  Site site;
  Few<Ref<Node>> inputs;
  Attributes attributes;
  Scalar scalar;
  std::shared_ptr<const Error> failure;
  union {
    Type type;
  };
  union {
    Layout layout;  // ready: where the elements lie in buffer
  };

  // type and layout are left to whoever knows them: most of a node's bytes are theirs.
  Node() {}
  ~Node();
  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* block, size_t bytes) { free_block(block, bytes); }
};

// The node's tape, or none.  Safe while the caller holds a handle.
Ref<Tape> tape_of(const Node& node);
// Gives up the node's tape.
void drop_tape(Node& node);

// A constant: op full with the given number everywhere.
Ref<Node> constant_node(int device, Marks marks, Type type, Scalar scalar);

}  // namespace fornax
