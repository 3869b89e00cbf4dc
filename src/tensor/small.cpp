#include "tensor/small.h"

#include <new>

#include "backend/allocate.h"
#include "backend/registry.h"
#include "base/error.h"
#include "graph/evaluate.h"
#include "tensor/autocast.h"

namespace fornax {
namespace {

constexpr size_t kMostOperands = 3;

// What the kernel reads: where operands lie, and whether one is one element for all.
struct Reads {
  const void* data[kMostOperands];
  bool single[kMostOperands];
  uint64_t numbers[kMostOperands];  // those operands that are numbers

  // Out of line: in place, it would take the registers that the loop over tensors needs.
  [[gnu::noinline]] void number(size_t i, DType dtype, const Scalar& value) {
    store(dtype, &numbers[i], 0, word_of(dtype, value));
    data[i] = &numbers[i];
    single[i] = true;
  }
  void memory(size_t i, const Node& node) {
    const auto* bytes = static_cast<const char*>(node.buffer->data);
    data[i] = bytes + node.layout.offset * int64_t(size_of(node.type.dtype));
    single[i] = node.type.shape.rank() == 0;
  }
};

bool reads(const Node& input, const Node& result, size_t i, Reads& out) {
  const NodeState state = input.state.load(std::memory_order_acquire);
  if (state == NodeState::constant) {
    out.number(i, input.type.dtype, input.scalar);
    return true;
  }
  if (state != NodeState::ready) return false;
  if (input.type.shape.rank() != 0 &&
      (input.type.shape != result.type.shape || !is_contiguous(input.type.shape, input.layout))) {
    return false;
  }
  out.memory(i, input);
  return true;
}

// The device's loop for the op, or none.
SmallLoop loop_for(const PhysicalDevice& device, Op op, DType dtype) {
  return device.small_loops ? (*device.small_loops)[size_t(dtype)][size_t(op)] : nullptr;
}

// Memory for `count` elements of what `op` gives.
Ref<Buffer> allocate_result(int device, Op op, DType dtype, int64_t count) {
  Ref<Buffer> buffer = allocate(device, size_t(count) * size_of(dtype));
  mark_made_by(*buffer, op);
  return buffer;
}

// Whether a number keeps the dtype of the tensors beside it.
bool adopts(const Scalar& number, DType dtype) {
  if (number.kind() == Scalar::Kind::floating) return is_floating(dtype);
  return !is_boolean(dtype);
}

// Whether the tensor can be read as it lies beside `first`, element by element.
bool lies_like(const Node* node, const Node& first) {
  return node && node->state.load(std::memory_order_acquire) == NodeState::ready &&
         !node->tape.load(std::memory_order_relaxed) &&
         (node == &first || (node->device == first.device && node->type == first.type)) &&
         is_contiguous(first.type.shape, node->layout);
}

}  // namespace

Ref<Node> small_result(Op op, std::span<const Operand* const> operands, const Node& first) {
  const Rule rule = info(op).rule;
  const auto& [dtype, shape] = first.type;
  const int64_t count = small_count(shape);
  if (count == 0 || rule == Rule::selected || !takes(op, dtype)) return {};
  const PhysicalDevice& device = physical_device(first.device);
  const SmallLoop loop = loop_for(device, op, dtype);
  if (!loop) return {};
  Reads reads;
  Marks marks;
  for (size_t i = 0; i < operands.size(); i++) {
    if (operands[i]->is_number()) {
      if (!adopts(operands[i]->number(), dtype)) return {};
      reads.number(i, dtype, operands[i]->number());
      continue;
    }
    const Node* node = operands[i]->tensor().node();
    if (!lies_like(node, first)) return {};
    reads.memory(i, *node);
    marks = union_of(marks, node->marks);
  }
  auto result = Ref<Node>::adopt(new Node);
  result->op = op;
  result->marks = marks;
  result->device = first.device;
  result->site = Call::site_or(operands[0]->site());
  new (&result->type) Type{gives_boolean(rule) ? DType::bool_ : dtype, shape};
  new (&result->layout) Layout(row_major(shape));
  result->buffer = allocate_result(first.device, op, result->type.dtype, count);
  loop(count, result->buffer->data, reads.data, reads.single);
  result->state.store(NodeState::ready, std::memory_order_release);
  return result;
}

bool run_small(Node& result, std::span<Node* const> inputs) {
  const int64_t count = small_count(result.type.shape);
  if (count == 0 || !is_pointwise(result.op)) return false;
  const PhysicalDevice& device = physical_device(result.device);
  // The dtype that the op works in; for comparisons the result's is bool.
  const SmallLoop loop = loop_for(device, result.op, inputs.back()->type.dtype);
  if (!loop) return false;
  Reads operands;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!reads(*inputs[i], result, i, operands)) return false;
  }
  result.buffer = allocate_result(result.device, result.op, result.type.dtype, count);
  loop(count, result.buffer->data, operands.data, operands.single);
  new (&result.layout) Layout(row_major(result.type.shape));
  result.state.store(NodeState::ready, std::memory_order_release);
  return true;
}

}  // namespace fornax
