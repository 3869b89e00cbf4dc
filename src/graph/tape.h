// Tape: what the backward pass knows of one tracked value.  Tapes point at the tapes of operands
// and at the values that the gradient reads, never at the value they belong to through a handle, so
// that dropping a result's last Tensor frees everything that only its gradient needed.
//
// Built by the recording thread; a backward pass over shared tapes locks the engine (grad room).
#pragma once
#include <fornax/error.h>
#include <fornax/function.h>

#include <memory>
#include <vector>

#include "graph/node.h"

namespace fornax {

class Tensor;  // include/fornax/tensor.h; here only a name in signatures

// What a custom op or checkpoint brings instead of a row of ops.def.  Given the gradient of each
// result (undefined where none arrived), returns one gradient per operand, undefined where none
// flows.
struct CustomGradient {
  std::string name;
  Function<std::vector<Tensor>(const std::vector<Tensor>& gradients)> backward;
};

// Sees a gradient; what it returns, if defined, goes on in its place.
using Hook = Function<Tensor(const Tensor& gradient)>;

struct Tape {
  std::atomic<uint32_t> references{1};
  Op op = Op::leaf;     // leaf: a value that the user marked with require_grad()
  bool spent = false;   // a backward pass without retain_graph went through
  bool retain = false;  // keep the gradient of this intermediate value
  Marks marks;
  int16_t device = 0;
  Type type;  // of the result
  Attributes attributes;
  Scalar scalar;
  Site site;
  Few<Ref<Tape>> edges;  // per operand; empty where it is not tracked
  Few<Type> input_types;
  Few<Ref<Node>> inputs;  // per operand, where the gradient reads it and it is stored
  // Checkpointing: a cheap op keeps all its operands, so that its result can be computed again.  An
  // operand that is itself such a result has no entry in `inputs`; its edge is the recipe.
  bool recomputable = false;
  Ref<Node> result;  // where the gradient reads it
  std::shared_ptr<CustomGradient> custom;
  // Custom ops with several results: each result's tape has op leaf, no gradient of its own, and
  // one edge to a common tape that has `custom`; `output` says which result it is, `outputs` how
  // many.
  int output = 0, outputs = 1;
  std::vector<Hook> hooks;
  Ref<Node> gradient;  // leaf, or retain: what backward() left here

  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* block, size_t bytes) { free_block(block, bytes); }
};

}  // namespace fornax
