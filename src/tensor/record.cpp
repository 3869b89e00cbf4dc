// Recording ops and tracking them.  record.h says what each function promises.
#include "tensor/record.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>

#include "backend/registry.h"
#include "graph/tape.h"
#include "stream/doubt.h"
#include "stream/run.h"
#include "stream/stream.h"
#include "tensor/autocast.h"
#include "tensor/small.h"

namespace fornax {
namespace {

// One pointer per operand for the length of a call; on the stack where they are few.
template <class T>
class Pointers {
 public:
  explicit Pointers(size_t count) : data_(few_) {
    if (count > std::size(few_)) data_ = (many_ = std::make_unique<T[]>(count)).get();
  }
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  T few_[8];
  std::unique_ptr<T[]> many_;
  T* data_;
};

thread_local bool grads = true;
thread_local ReadList* reads = nullptr;

[[noreturn]] void mixed_devices(Op op, const Node& a, const Node& b, Site site) {
  throw_error(ErrorKind::device,
              fmt::format("{}: operands are on {} ({}) and {} ({}); move one with to(device)",
                          Call::name_or(info(op).name.data()), physical_device(a.device).name,
                          text_of(a.type), physical_device(b.device).name, text_of(b.type)),
              site);
}

// Ops whose results checkpointing computes again rather than keeps.
bool is_cheap(Op op) { return is_pointwise(op) || is_view(op) || op == Op::cast; }

// Gives the result a tape.  Requires: an operand has one.
void track(Node& result, std::span<Node* const> inputs) {
  if (reads) {
    for (Node* input : inputs) {
      if (Ref<Tape> tape = tape_of(*input)) reads->add(tape);
    }
    return;
  }
  auto tape = Ref<Tape>::adopt(new Tape);
  tape->op = result.op;
  tape->marks = result.marks;
  tape->device = result.device;
  tape->type = result.type;
  tape->attributes = result.attributes;
  tape->scalar = result.scalar;
  tape->site = result.site;
  tape->recomputable = result.marks.recompute && is_cheap(result.op);
  const OpInfo& row = info(result.op);
  uint8_t reads = tape->recomputable ? uint8_t(0xff) : uint8_t(0);
  bool reads_result = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    tape->input_types.push_back(inputs[i]->type);
    Ref<Tape> edge = tape_of(*inputs[i]);
    if (edge) {
      reads |= row.saved[std::min<size_t>(i, 2)].inputs;
      reads_result |= row.saved[std::min<size_t>(i, 2)].result;
    }
    tape->edges.push_back(std::move(edge));
  }
  for (size_t i = 0; i < inputs.size(); i++) {
    const bool keep = i < 8 && (reads >> i & 1) != 0;
    const bool has_recipe = tape->edges[i] && tape->edges[i]->recomputable;
    tape->inputs.push_back(keep && !has_recipe ? Ref<Node>(inputs[i]) : Ref<Node>());
  }
  if (reads_result && !tape->recomputable) tape->result = Ref<Node>(&result);
  result.tape.store(tape.leave(), std::memory_order_release);
}

// A view of a ready or constant value needs no work: the result is ready at once.
bool view_now(Node& result, const Node& input) {
  const NodeState state = input.state.load(std::memory_order_acquire);
  if (state == NodeState::constant) {
    result.op = Op::full;
    result.scalar = input.scalar;
    result.attributes.clear();
    result.state.store(NodeState::constant, std::memory_order_release);
    return true;
  }
  if (state != NodeState::ready || !view_layout(result.op, result.attributes, input.type,
                                                input.layout, result.type, result.layout)) {
    return false;
  }
  result.buffer = input.buffer;
  result.state.store(NodeState::ready, std::memory_order_release);
  return true;
}

// More references to a node that no other thread knows yet: no locked instruction.
void add_references(Node& node, uint64_t more) {
  node.references.store(node.references.load(std::memory_order_relaxed) + more,
                        std::memory_order_relaxed);
}

// The first handle to such a node; takes over the reference.
Tensor first_handle(Ref<Node> node) {
  add_references(*node, kHandle - 1);
  return Tensor(node.leave());
}

Tensor record_nodes(Op op, std::span<Node* const> inputs, Attributes attributes, Site site) {
  auto result = Ref<Node>::adopt(new Node);
  result->op = op;
  result->attributes = std::move(attributes);
  result->site = Call::site_or(site);
  Pointers<const Type*> types(inputs.size());
  bool tracked = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    Node& input = *inputs[i];
    types[i] = &input.type;
    if (input.device != inputs[0]->device) mixed_devices(op, *inputs[0], input, site);
    if (input.state.load(std::memory_order_acquire) == NodeState::failed)
      throw_failure(input.failure);
    result->marks = union_of(result->marks, input.marks);
    tracked |= input.tape.load(std::memory_order_relaxed) != nullptr;
  }
  result->device = inputs[0]->device;
  try {
    // Made in place: a copy right after its parts were written stalls.
    new (&result->type) Type(infer({op, types.data(), int(inputs.size()), result->attributes}));
  } catch (const Error& error) {
    // Type rules know the call under way; a bare primitive's site is known only here.
    if (error.site().line > 0 || site.line == 0) throw;
    throw_error(error.kind(), error.what(), site);
  }
  if (tracked && grads && is_floating(result->type.dtype)) track(*result, inputs);
  if ((is_view(op) && view_now(*result, *inputs[0])) ||
      (small_count(result->type.shape) > 0 && !profile && run_small(*result, inputs))) {
    return first_handle(std::move(result));
  }
  Stream& stream = Stream::of_this_thread(result->device);
  for (Node* input : inputs) {
    if (input->state.load(std::memory_order_acquire) == NodeState::pending &&
        input->stream != &stream) {
      realise(*input);
    }
    result->inputs.push_back(Ref<Node>(input));
  }
  Node& node = *result;
  const bool eager = node.marks.eager;
  add_references(node, 1);
  Tensor tensor = first_handle(std::move(result));
  stream.record(Ref<Node>::adopt(&node));
  if (eager) await(node);
  return tensor;
}

}  // namespace

bool grad_enabled() { return grads && !reads; }
bool set_grad_enabled(bool enabled) { return std::exchange(grads, enabled); }

ReadList::ReadList() { reads = this; }
ReadList::~ReadList() { reads = nullptr; }
void ReadList::add(const Ref<Tape>& tape) {
  if (known_.insert(tape.get()).second) tapes_.push_back(tape);
}
void note_read(const Tensor& tensor) {
  if (!reads || !grads) return;
  if (Ref<Tape> tape = tape_of(tensor)) reads->add(tape);
}

Node& node_of(const Tensor& tensor, const char* name, Site site) {
  if (!tensor.defined()) [[unlikely]] {
    throw_error(
        ErrorKind::value,
        fmt::format("{}: a tensor is undefined; give it a value first", Call::name_or(name)), site);
  }
  return *tensor.node();
}

Tensor tensor_of(const Ref<Node>& node) {
  node->references.fetch_add(kHandle, std::memory_order_acq_rel);
  return Tensor(node.get());
}

Ref<Tape> tape_of(const Tensor& tensor) { return tape_of(node_of(tensor)); }

void set_tape(const Tensor& tensor, Ref<Tape> tape) {
  Ref<Tape>::adopt(node_of(tensor).tape.exchange(tape.leave(), std::memory_order_acq_rel));
}

Tensor tracked_tensor(const Ref<Node>& node, Ref<Tape> tape) {
  const Untracked off;
  Node* input = node.get();
  Tensor alias = record_nodes(Op::detach, std::span(&input, 1), {}, node->site);
  set_tape(alias, std::move(tape));
  return alias;
}

void realise(Node& node) {
  if (node.state.load(std::memory_order_acquire) == NodeState::pending) node.stream->flush();
  if (node.state.load(std::memory_order_acquire) == NodeState::failed) throw_failure(node.failure);
}

void await(Node& node) {
  realise(node);
  settle(node);
  if (node.state.load(std::memory_order_acquire) == NodeState::failed) throw_failure(node.failure);
}

Ref<Node> materialise(const Tensor& tensor) {
  Node& node = node_of(tensor);
  realise(node);
  if (node.state.load(std::memory_order_acquire) == NodeState::ready &&
      is_contiguous(node.type.shape, node.layout)) {
    return Ref<Node>(&node);
  }
  const Untracked off;
  const Tensor copied = record(Op::copy, {&tensor});
  realise(*copied.node());
  return Ref<Node>(copied.node());
}

Tensor record(Op op, std::span<const Tensor* const> inputs, Attributes attributes, Site site) {
  Pointers<Node*> nodes(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    nodes[i] = &node_of(*inputs[i], info(op).name.data(), site);
  }
  return record_nodes(op, std::span<Node* const>(nodes.data(), inputs.size()),
                      std::move(attributes), site);
}

Marks marks_of(Device device) {
  Marks marks;
  marks.autodiff = device.is_autodiff();
  marks.recompute = device.checkpointing() == Checkpointing::balanced;
  marks.eager = device.is_eager();
  return marks;
}

Tensor constant(Device device, Type type, Scalar value) {
  return tensor_of(constant_node(device.physical(), marks_of(device), type, value));
}

namespace {

// The dtype that operands of a pointwise op are brought to; `first` skips a condition.
DType common_dtype(std::span<const Operand* const> operands, size_t first, Op op) {
  bool any_tensor = false, number_is_float = false, number_is_integer = false;
  DType dtype = DType::bool_;
  for (size_t i = first; i < operands.size(); i++) {
    if (operands[i]->is_number()) {
      number_is_float |= operands[i]->number().kind() == Scalar::Kind::floating;
      number_is_integer |= operands[i]->number().kind() != Scalar::Kind::boolean;
    } else {
      const DType next = node_of(operands[i]->tensor()).type.dtype;
      dtype = any_tensor ? promote(dtype, next) : next;
      any_tensor = true;
    }
  }
  if (number_is_float && !is_floating(dtype)) dtype = DType::f32;
  if (number_is_integer && is_boolean(dtype)) dtype = DType::i64;
  if (wants_floats(info(op).rule) && !is_floating(dtype)) return DType::f32;
  return taken_dtype(op, dtype);
}

// The operand as a tensor of `dtype` on the device (and with the marks) of `like`.
Tensor as_tensor(const Operand& operand, DType dtype, const Node* like) {
  if (!operand.is_number()) {
    const Tensor& tensor = operand.tensor();
    return node_of(tensor).type.dtype == dtype ? tensor : tensor.cast(dtype, operand.site());
  }
  if (!like) return constant(Device(), {dtype, {}}, operand.number());
  return tensor_of(constant_node(like->device, {}, {dtype, {}}, operand.number()));
}

// The node of the first operand that is a tensor; none where that is undefined or all are numbers.
const Node* first_tensor(std::span<const Operand* const> operands) {
  for (const Operand* operand : operands) {
    if (!operand->is_number()) return operand->tensor().node();
  }
  return nullptr;
}

// The usual case: tensors of one dtype that the op takes as it is.
bool same_tensors(std::span<const Operand* const> operands, Op op, Node** nodes) {
  if (info(op).rule == Rule::selected) return false;
  for (size_t i = 0; i < operands.size(); i++) {
    if (operands[i]->is_number() || !operands[i]->tensor().defined()) return false;
    nodes[i] = operands[i]->tensor().node();
    if (nodes[i]->type.dtype != nodes[0]->type.dtype) return false;
  }
  return takes(op, nodes[0]->type.dtype);
}

}  // namespace

Tensor record_pointwise(Op op, std::initializer_list<const Operand*> operands) {
  const std::span<const Operand* const> list(operands.begin(), operands.size());
  const Node* tensor = first_tensor(list);
  if (tensor && small_count(tensor->type.shape) > 0 && !profile) {
    if (Ref<Node> result = small_result(op, list, *tensor)) return first_handle(std::move(result));
  }
  Node* nodes[3];
  if (same_tensors(list, op, nodes)) {
    return record_nodes(op, std::span<Node* const>(nodes, list.size()), {}, list[0]->site());
  }
  for (const Operand* operand : list) {
    if (!operand->is_number()) node_of(operand->tensor(), info(op).name.data(), operand->site());
  }
  const size_t first = info(op).rule == Rule::selected ? 1 : 0;
  const DType dtype = common_dtype(list, first, op);
  const Node* like = nullptr;
  for (const Operand* operand : list) {
    if (!operand->is_number()) {
      like = &node_of(operand->tensor());
      break;
    }
  }
  Tensor converted[3];
  for (size_t i = 0; i < list.size(); i++) {
    const Operand& operand = *list[i];
    const bool condition = i < first;
    if (!operand.is_number() && (condition || node_of(operand.tensor()).type.dtype == dtype)) {
      nodes[i] = operand.tensor().node();
      continue;
    }
    converted[i] = as_tensor(operand, condition ? DType::bool_ : dtype, like);
    nodes[i] = converted[i].node();
  }
  return record_nodes(op, std::span<Node* const>(nodes, list.size()), {}, list[0]->site());
}

int normal_axis(int64_t axis, int rank, const std::string& what) {
  if (axis < -rank || axis >= rank) {
    const std::string ways =
        rank > 0 ? fmt::format("give one from {} to {}", -rank, rank - 1) : "it is a single number";
    fail(ErrorKind::index, "{}: axis {} is outside the {} axes of {}; {}", Call::name_or("axis"),
         axis, rank, what, ways);
  }
  return int(axis < 0 ? axis + rank : axis);
}

int normal_axis(int64_t axis, const Tensor& x) {
  const int rank = x.rank();
  if (axis >= 0 && axis < rank) [[likely]]
    return int(axis);
  return normal_axis(axis, rank, text_of(node_of(x).type));
}

Attributes normal_axes(const Axes& axes, const Tensor& x) {
  Attributes result;
  if (axes.all()) {
    for (int axis = 0; axis < x.rank(); axis++) result.push_back(axis);
    return result;
  }
  for (int64_t axis : axes.list()) {
    if (x.rank() > 0 || (axis != 0 && axis != -1)) result.push_back(normal_axis(axis, x));
  }
  std::sort(result.begin(), result.end());
  const auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) {
    fail(ErrorKind::value, "{}: axis {} is named twice", Call::name_or("axes"), *twice);
  }
  return result;
}

}  // namespace fornax
