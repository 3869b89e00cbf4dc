// Walking the tapes.  A tape is handled once everything that adds to its gradient has been; the
// counts of such edges are taken first.
#include "grad/engine.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "tensor/record.h"

namespace fornax {
namespace {

std::recursive_mutex& engine_lock() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

// The gradient, summed over the axes along which the operand was repeated, in the operand's dtype.
Tensor fitted(Tensor gradient, const Type& type) {
  if (gradient.shape() != type.shape) {
    const int extra = gradient.rank() - type.shape.rank();
    Attributes axes;
    for (int axis = 0; axis < gradient.rank(); axis++) {
      const bool repeated =
          axis < extra || (type.shape[axis - extra] == 1 && gradient.shape()[axis] != 1);
      if (repeated) axes.push_back(axis);
    }
    if (!axes.empty()) gradient = record(Op::sum, {&gradient}, std::move(axes));
    // Leading axes are gone by now but for their size 1; a gradient that is smaller than the
    // operand is the same everywhere.
    if (extra > 0) gradient = gradient.reshape(type.shape);
    if (gradient.shape() != type.shape) gradient = gradient.expand(type.shape);
  }
  return gradient.cast(type.dtype);
}

// Whether fitted() can bring a gradient of this shape to an operand's.
bool fits(const Shape& gradient, const Shape& operand) {
  const int common = std::min(gradient.rank(), operand.rank());
  for (int i = 1; i <= common; i++) {
    const int64_t from = gradient[gradient.rank() - i], to = operand[operand.rank() - i];
    if (from != to && from != 1 && to != 1) return false;
  }
  return true;
}

class Pass {
 public:
  Pass(std::vector<Root> roots, PassOptions options)
      : options_(std::move(options)), roots_(std::move(roots)) {
    for (const Ref<Tape>& tape : options_.wanted) found_.try_emplace(tape.get());
    for (const Ref<Tape>& tape : options_.stops) stops_.insert(tape.get());
  }

  const PassOptions& options() const { return options_; }

  std::vector<Tensor> run() {
    count_edges();
    if (options_.only_wanted) mark_paths();
    for (Root& root : roots_) add(root.tape.get(), 0, std::move(root.gradient));
    for (Root& root : roots_) {
      if (edges_in_[root.tape.get()] == 0) make_ready(root.tape.get());
    }
    roots_.clear();
    while (!ready_.empty()) {
      const Ref<Tape> tape = std::move(ready_.back());
      ready_.pop_back();
      handle(*tape);
    }
    for (const Ref<Tape>& tape : recomputed_) tape->result = nullptr;
    std::vector<Tensor> result;
    for (const Ref<Tape>& tape : options_.wanted) result.push_back(found_[tape.get()]);
    return result;
  }

 private:
  void count_edges() {
    std::vector<Tape*> stack;
    for (const Root& root : roots_) {
      if (edges_in_.try_emplace(root.tape.get(), 0).second) stack.push_back(root.tape.get());
    }
    while (!stack.empty()) {
      Tape* tape = stack.back();
      stack.pop_back();
      order_.push_back(tape);
      if (stops(*tape)) continue;
      if (tape->spent) fail_spent(*tape);
      for (const Ref<Tape>& edge : tape->edges) {
        if (!edge) continue;
        auto [at, added] = edges_in_.try_emplace(edge.get(), 0);
        at->second++;
        if (added) stack.push_back(edge.get());
      }
    }
  }

  [[noreturn]] static void fail_spent(const Tape& tape) {
    fail(ErrorKind::value,
         "backward: the graph through {} of {} (recorded at {}:{}) has been walked already and was "
         "freed; pass retain_graph = true the first time",
         tape.custom ? tape.custom->name : std::string(info(tape.op).name), text_of(tape.type),
         tape.site.file, tape.site.line);
  }

  // Finds the tapes from which a wanted one can be reached.
  void mark_paths() {
    std::unordered_map<Tape*, std::vector<Tape*>> users;
    std::vector<Tape*> stack;
    for (Tape* tape : order_) {
      for (const Ref<Tape>& edge : tape->edges) {
        if (edge) users[edge.get()].push_back(tape);
      }
    }
    for (const Ref<Tape>& tape : options_.wanted) stack.push_back(tape.get());
    while (!stack.empty()) {
      Tape* tape = stack.back();
      stack.pop_back();
      if (!on_path_.emplace(tape, true).second) continue;
      for (Tape* user : users[tape]) stack.push_back(user);
    }
  }

  bool walks(Tape* tape) const { return !options_.only_wanted || on_path_.count(tape) > 0; }

  bool stops(const Tape& tape) const { return stops_.count(&tape) > 0; }

  void make_ready(Tape* tape) { ready_.push_back(Ref<Tape>(tape)); }

  // Adds to a tape's gradient; `slot` is the result's number at the common tape of a custom op.
  void add(Tape* tape, size_t slot, Tensor gradient) {
    if (!gradient.defined()) return;
    std::vector<Tensor>& slots = gradients_[tape];
    if (slots.size() <= slot) slots.resize(slot + 1);
    slots[slot] = slots[slot].defined() ? slots[slot] + gradient : std::move(gradient);
  }

  void handle(Tape& tape) {
    std::vector<Tensor> gradients = std::move(gradients_[&tape]);
    gradients_.erase(&tape);
    bool any = false;
    for (const Tensor& gradient : gradients) any |= gradient.defined();
    if (!any && flat_.count(&tape) > 0) {
      gradients.assign(1, constant(Device::from_physical(tape.device), tape.type, 0));
      any = true;
    }
    if (stops(tape)) {
      if (any) find(tape, gradients[0]);
      return;
    }
    bool walked = false;
    if (any) {
      if (gradients.size() == 1) deliver(tape, gradients[0]);
      walked = step(tape, gradients);
    }
    for (const Ref<Tape>& edge : tape.edges) {
      if (edge && --edges_in_[edge.get()] == 0) make_ready(edge.get());
    }
    if (walked && !options_.retain_graph) spend(tape);
  }

  // Adds to what is returned for a wanted tape.
  void find(Tape& tape, const Tensor& gradient) {
    const auto at = found_.find(&tape);
    if (at == found_.end()) return;
    at->second = at->second.defined() ? at->second + gradient : gradient;
  }

  void deliver(Tape& tape, Tensor& gradient) {
    for (const Hook& hook : tape.hooks) {
      Tensor changed = hook(gradient);
      if (changed.defined()) gradient = std::move(changed);
    }
    find(tape, gradient);
    const bool leaf = tape.edges.empty();
    if (!options_.accumulate || !(leaf || tape.retain)) return;
    const Tensor sum = tape.gradient ? tensor_of(tape.gradient) + gradient : gradient;
    tape.gradient = Ref<Node>(sum.node());
  }

  // Hands the gradient on to the operands; false where none of them wants it.
  bool step(Tape& tape, std::vector<Tensor>& gradients) {
    bool walked = false;
    for (const Ref<Tape>& edge : tape.edges) walked |= edge && walks(edge.get());
    if (!walked) return false;
    if (!tape.custom && tape.outputs > 1) {  // one of a custom op's results
      add(tape.edges[0].get(), size_t(tape.output), std::move(gradients[0]));
      return true;
    }
    std::vector<Tensor> results =
        tape.custom ? run_custom(tape, gradients) : run_rule(tape, gradients[0]);
    for (size_t i = 0; i < tape.edges.size(); i++) {
      Tape* edge = tape.edges[i].get();
      if (!edge || !walks(edge)) continue;
      if (!results[i].defined()) {
        if (!tape.custom) flat_.insert(edge);
        continue;
      }
      add(edge, 0, fitted(std::move(results[i]), tape.input_types[i]));
    }
    return true;
  }

  std::vector<Tensor> run_rule(Tape& tape, const Tensor& dy) {
    std::vector<Tensor> inputs(tape.edges.size());
    for (size_t i = 0; i < inputs.size(); i++) inputs[i] = operand(tape, i);
    const Saved* saved = info(tape.op).saved;
    bool reads_result = false;
    for (size_t i = 0; i < tape.edges.size(); i++) {
      if (tape.edges[i]) reads_result |= saved[std::min<size_t>(i, 2)].result;
    }
    Tensor y;
    if (reads_result) y = result_of(tape);
    Backward backward(tape, std::move(inputs), std::move(y), dy);
    gradient_rule(tape.op)(backward);
    return std::move(backward.gradients());
  }

  static std::vector<Tensor> run_custom(Tape& tape, std::vector<Tensor>& gradients) {
    gradients.resize(size_t(tape.outputs));
    std::vector<Tensor> results = tape.custom->backward(gradients);
    if (results.size() != tape.edges.size()) {
      fail(ErrorKind::value, "{}: backward returned {} gradients for {} inputs", tape.custom->name,
           results.size(), tape.edges.size());
    }
    for (size_t i = 0; i < results.size(); i++) {
      if (!results[i].defined() || fits(results[i].shape(), tape.input_types[i].shape)) continue;
      fail(ErrorKind::shape, "{}: backward returned the gradient {} for input {}, which is {}",
           tape.custom->name, text_of(node_of(results[i]).type), i, text_of(tape.input_types[i]));
    }
    return results;
  }

  // Operand i as the gradient reads it: kept, computed again, or undefined where it is not read.
  Tensor operand(const Tape& tape, size_t i) {
    const Ref<Tape>& edge = tape.edges[i];
    if (i < tape.inputs.size() && tape.inputs[i]) return handle_to(tape.inputs[i], edge);
    if (edge && edge->recomputable) return result_of(*edge);
    return {};
  }

  Tensor result_of(Tape& tape) {
    if (!tape.result) recompute(tape);
    return handle_to(tape.result, Ref<Tape>(&tape));
  }

  // Runs cheap ops again, operands first, without recursion: chains may be long.
  void recompute(Tape& last) {
    const bool before = set_grad_enabled(false);
    std::vector<Tape*> stack{&last};
    while (!stack.empty()) {
      Tape& tape = *stack.back();
      bool ready = true;
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < tape.edges.size(); i++) {
        if (tape.inputs[i]) {
          inputs.push_back(tensor_of(tape.inputs[i]));
        } else if (tape.edges[i]->result) {
          inputs.push_back(tensor_of(tape.edges[i]->result));
        } else {
          stack.push_back(tape.edges[i].get());
          ready = false;
        }
      }
      if (!ready) continue;
      stack.pop_back();
      if (tape.result) continue;
      std::vector<const Tensor*> operands;
      for (const Tensor& input : inputs) operands.push_back(&input);
      tape.result = Ref<Node>(record(tape.op, operands, tape.attributes, tape.site).node());
      recomputed_.push_back(Ref<Tape>(&tape));
    }
    set_grad_enabled(before);
  }

  Tensor handle_to(const Ref<Node>& node, const Ref<Tape>& tape) const {
    return options_.create_graph && tape ? tracked_tensor(node, tape) : tensor_of(node);
  }

  // A recomputed operand's own operands are still needed by its step, which comes later.
  static void spend(Tape& tape) {
    tape.spent = true;
    for (Ref<Node>& input : tape.inputs) input = nullptr;
    tape.result = nullptr;
    tape.custom = nullptr;
  }

  const PassOptions options_;
  std::vector<Root> roots_;
  std::vector<Tape*> order_;
  std::unordered_map<Tape*, int> edges_in_;
  std::unordered_map<Tape*, bool> on_path_;
  std::unordered_map<Tape*, std::vector<Tensor>> gradients_;
  std::unordered_map<Tape*, Tensor> found_;  // of wanted tapes
  std::unordered_set<const Tape*> stops_;
  std::unordered_set<const Tape*> flat_;  // reached, by an op whose gradient is 0 everywhere
  std::vector<Ref<Tape>> ready_, recomputed_;
};

thread_local Pass* under_way = nullptr;

}  // namespace

std::vector<Tensor> run_backward(std::vector<Root> roots, PassOptions options) {
  std::lock_guard lock(engine_lock());
  Pass pass(std::move(roots), std::move(options));
  struct State {
    explicit State(Pass& pass)
        : outer(std::exchange(under_way, &pass)),
          grads(set_grad_enabled(pass.options().create_graph)) {}
    ~State() {
      under_way = outer;
      set_grad_enabled(grads);
    }
    Pass* outer;
    bool grads;
  } state(pass);
  return pass.run();
}

std::vector<Tensor> continue_backward(std::vector<Root> roots, std::vector<Ref<Tape>> stops) {
  FORNAX_CHECK(under_way);
  return run_backward(std::move(roots), {.accumulate = false,
                                         .create_graph = under_way->options().create_graph,
                                         .retain_graph = under_way->options().retain_graph,
                                         .only_wanted = true,
                                         .wanted = stops,
                                         .stops = stops});
}

}  // namespace fornax
