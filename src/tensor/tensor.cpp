// Tensor: handles, what a tensor is, reading, and the elementwise functions of ops.def.
#include <fornax/tensor.h>

#include "backend/allocate.h"
#include "backend/registry.h"
#include "graph/evaluate.h"
#include "graph/tape.h"
#include "tensor/compose.h"
#include "tensor/record.h"

namespace fornax {

// ── Handles ──────────────────────────────────────────────────────────────────────────────────────
Tensor::Tensor(const Tensor& other) : node_(other.node_) {
  if (node_) node_->references.fetch_add(kHandle, std::memory_order_relaxed);
}

void Tensor::release() {
  if (node_->tape.load(std::memory_order_relaxed)) return release_tracked();
  // The locked instruction is spared where nobody else knows the node.
  if (node_->references.load(std::memory_order_acquire) == kHandle ||
      node_->references.fetch_sub(kHandle, std::memory_order_acq_rel) == kHandle) {
    destroy(node_);
  }
}

void Tensor::release_tracked() {
  // Without this handle, but still with its reference: a backward pass may be making a handle of a
  // value that it has saved.
  const uint64_t before = node_->references.fetch_sub(kHandle - 1, std::memory_order_acq_rel);
  // The last handle: nobody can ask for gradients of this value any more.
  if (handles_in(before) == 1) drop_tape(*node_);
  Ref<Node>::adopt(node_);
}

// ── What it is ───────────────────────────────────────────────────────────────────────────────────
const Shape& Tensor::shape() const { return node_of(*this).type.shape; }
int64_t Tensor::shape(int64_t axis) const { return shape()[normal_axis(axis, *this)]; }
DType Tensor::dtype() const { return node_of(*this).type.dtype; }

Device Tensor::device() const {
  const Node& node = node_of(*this);
  Device device = Device::from_physical(node.device);
  if (node.marks.autodiff) {
    device = device.autodiff(node.marks.recompute ? Checkpointing::balanced : Checkpointing::none);
  }
  return node.marks.eager ? device.eager() : device;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────
size_t Tensor::countable(size_t element_size, Site site) const {
  const auto count = size_t(node_of(*this, "to_vector", site).type.shape.element_count());
  if (count > PTRDIFF_MAX / element_size) no_memory(site);
  return count;
}

void Tensor::no_memory(Site site) const {
  const Call call("to_vector", site);
  fail(ErrorKind::out_of_memory, "to_vector: the host has no memory for {} elements of {}",
       element_count(), text_of(node_of(*this).type));
}

void Tensor::read(const char* name, void* out, size_t count, DType dtype, Site site) const {
  Call call(name, site);
  const Type& type = node_of(*this).type;
  if (int64_t(count) != type.shape.element_count()) {
    fail(ErrorKind::shape, "{}: {} has {} elements, {} wanted; use to_vector() for all of them",
         name, text_of(type), type.shape.element_count(), count);
  }
  if (count == 0) return;
  const Node& node = node_of(*this);
  if (node.state.load(std::memory_order_acquire) == NodeState::constant) {
    const Word word = word_of(dtype, scalar_of(type.dtype, word_of(type.dtype, node.scalar)));
    for (size_t i = 0; i < count; i++) store(dtype, out, int64_t(i), word);
    return;
  }
  if (type.dtype != dtype) {
    const Untracked off;
    const Tensor converted = cast(dtype);
    converted.read(name, out, count, dtype, site);
    return;
  }
  const Ref<Node> ready = materialise(*this);
  await(*ready);
  const size_t size = size_of(dtype);
  physical_device(ready->device)
      .backend->read(out, *ready->buffer, size_t(ready->layout.offset) * size, count * size);
}

// ── Elementwise ops ──────────────────────────────────────────────────────────────────────────────
#define OP1(name, ...)                                                       \
  Tensor name(const Operand& x) { return record_pointwise(Op::name, {&x}); } \
  Tensor Tensor::name(Site site) const {                                     \
    const Operand x(*this, site);                                            \
    return record_pointwise(Op::name, {&x});                                 \
  }
#define OP2(name, ...)                                                                             \
  Tensor name(const Operand& a, const Operand& b) { return record_pointwise(Op::name, {&a, &b}); } \
  Tensor Tensor::name(const Operand& b) const {                                                    \
    const Operand a(*this, b.site());                                                              \
    return record_pointwise(Op::name, {&a, &b});                                                   \
  }
#define OP3(name, ...)                                                \
  Tensor name(const Operand& a, const Operand& b, const Operand& c) { \
    return record_pointwise(Op::name, {&a, &b, &c});                  \
  }
#include <fornax/ops.def>

Tensor& Tensor::operator+=(const Operand& b) { return *this = add(b); }
Tensor& Tensor::operator-=(const Operand& b) { return *this = sub(b); }
Tensor& Tensor::operator*=(const Operand& b) { return *this = mul(b); }
Tensor& Tensor::operator/=(const Operand& b) { return *this = div(b); }

Tensor Tensor::clamp(const Operand& low, const Operand& high) const {
  Call call("clamp", low.site());
  return where(*this < low, low, where(*this > high, high, *this));
}

Tensor Tensor::cast(DType dtype, Site site) const {
  if (node_of(*this, "cast", site).type.dtype == dtype) return *this;
  return record(Op::cast, {this}, {int64_t(dtype)}, site);
}

Tensor Tensor::contiguous(Site site) const {
  const Node& node = node_of(*this, "contiguous", site);
  if (node.state.load(std::memory_order_acquire) == NodeState::ready &&
      is_contiguous(node.type.shape, node.layout)) {
    return *this;
  }
  return record(Op::copy, {this}, {}, site);
}

// ── Devices ──────────────────────────────────────────────────────────────────────────────────────
namespace {

// The value on another physical device: through host memory.
Tensor moved(const Tensor& x, Device device) {
  const Type& type = node_of(x).type;
  const Ref<Node> ready = materialise(x);
  await(*ready);
  const size_t size = size_of(type.dtype);
  const size_t bytes = size_t(type.shape.element_count()) * size;
  std::vector<std::byte> host = host_memory<std::byte>(bytes);
  if (bytes) {
    physical_device(ready->device)
        .backend->read(host.data(), *ready->buffer, size_t(ready->layout.offset) * size, bytes);
  }
  return from_host(host.data(), type, device);
}

// The value on `device`, without a history.
Tensor same_or_moved(const Tensor& x, Device device) {
  const Untracked off;
  return x.device() == device ? record(Op::detach, {&x}) : moved(x, device);
}

}  // namespace

Tensor from_host(const void* data, const Type& type, Device device) {
  PhysicalDevice& physical = physical_device(device.physical());
  const size_t bytes = size_t(type.shape.element_count()) * size_of(type.dtype);
  auto node = Ref<Node>::adopt(new Node);
  node->type = type;
  node->device = int16_t(device.physical());
  node->marks = marks_of(device);
  node->buffer = allocate(device.physical(), bytes);
  mark_made_by(*node->buffer, Op::leaf);
  if (bytes) physical.backend->write(*node->buffer, 0, data, bytes);
  node->layout = row_major(type.shape);
  node->state.store(NodeState::ready, std::memory_order_release);
  return tensor_of(node);
}

Tensor Tensor::to(Device device, Site site) const {
  Call call("to", site);
  const Device from = this->device();
  const Ref<Tape> tape = tape_of(*this);
  Tensor result = same_or_moved(*this, device);
  result.node()->marks = marks_of(device);
  note_read(*this);
  if (!tape || !grad_enabled()) return result;
  auto custom = std::make_shared<CustomGradient>();
  custom->name = "to";
  custom->backward = [from](const std::vector<Tensor>& gradients) {
    return std::vector<Tensor>{gradients[0].to(from)};
  };
  set_tape(result, custom_tape(result, {*this}, std::move(custom)));
  return result;
}

// ── Gradients: the parts that need no backward pass ──────────────────────────────────────────────
Ref<Tape> custom_tape(const Tensor& result, const std::vector<Tensor>& inputs,
                      std::shared_ptr<CustomGradient> custom) {
  auto tape = Ref<Tape>::adopt(new Tape);
  const Node& node = node_of(result);
  tape->type = node.type;
  tape->device = node.device;
  tape->marks = node.marks;
  tape->site = Call::site_or(node.site);
  tape->custom = std::move(custom);
  for (const Tensor& input : inputs) {
    tape->edges.push_back(tape_of(input));
    tape->input_types.push_back(node_of(input).type);
    tape->inputs.emplace_back();
  }
  return tape;
}

void expect_device(const char* name, const Tensor& gradient, int device) {
  if (node_of(gradient).device == device) return;
  fail(ErrorKind::device, "{}: a gradient is on {}, its value on {}; move it with to(device)", name,
       physical_device(node_of(gradient).device).name, physical_device(device).name);
}

Tensor Tensor::require_grad(Site site) const {
  Call call("require_grad", site);
  if (!is_floating(dtype())) {
    fail(ErrorKind::dtype, "require_grad: only floats have gradients, got {}; cast it first",
         text_of(node_of(*this).type));
  }
  if (requires_grad()) return *this;
  Tensor result = detach();
  Node& node = *result.node();
  node.marks.autodiff = true;
  auto tape = Ref<Tape>::adopt(new Tape);
  tape->type = node.type;
  tape->device = node.device;
  tape->marks = node.marks;
  tape->site = Call::site_or(site);
  set_tape(result, std::move(tape));
  return result;
}

bool Tensor::requires_grad() const { return bool(tape_of(*this)); }

Tensor Tensor::detach(Site site) const {
  const Untracked off;
  return record(Op::detach, {this}, {}, site);
}

Tensor Tensor::grad() const {
  const Ref<Tape> tape = tape_of(*this);
  return tape && tape->gradient ? tensor_of(tape->gradient) : Tensor();
}

namespace {

Tape& tape_or_fail(const Tensor& tensor, const char* name) {
  Tape* tape = node_of(tensor).tape.load(std::memory_order_acquire);
  if (!tape) {
    fail(ErrorKind::value, "{}: the tensor is not tracked; call require_grad() on it first", name);
  }
  return *tape;
}

}  // namespace

void Tensor::set_grad(const Tensor& gradient, Site site) const {
  Call call("set_grad", site);
  Tape& tape = tape_or_fail(*this, "set_grad");
  if (gradient.defined() && node_of(gradient).type != tape.type) {
    fail(ErrorKind::shape, "set_grad: the value is {}, its gradient cannot be {}",
         text_of(tape.type), text_of(node_of(gradient).type));
  }
  if (gradient.defined()) expect_device("set_grad", gradient, tape.device);
  tape.gradient = gradient.defined() ? Ref<Node>(gradient.node()) : Ref<Node>();
}

void Tensor::retain_grad(Site site) const {
  Call call("retain_grad", site);
  tape_or_fail(*this, "retain_grad").retain = true;
}

}  // namespace fornax
