#include "tensor/small.h"

#include <new>

#include "backend/registry.h"
#include "graph/evaluate.h"

namespace fornax {
namespace {

constexpr size_t kMostOperands = 3;

// Where the kernel reads an operand, and whether it is one element for all.
struct Operand {
  const void* data;
  bool single;
};

bool operand_of(const Node& input, const Node& result, uint64_t& number, Operand& out) {
  const State state = input.state.load(std::memory_order_acquire);
  if (state == State::constant) {
    store(input.type.dtype, &number, 0, word_of(input.type.dtype, input.scalar));
    out = {&number, true};
    return true;
  }
  if (state != State::ready) return false;
  const bool single = input.type.shape.rank() == 0;
  if (!single &&
      (input.type.shape != result.type.shape || !is_contiguous(input.type.shape, input.layout))) {
    return false;
  }
  const auto* bytes = static_cast<const char*>(input.buffer->data);
  out = {bytes + input.layout.offset * int64_t(size_of(input.type.dtype)), single};
  return true;
}

}  // namespace

bool run_small(Node& result, std::span<Node* const> inputs) {
  if (!is_pointwise(result.op)) return false;
  PhysicalDevice& device = physical_device(result.device);
  if (!device.small_kernel) return false;
  const int64_t count = result.type.shape.element_count();
  if (count > kSmallElements || count == 0) return false;
  uint64_t numbers[kMostOperands];
  const void* data[kMostOperands];
  bool single[kMostOperands];
  for (size_t i = 0; i < inputs.size(); i++) {
    Operand operand;
    if (!operand_of(*inputs[i], result, numbers[i], operand)) return false;
    data[i] = operand.data;
    single[i] = operand.single;
  }
  const size_t bytes = size_t(count) * size_of(result.type.dtype);
  Ref<Buffer> buffer = device.backend->allocate(device.ordinal, bytes);
  // The dtype that the op works in; for comparisons the result's is bool.
  const DType dtype = inputs.back()->type.dtype;
  if (!device.small_kernel(result.op, dtype, count, buffer->data, data, single)) return false;
  buffer->device = result.device;
  mark_made_by(*buffer, result.op);
  result.buffer = std::move(buffer);
  new (&result.layout) Layout(row_major(result.type.shape));
  result.state.store(State::ready, std::memory_order_release);
  return true;
}

}  // namespace fornax
