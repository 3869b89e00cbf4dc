// What optimizers remember, and one step of any of them.
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <fornax/optim.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/error.h"
#include "base/join.h"

namespace fornax::optim {
namespace {

// Further on steps could not be told apart as f64, in which formulas raise numbers to them.
constexpr int64_t kMostSteps = int64_t(1) << 53;

// Distinct tracked parameters with a gradient, each under the first of its paths.
std::vector<const Leaf*> with_gradient(const char* op, const Leaves& leaves) {
  std::vector<const Leaf*> found;
  std::set<const Node*> seen;
  bool tracked = false;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::Kind::parameter || !leaf.tensor->requires_grad()) continue;
    tracked = true;
    if (leaf.tensor->grad().defined() && seen.insert(leaf.tensor->node()).second) {
      found.push_back(&leaf);
    }
  }
  if (found.empty()) {
    fail(ErrorKind::value, "{}: none of the module's parameters {}; {}", op,
         tracked ? "has a gradient" : "is tracked",
         tracked ? "call backward() on a loss that was computed with this module"
                 : "make it on an autodiff device or use module.train()");
  }
  return found;
}

// Makes what is remembered fit for use beside the parameter.
void bring_along(Memory::Slot& slot, const Tensor& parameter) {
  for (Tensor& tensor : slot.tensors) {
    if (!tensor.defined()) continue;
    if (tensor.shape() != parameter.shape() || tensor.dtype() != parameter.dtype()) {
      fail(tensor.shape() != parameter.shape() ? ErrorKind::shape : ErrorKind::dtype,
           "step: the state of {} is {}{}, the parameter {}{}; load the state that belongs to the "
           "model",
           slot.path, name_of(tensor.dtype()), text_of(tensor.shape()), name_of(parameter.dtype()),
           text_of(parameter.shape()));
    }
    if (tensor.device() != parameter.device()) tensor = tensor.to(parameter.device());
  }
}

// The steps that a state says were done.
int64_t steps_of(const NamedTensor& entry) {
  const Tensor& value = entry.value;
  if (value.dtype() != DType::i64 || value.element_count() != 1) {
    fail(ErrorKind::value, "load_state: {} is {}{}; it must be one i64", entry.path,
         name_of(value.dtype()), text_of(value.shape()));
  }
  const int64_t steps = value.item<int64_t>();
  if (steps < 0 || steps > kMostSteps) {
    fail(ErrorKind::value, "load_state: {} is {}; it must be within 0 and {}", entry.path, steps,
         kMostSteps);
  }
  return steps;
}

struct Successor {
  const Node* before;
  Tensor after;
};

}  // namespace

Memory::Slot& Memory::at(const std::string& path, size_t hint) {
  if (hint < slots_.size() && slots_[hint].path == path) return slots_[hint];
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return slot.path == path; });
  if (found != slots_.end()) return *found;
  slots_.push_back({path, 0, std::vector<Tensor>(width_)});
  return slots_.back();
}

State Memory::state() const {
  State state;
  for (const Slot& slot : slots_) {
    state.push_back({slot.path + ".steps", full({}, slot.steps, {DType::i64, Device("cpu")})});
    for (size_t i = 0; i < width_; i++) {
      if (slot.tensors[i].defined()) {
        state.push_back({slot.path + "." + names_[i], slot.tensors[i]});
      }
    }
  }
  return state;
}

void Memory::load(const State& state, Site site) {
  const Call call("load_state", site);
  Memory fresh = *this;
  fresh.slots_.clear();
  for (const NamedTensor& entry : state) {
    const size_t dot = std::min(entry.path.rfind('.'), entry.path.size());
    const std::string path = entry.path.substr(0, dot), name = entry.path.substr(dot);
    Slot& slot = fresh.at(path, fresh.slots_.size() - 1);
    if (name == ".steps") {
      slot.steps = steps_of(entry);
      continue;
    }
    const auto known = std::find_if(names_, names_ + width_, [&](const char* candidate) {
      return name.substr(std::min<size_t>(1, name.size())) == candidate;
    });
    if (known == names_ + width_) {
      fail(ErrorKind::value,
           "load_state: \"{}\" is not a state of this optimizer, whose tensors are called {}; was "
           "it saved by another kind of optimizer?",
           entry.path, join(std::span(names_, width_), ", "));
    }
    slot.tensors[size_t(known - names_)] = entry.value.detach();
  }
  *this = std::move(fresh);
}

void step(const Leaves& leaves, Memory& memory, Update update, Site site) {
  const Call call("step", site);
  const NoGrad no_grad;
  std::vector<Device> devices;
  std::vector<Successor> successors;
  size_t position = 0;
  for (const Leaf* leaf : with_gradient("step", leaves)) {
    const Tensor& parameter = *leaf->tensor;
    Memory::Slot& slot = memory.at(leaf->path, position++);
    const Device device = parameter.device();
    bring_along(slot, parameter);
    slot.steps++;
    const Tensor after = update(parameter, parameter.grad(), slot);
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
    successors.push_back({parameter.node(), after.require_grad()});
  }
  for (const Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::Kind::parameter) continue;
    const auto found = std::find_if(
        successors.begin(), successors.end(),
        [&](const Successor& candidate) { return candidate.before == leaf.tensor->node(); });
    if (found != successors.end()) *leaf.tensor = found->after;
  }
  successors.clear();
  for (const Device& device : devices) device.flush();
}

Tensor clip_gradients(const Leaves& leaves, double most, Site site) {
  const Call call("clip_gradients", site);
  if (!(most >= 0)) {
    fail(ErrorKind::value, "clip_gradients: the largest norm is {}; it must not be negative", most);
  }
  const NoGrad no_grad;
  const auto clipped = with_gradient("clip_gradients", leaves);
  const Device device = clipped[0]->tensor->device().inner();
  Tensor total;
  for (const Leaf* leaf : clipped) {
    Tensor gradient = leaf->tensor->grad().detach();
    if (size_of(gradient.dtype()) < size_of(DType::f32)) gradient = gradient.cast(DType::f32);
    const Tensor part = gradient.square().sum().to(device);
    total = total.defined() ? total + part : part;
  }
  const Tensor norm = total.sqrt();
  const Tensor scale = where(is_finite(norm), minimum(most / norm, 1.0), 1.0);
  for (const Leaf* leaf : clipped) {
    const Tensor gradient = leaf->tensor->grad().detach();
    leaf->tensor->set_grad((gradient * scale.to(gradient.device())).cast(gradient.dtype()));
  }
  return norm;
}

double Cosine::operator()(int64_t step) const {
  if (step < warmup) return peak * double(step) / double(warmup);
  if (step >= total) return floor;
  const double done = double(step - warmup) / double(total - warmup);
  return floor + (peak - floor) * 0.5 * (1 + std::cos(done * 3.141592653589793));
}

}  // namespace fornax::optim
