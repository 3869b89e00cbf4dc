// Walking the tapes.  A tape is handled once everything that adds to its gradient has been; the
// counts of such edges are taken first.
#include "grad/engine.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "base/numbering.h"
#include "tensor/autocast.h"
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

// What a pass knows of a tape that it meets.
struct Visit {
  Ref<Tape> tape;
  int first_edge = -1;  // in Pass::edges_; -1: not walked into
  int edges_in = 0;     // that have not added to the gradient yet
  bool counted = false;
  bool stops = false;    // the walk ends here
  bool on_path = false;  // leads to a wanted one
  bool flat = false;     // reached by an op whose gradient is 0 everywhere
  int wanted = -1;       // its place in what the pass returns
  Tensor gradient;
  std::vector<Part> parts;     // what is to be added to it
  std::vector<Tensor> others;  // of a custom op's further results
};

class Pass {
 public:
  Pass(std::vector<Root> roots, PassOptions options)
      : options_(std::move(options)), roots_(std::move(roots)), found_(options_.wanted.size()) {
    for (size_t i = 0; i < found_.size(); i++) {
      visit_of(options_.wanted[i]).wanted = first_wanted(i);
    }
    for (const Ref<Tape>& tape : options_.stops) visit_of(tape).stops = true;
  }

  const PassOptions& options() const { return options_; }

  std::vector<Tensor> run() {
    count_edges();
    if (options_.only_wanted) mark_paths();
    for (Root& root : roots_) add(number_of(root.tape), 0, std::move(root.gradient));
    for (const Root& root : roots_) {
      const int number = number_of(root.tape);
      if (visits_[size_t(number)].edges_in == 0) ready_.push_back(number);
    }
    roots_.clear();
    while (!ready_.empty()) {
      const int number = ready_.back();
      ready_.pop_back();
      handle(number);
    }
    for (const Ref<Tape>& tape : recomputed_) tape->result = nullptr;
    for (size_t i = 0; i < found_.size(); i++) found_[i] = found_[size_t(first_wanted(i))];
    return std::move(found_);
  }

 private:
  int number_of(const Ref<Tape>& tape) {
    const int number = numbers_.number(tape.get());
    if (number == int(visits_.size())) visits_.emplace_back().tape = tape;
    return number;
  }
  Visit& visit_of(const Ref<Tape>& tape) { return visits_[size_t(number_of(tape))]; }

  // Where the i-th wanted tape is listed first.
  int first_wanted(size_t i) const {
    const auto& wanted = options_.wanted;
    return int(std::find(wanted.begin(), wanted.end(), wanted[i]) - wanted.begin());
  }

  // The numbers of a tape's operands, -1 where they have no tape.
  std::span<const int> edges_of(const Visit& visit) const {
    if (visit.first_edge < 0) return {};
    return {&edges_[size_t(visit.first_edge)], visit.tape->edges.size()};
  }

  void count_edges() {
    std::vector<int> stack;
    const auto meet = [&](int number) {
      Visit& visit = visits_[size_t(number)];
      if (!std::exchange(visit.counted, true)) stack.push_back(number);
      return number;
    };
    for (const Root& root : roots_) meet(number_of(root.tape));
    while (!stack.empty()) {
      const size_t number = size_t(stack.back());
      stack.pop_back();
      if (visits_[number].stops) continue;
      const Ref<Tape> tape = visits_[number].tape;  // more visits move them
      if (tape->spent) fail_spent(*tape);
      visits_[number].first_edge = int(edges_.size());
      for (const Ref<Tape>& edge : tape->edges) {
        edges_.push_back(edge ? meet(number_of(edge)) : -1);
        if (edge) visits_[size_t(edges_.back())].edges_in++;
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
    std::vector<std::vector<int>> users(visits_.size());
    std::vector<int> stack;
    for (size_t n = 0; n < visits_.size(); n++) {
      for (const int edge : edges_of(visits_[n])) {
        if (edge >= 0) users[size_t(edge)].push_back(int(n));
      }
      if (visits_[n].wanted >= 0) stack.push_back(int(n));
    }
    while (!stack.empty()) {
      const size_t number = size_t(stack.back());
      stack.pop_back();
      if (std::exchange(visits_[number].on_path, true)) continue;
      stack.insert(stack.end(), users[number].begin(), users[number].end());
    }
  }

  bool walks(int number) const {
    return number >= 0 && (!options_.only_wanted || visits_[size_t(number)].on_path);
  }

  // Adds to a tape's gradient; `slot` is the result's number at the common tape of a custom op.
  void add(int number, size_t slot, Tensor gradient) {
    if (!gradient.defined()) return;
    Visit& visit = visits_[size_t(number)];
    if (visit.others.size() < slot) visit.others.resize(slot);
    Tensor& sum = slot == 0 ? visit.gradient : visit.others[slot - 1];
    sum = sum.defined() ? sum + gradient : std::move(gradient);
  }

  void handle(int number) {
    Visit& visit = visits_[size_t(number)];
    Tape& tape = *visit.tape;
    bool walked = moves_parts(visit);
    if (walked) {
      for (const Part& part : std::exchange(visit.parts, {})) {
        visits_[size_t(edges_of(visit)[0])].parts.push_back(before_permute(part, tape.attributes));
      }
    } else {
      Tensor gradient = gradient_of(visit);
      const bool any = gradient.defined() || !visit.others.empty();
      if (visit.stops) {
        if (any) find(visit, gradient);
        return;
      }
      if (any) {
        if (visit.others.empty()) deliver(visit, gradient);
        walked = step(visit, std::move(gradient));
      }
    }
    for (const int edge : edges_of(visit)) {
      if (edge >= 0 && --visits_[size_t(edge)].edges_in == 0) ready_.push_back(edge);
    }
    if (walked && !options_.retain_graph) spend(tape);
  }

  // Parts go through a permute that nobody looks at: the whole then lies as its reader wants it.
  bool moves_parts(const Visit& visit) const {
    const Tape& tape = *visit.tape;
    return !visit.parts.empty() && !visit.gradient.defined() && tape.op == Op::permute &&
           !visit.stops && visit.wanted < 0 && tape.hooks.empty() && !tape.retain &&
           walks(edges_of(visit)[0]);
  }

  static Tensor gradient_of(Visit& visit) {
    const Tape& tape = *visit.tape;
    Tensor gradient = std::move(visit.gradient);
    if (!visit.parts.empty()) {
      const Tensor whole = joined(std::exchange(visit.parts, {}), tape.type.shape);
      gradient = gradient.defined() ? gradient + whole : whole;
    }
    if (gradient.defined() || !visit.flat) return gradient;
    return constant(Device::from_physical(tape.device), tape.type, 0);
  }

  // Adds to what is returned for a wanted tape.
  void find(const Visit& visit, const Tensor& gradient) {
    if (visit.wanted < 0) return;
    Tensor& sum = found_[size_t(visit.wanted)];
    sum = sum.defined() ? sum + gradient : gradient;
  }

  void deliver(const Visit& visit, Tensor& gradient) {
    Tape& tape = *visit.tape;
    for (const Hook& hook : tape.hooks) {
      Tensor changed = run_hook(hook, gradient);
      if (changed.defined()) gradient = std::move(changed);
    }
    find(visit, gradient);
    const bool leaf = tape.edges.empty();
    if (!options_.accumulate || !(leaf || tape.retain)) return;
    const Tensor sum = tape.gradient ? tensor_of(tape.gradient) + gradient : gradient;
    tape.gradient = Ref<Node>(sum.node());
  }

  static Tensor run_hook(const Hook& hook, const Tensor& gradient) {
    Tensor changed;
    {
      const Call::Pause users;
      changed = hook(gradient);
    }
    if (!changed.defined()) return changed;
    const Node &old = node_of(gradient), &made = node_of(changed);
    if (made.type != old.type) {
      fail(ErrorKind::shape, "on_gradient: the hook returned {} for a gradient that is {}",
           text_of(made.type), text_of(old.type));
    }
    expect_device("on_gradient", changed, old.device);
    return changed;
  }

  // Hands the gradient on to the operands; false where none of them wants it.
  bool step(Visit& visit, Tensor gradient) {
    Tape& tape = *visit.tape;
    const std::span<const int> edges = edges_of(visit);
    if (std::none_of(edges.begin(), edges.end(), [&](int edge) { return walks(edge); })) {
      return false;
    }
    if (tape.custom) {
      std::vector<Tensor> gradients = std::move(visit.others);
      gradients.insert(gradients.begin(), std::move(gradient));
      hand_on(tape, edges, run_custom(tape, gradients));
    } else if (tape.outputs > 1) {  // one of a custom op's results
      add(edges[0], size_t(tape.output), std::move(gradient));
    } else {
      Backward backward(tape, read_result(tape), gradient);
      for (size_t i = 0; i < edges.size(); i++) backward.read(operand(tape, i));
      gradient_rule(tape.op)(backward);
      if (Part& part = backward.part(); part.gradient.defined()) {
        part.gradient = part.gradient.cast(tape.input_types[0].dtype);
        visits_[size_t(edges[0])].parts.push_back(std::move(part));
      } else {
        hand_on(tape, edges, backward.gradients());
      }
    }
    return true;
  }

  template <class Gradients>
  void hand_on(const Tape& tape, std::span<const int> edges, Gradients&& gradients) {
    for (size_t i = 0; i < edges.size(); i++) {
      if (!walks(edges[i])) continue;
      if (gradients[i].defined()) {
        add(edges[i], 0, fitted(std::move(gradients[i]), tape.input_types[i]));
      } else if (!tape.custom) {
        visits_[size_t(edges[i])].flat = true;
      }
    }
  }

  // The result, where the gradient reads it.
  Tensor read_result(Tape& tape) {
    const Saved* saved = info(tape.op).saved;
    for (size_t i = 0; i < tape.edges.size(); i++) {
      if (tape.edges[i] && saved[std::min<size_t>(i, 2)].result) return result_of(tape);
    }
    return {};
  }

  static std::vector<Tensor> run_custom(Tape& tape, std::vector<Tensor>& gradients) {
    gradients.resize(size_t(tape.outputs));
    std::vector<Tensor> results = tape.custom->backward(gradients);
    if (results.size() != tape.edges.size()) {
      fail(ErrorKind::value, "{}: backward returned {} gradients for {} inputs", tape.custom->name,
           results.size(), tape.edges.size());
    }
    for (size_t i = 0; i < results.size(); i++) {
      if (!results[i].defined()) continue;
      if (const Ref<Tape>& edge = tape.edges[i]) {
        expect_device(tape.custom->name.c_str(), results[i], edge->device);
      }
      if (fits(results[i].shape(), tape.input_types[i].shape)) continue;
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
    const Untracked off;
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
  Numbering numbers_;
  std::vector<Visit> visits_;  // by number; all are there before the first is handled
  std::vector<int> edges_;     // of walked tapes
  std::vector<Tensor> found_;  // of wanted tapes
  std::vector<int> ready_;
  std::vector<Ref<Tape>> recomputed_;
};

thread_local Pass* under_way = nullptr;

}  // namespace

std::vector<Tensor> run_backward(std::vector<Root> roots, PassOptions options) {
  std::lock_guard lock(engine_lock());
  Pass pass(std::move(roots), std::move(options));
  struct State {
    explicit State(Pass& pass)
        : outer(std::exchange(under_way, &pass)),
          grads(set_grad_enabled(pass.options().create_graph)),
          products(set_autocast({})) {}
    ~State() {
      under_way = outer;
      set_grad_enabled(grads);
      set_autocast(products);
    }
    Pass* outer;
    bool grads;
    std::optional<DType> products;  // gradients are computed as the values were
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
