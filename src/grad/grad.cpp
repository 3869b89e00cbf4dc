// The public functions: backward(), grad(), hooks, custom ops, checkpoints.
#include <fornax/grad.h>

#include "backend/registry.h"
#include "grad/engine.h"
#include "tensor/autocast.h"
#include "tensor/record.h"

namespace fornax {
namespace {

Ref<Tape> tape_or_fail(const Tensor& tensor, const char* name, const char* what) {
  Ref<Tape> tape = tape_of(tensor);
  if (!tape) {
    fail(ErrorKind::value,
         "{}: {} {} is not tracked; nothing that it came from has require_grad(), or it was made "
         "under NoGrad or by an op without gradient",
         name, what, text_of(node_of(tensor).type));
  }
  return tape;
}

Tensor seed_of(const Tensor& output, const Tensor* seed, const char* name) {
  const Type& type = node_of(output).type;
  if (seed && seed->defined()) {
    expect_device(name, *seed, node_of(output).device);
    if (node_of(*seed).type != type) {
      fail(ErrorKind::shape, "{}: the gradient given is {}, the output {}", name,
           text_of(node_of(*seed).type), text_of(type));
    }
    return *seed;
  }
  if (type.shape.element_count() != 1) {
    fail(ErrorKind::value, "{}: the output {} is not a single number; reduce it or give a gradient",
         name, text_of(type));
  }
  return constant(output.device(), type, 1);
}

}  // namespace

NoGrad::NoGrad() : before_(set_grad_enabled(false)) {}
NoGrad::~NoGrad() { set_grad_enabled(before_); }

void Tensor::backward(BackwardOptions o, Site site) const { backward(Tensor(), o, site); }

void Tensor::backward(const Tensor& gradient, BackwardOptions o, Site site) const {
  Call call("backward", site);
  Root root{tape_or_fail(*this, "backward", "the value"), seed_of(*this, &gradient, "backward")};
  run_backward({std::move(root)}, {.retain_graph = o.retain_graph, .wanted = {}, .stops = {}});
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         GradOptions o, Site site) {
  Call call("grad", site);
  if (!o.seeds.empty() && o.seeds.size() != outputs.size()) {
    fail(ErrorKind::value, "grad: {} seeds for {} outputs", o.seeds.size(), outputs.size());
  }
  PassOptions options{.accumulate = false,
                      .create_graph = o.create_graph,
                      .retain_graph = o.retain_graph || o.create_graph,
                      .only_wanted = true,
                      .wanted = {},
                      .stops = {}};
  for (const Tensor& input : inputs) {
    options.wanted.push_back(tape_or_fail(input, "grad", "the input"));
  }
  std::vector<Root> roots;
  for (size_t i = 0; i < outputs.size(); i++) {
    const Tensor* seed = o.seeds.empty() ? nullptr : &o.seeds[i];
    roots.push_back(
        {tape_or_fail(outputs[i], "grad", "the output"), seed_of(outputs[i], seed, "grad")});
  }
  std::vector<Tensor> gradients = run_backward(std::move(roots), std::move(options));
  for (size_t i = 0; i < inputs.size(); i++) {
    if (gradients[i].defined() || o.allow_unused) continue;
    fail(ErrorKind::value,
         "grad: input {} ({}) has no influence on the outputs; pass allow_unused = true if it may",
         i, text_of(node_of(inputs[i]).type));
  }
  return gradients;
}

void on_gradient(const Tensor& x, Function<Tensor(const Tensor&)> hook, Site site) {
  Call call("on_gradient", site);
  if (!hook) fail(ErrorKind::value, "on_gradient: the hook is empty; give it a function");
  tape_or_fail(x, "on_gradient", "the value")->hooks.push_back(std::move(hook));
}

namespace {

// Fresh handles to the values, so that tapes can be given to them.
std::vector<Tensor> untracked(const std::vector<Tensor>& values) {
  std::vector<Tensor> fresh;
  for (const Tensor& value : values) fresh.push_back(value.detach());
  return fresh;
}

bool any_tracked(const std::vector<Tensor>& values) {
  for (const Tensor& value : values) {
    if (value.requires_grad()) return true;
  }
  return false;
}

void add_edge(Tape& tape, Ref<Tape> edge, const Type& type) {
  tape.edges.push_back(std::move(edge));
  tape.input_types.push_back(type);
  tape.inputs.emplace_back();
}

// The tape of result i of the custom op whose common tape is given.
Ref<Tape> result_tape(Tape& common, const Tensor& result, size_t i) {
  if (common.outputs == 1) return Ref<Tape>(&common);
  Ref<Tape> tape = custom_tape(result, {}, nullptr);
  add_edge(*tape, Ref<Tape>(&common), node_of(result).type);
  tape->output = int(i);
  tape->outputs = common.outputs;
  return tape;
}

// Gives all floating results tapes that lead to the common one.
void attach(std::vector<Tensor>& results, Tape& common) {
  common.outputs = int(results.size());
  for (size_t i = 0; i < results.size(); i++) {
    if (is_floating(results[i].dtype())) set_tape(results[i], result_tape(common, results[i], i));
  }
}

// The results of a custom op as its gradient reads them: with their history, where the gradient is
// to be differentiated.
std::vector<Tensor> handles_to(const std::vector<Ref<Node>>& values, Tape& common) {
  std::vector<Tensor> handles;
  for (size_t i = 0; i < values.size(); i++) {
    handles.push_back(tensor_of(values[i]));
    if (!grad_enabled() || !is_floating(handles[i].dtype())) continue;
    handles[i] = tracked_tensor(values[i], result_tape(common, handles[i], i));
  }
  return handles;
}

// Gradients where none arrived become zeros.
std::vector<Tensor> filled(std::vector<Tensor> gradients, const std::vector<Tensor>& results) {
  for (size_t i = 0; i < gradients.size(); i++) {
    if (!gradients[i].defined()) gradients[i] = zeros_like(results[i]);
  }
  return gradients;
}

}  // namespace

std::vector<Tensor> CustomOp::operator()(const std::vector<Tensor>& inputs, Site site) const {
  Call call(name.c_str(), site);
  if (!forward) fail(ErrorKind::value, "{}: the op has no forward; give it a function", name);
  std::vector<Tensor> results;
  for (const Tensor& input : inputs) note_read(input);
  {
    const NoGrad off;
    const Call::Pause users;
    results = forward(inputs);
  }
  results = untracked(results);
  if (!grad_enabled() || !any_tracked(inputs) || results.empty()) return results;
  auto custom = std::make_shared<CustomGradient>();
  custom->name = name;
  // The results are kept as values and the tape by its address only: a handle or a reference would
  // keep the tape that keeps this function.
  std::vector<Ref<Node>> values;
  for (const Tensor& result : results) values.emplace_back(result.node());
  const Ref<Tape> common = custom_tape(results[0], inputs, custom);
  custom->backward = [inputs, values, tape = common.get(), name = name,
                      backward = backward](const std::vector<Tensor>& gradients) {
    if (!backward) {
      fail(ErrorKind::value, "{}: the op has no backward; give it one, or detach() what it reads",
           name);
    }
    const std::vector<Tensor> kept = handles_to(values, *tape);
    const std::vector<Tensor> all = filled(gradients, kept);
    const Call::Pause users;
    return backward(inputs, kept, all);
  };
  attach(results, *common);
  return results;
}

namespace {

// A device's random numbers as they were, while this lives.
class SeedState {
 public:
  SeedState(PhysicalDevice& device, uint64_t seed, uint64_t counter)
      : device_(device),
        seed_(device.seed.exchange(seed)),
        counter_(device.counter.exchange(counter)) {}
  ~SeedState() {
    device_.seed.store(seed_);
    device_.counter.store(counter_);
  }

 private:
  PhysicalDevice& device_;
  uint64_t seed_, counter_;
};

// The value as a result of its own, one step away from it: where the pass through a function that
// is run again ends.
Tensor one_step_from(const Tensor& value) {
  Ref<Tape> history = tape_of(value);
  if (!history) return value;
  Tensor alias = value.detach();
  Ref<Tape> tape = custom_tape(alias, {value}, nullptr);
  tape->op = Op::detach;
  set_tape(alias, std::move(tape));
  return alias;
}

std::vector<Tensor> run_users(const Checkpoint::Body& function, const std::vector<Tensor>& inputs) {
  const Call::Pause users;
  return function(inputs);
}

// Runs the function again with gradients on, in the precision that it ran in, and continues the
// pass through it.  Returns the gradients of the inputs, then of what the function captured.
std::vector<Tensor> walk_again(const Checkpoint::Body& function, const std::vector<Tensor>& inputs,
                               const std::vector<Ref<Tape>>& captured,
                               std::optional<DType> products,
                               const std::vector<Tensor>& gradients) {
  std::vector<Tensor> aliases;
  std::vector<Ref<Tape>> stops;
  std::vector<Root> roots;
  const bool before = set_grad_enabled(true);
  set_autocast(products);
  for (const Tensor& input : inputs) {
    aliases.push_back(one_step_from(input));
    if (Ref<Tape> tape = tape_of(aliases.back())) stops.push_back(std::move(tape));
  }
  stops.insert(stops.end(), captured.begin(), captured.end());
  const std::vector<Tensor> outputs = run_users(function, aliases);
  set_autocast({});
  set_grad_enabled(before);
  for (size_t i = 0; i < outputs.size(); i++) {
    if (!gradients[i].defined()) continue;
    if (Ref<Tape> tape = tape_of(outputs[i])) roots.push_back({std::move(tape), gradients[i]});
  }
  std::vector<Tensor> found = continue_backward(std::move(roots), stops);
  std::vector<Tensor> result;
  size_t next = 0;
  for (const Tensor& alias : aliases) {
    result.push_back(alias.requires_grad() ? found[next++] : Tensor());
  }
  result.insert(result.end(), found.begin() + ptrdiff_t(next), found.end());
  return result;
}

}  // namespace

std::vector<Tensor> Checkpoint::operator()(const std::vector<Tensor>& inputs, Site site) const {
  Call call("checkpoint", site);
  if (!body_) fail(ErrorKind::value, "checkpoint: the function is empty; give it one");
  if (!grad_enabled()) return run_users(body_, inputs);
  const Device device = inputs.empty() ? Device() : inputs[0].device();
  PhysicalDevice& physical = physical_device(device.physical());
  const uint64_t seed = physical.seed.load(), counter = physical.counter.load();
  std::vector<Tensor> results;
  std::vector<Ref<Tape>> captured;
  {
    ReadList reads;
    results = run_users(body_, untracked(inputs));
    for (const Tensor& result : results) note_read(result);
    captured = reads.tapes();
  }
  results = untracked(results);
  if (results.empty() || (captured.empty() && !any_tracked(inputs))) return results;
  auto custom = std::make_shared<CustomGradient>();
  custom->name = "checkpoint";
  custom->backward = [inputs, captured, function = body_, &physical, seed, counter,
                      products = autocast()](const std::vector<Tensor>& gradients) {
    SeedState state(physical, seed, counter);
    return walk_again(function, inputs, captured, products, gradients);
  };
  const Ref<Tape> common = custom_tape(results[0], inputs, std::move(custom));
  for (const Ref<Tape>& tape : captured) add_edge(*common, tape, tape->type);
  attach(results, *common);
  return results;
}

}  // namespace fornax
