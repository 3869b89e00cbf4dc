#include "tensor/small.h"

#include <new>

#include "backend/registry.h"
#include "base/error.h"
#include "graph/evaluate.h"

namespace fornax {
namespace {

constexpr size_t kMostOperands = 3;

// What the kernel reads: where operands lie, and whether one is one element for all.
struct Reads {
  const void* data[kMostOperands];
  bool single[kMostOperands];
  uint64_t numbers[kMostOperands];  // those operands that are numbers

  void number(size_t i, DType dtype, const Scalar& value) {
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

// The number of elements if there are some and they are few, else 0.
int64_t small_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size > kSmallElements) return 0;
    count *= size;
    if (count > kSmallElements) return 0;
  }
  return count;
}

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

// The result's memory with its values; none where there is no kernel.
Ref<Buffer> computed(PhysicalDevice& device, int number, Op op, DType dtype, int64_t count,
                     size_t bytes, const Reads& reads) {
  Ref<Buffer> buffer = device.backend->allocate(device.ordinal, bytes);
  if (!device.small_kernel(op, dtype, count, buffer->data, reads.data, reads.single)) return {};
  buffer->device = number;
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
         !node->tape.load(std::memory_order_relaxed) && node->device == first.device &&
         node->type == first.type && is_contiguous(first.type.shape, node->layout);
}

const Node* first_tensor(std::span<const Operand* const> operands) {
  for (const Operand* operand : operands) {
    if (!operand->is_number()) return operand->tensor().node();
  }
  return nullptr;
}

}  // namespace

Ref<Node> small_result(Op op, std::span<const Operand* const> operands) {
  const Rule rule = info(op).rule;
  const Node* first = first_tensor(operands);
  if (!first || rule == Rule::selected) return {};
  const auto& [dtype, shape] = first->type;
  const int64_t count = small_count(shape);
  PhysicalDevice& device = physical_device(first->device);
  if (count == 0 || !device.small_kernel || (wants_floats(rule) && !is_floating(dtype))) return {};
  Reads reads;
  Marks marks;
  for (size_t i = 0; i < operands.size(); i++) {
    if (operands[i]->is_number()) {
      if (!adopts(operands[i]->number(), dtype)) return {};
      reads.number(i, dtype, operands[i]->number());
      continue;
    }
    const Node* node = operands[i]->tensor().node();
    if (!lies_like(node, *first)) return {};
    reads.memory(i, *node);
    marks = union_of(marks, node->marks);
  }
  const DType result_dtype = gives_boolean(rule) ? DType::bool_ : dtype;
  Ref<Buffer> buffer = computed(device, first->device, op, dtype, count,
                                size_t(count) * size_of(result_dtype), reads);
  if (!buffer) return {};
  auto result = Ref<Node>::adopt(new Node);
  result->op = op;
  result->marks = marks;
  result->device = first->device;
  result->site = Call::site_or(operands[0]->site());
  new (&result->type) Type{result_dtype, shape};
  new (&result->layout) Layout(row_major(shape));
  result->buffer = std::move(buffer);
  result->state.store(NodeState::ready, std::memory_order_release);
  return result;
}

bool run_small(Node& result, std::span<Node* const> inputs) {
  if (!is_pointwise(result.op)) return false;
  PhysicalDevice& device = physical_device(result.device);
  if (!device.small_kernel) return false;
  const int64_t count = small_count(result.type.shape);
  if (count == 0) return false;
  Reads operands;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!reads(*inputs[i], result, i, operands)) return false;
  }
  // The dtype that the op works in; for comparisons the result's is bool.
  Ref<Buffer> buffer = computed(device, result.device, result.op, inputs.back()->type.dtype, count,
                                size_t(count) * size_of(result.type.dtype), operands);
  if (!buffer) return false;
  result.buffer = std::move(buffer);
  new (&result.layout) Layout(row_major(result.type.shape));
  result.state.store(NodeState::ready, std::memory_order_release);
  return true;
}

}  // namespace fornax
