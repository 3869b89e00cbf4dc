// Optimizers, in PyTorch's formulas, clipping and learning-rate schedules.
//
//   optim::Adam adam({.learning_rate = 1e-3});
//   loss.backward();
//   adam.step(net);            // net's parameters are new values without gradients
//   adam.options.learning_rate *= 0.5;
//
// A step replaces every tracked parameter that has a gradient and hands the recorded work to the
// device.  What an optimizer remembers is kept by the parameter's path in the module, so it
// survives saving, loading and moving.  One optimizer serves one module, from one thread at a time.
#pragma once
#include <fornax/function.h>
#include <fornax/module.h>

namespace fornax::optim {

// What an optimizer remembers, by parameter path.
class Memory {
 public:
  struct Slot {
    std::string path;
    int64_t steps = 0;
    std::vector<Tensor> tensors;  // undefined before the first step
  };
  // `names` are what the tensors of a slot are called in a state, `count` of them.
  template <size_t count>
  explicit Memory(const char* const (&names)[count]) : names_(names), width_(count) {}

  // The slot of `path`, made where there is none; `hint` is where it probably is.
  Slot& at(const std::string& path, size_t hint);
  // "conv.weight.steps" and "conv.weight.<name>" per parameter, in the order of the first step.
  State state() const;
  // Error(value): a path that does not end in one of the names, or steps that are no count of
  // steps; nothing is changed then.
  void load(const State& state, Site site = Site::here());
  size_t size() const { return slots_.size(); }

 private:
  const char* const* names_;
  size_t width_;
  std::vector<Slot> slots_;
};

// The successor of a parameter, from its gradient and what is remembered of it.
using Update =
    FunctionRef<Tensor(const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot)>;
// One step of any optimizer.  Error(value): no parameter has a gradient.  Error(shape),
// Error(dtype): what was loaded for a parameter is of another type than it.
void step(const Leaves& leaves, Memory& memory, Update update, Site site = Site::here());

// Options are checked where an optimizer is made and at each step, as they may change between:
// Error(value) names the one that is out of its range, of which NaN always is.

struct SgdOptions {
  double learning_rate = 0.01;  // this and the next: finite, at least 0
  double momentum = 0;
  double dampening = 0;     // of gradients that enter the momentum, from the second step on; finite
  double weight_decay = 0;  // added to the gradient: L2; finite, at least 0
  bool nesterov = false;    // needs momentum and no dampening
};
class Sgd {
 public:
  explicit Sgd(SgdOptions o = {}, Site site = Site::here());
  template <Module M>
  void step(M& module, Site site = Site::here()) {
    step(leaves(module), site);
  }
  void step(const Leaves& leaves, Site site = Site::here());
  State state() const { return memory_.state(); }
  void load_state(const State& state, Site site = Site::here()) { memory_.load(state, site); }

  SgdOptions options;

 private:
  static constexpr const char* kNames[] = {"momentum"};
  Memory memory_{kNames};
};

struct AdamOptions {
  double learning_rate = 1e-3;        // this, epsilon and weight_decay: finite, at least 0
  double beta1 = 0.9, beta2 = 0.999;  // within [0, 1)
  double epsilon = 1e-8;              // outside the root
  double weight_decay = 0;            // added to the gradient: L2
};
class Adam {
 public:
  explicit Adam(AdamOptions o = {}, Site site = Site::here());
  template <Module M>
  void step(M& module, Site site = Site::here()) {
    step(leaves(module), site);
  }
  void step(const Leaves& leaves, Site site = Site::here());
  State state() const { return memory_.state(); }
  void load_state(const State& state, Site site = Site::here()) { memory_.load(state, site); }

  AdamOptions options;

 private:
  static constexpr const char* kNames[] = {"mean", "square"};
  Memory memory_{kNames};
};

struct AdamWOptions {
  double learning_rate = 1e-3;  // ranges as in AdamOptions
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;       // outside the root
  double weight_decay = 0.01;  // shrinks the parameter directly
};
class AdamW {
 public:
  explicit AdamW(AdamWOptions o = {}, Site site = Site::here());
  template <Module M>
  void step(M& module, Site site = Site::here()) {
    step(leaves(module), site);
  }
  void step(const Leaves& leaves, Site site = Site::here());
  State state() const { return memory_.state(); }
  void load_state(const State& state, Site site = Site::here()) { memory_.load(state, site); }

  AdamWOptions options;

 private:
  static constexpr const char* kNames[] = {"mean", "square"};
  Memory memory_{kNames};
};

template <class T>
concept Optimizer = requires(T& optimizer, const T& fixed, const Leaves& leaves,
                             const State& state) {
  optimizer.step(leaves);
  optimizer.load_state(state);
  { fixed.state() } -> std::same_as<State>;
};

// Scales all gradients by one factor so that their joint 2-norm is at most `most`; call it once,
// after the last backward().  Returns the norm before, unread.  A norm that is not finite leaves
// the gradients as they are.  Error(value): no parameter has a gradient.
Tensor clip_gradients(const Leaves& leaves, double most, Site site = Site::here());
template <Module M>
Tensor clip_gradients(M& module, double most, Site site = Site::here()) {
  return clip_gradients(leaves(module), most, site);
}

// Rises linearly from 0 for `warmup` steps, then falls along half a cosine from `peak` to `floor`,
// where it stays from step `total` on.  Call it with the step's number, the first being 0.
struct Cosine {
  double peak = 1e-3, floor = 0;
  int64_t total = 1, warmup = 0;
  double operator()(int64_t step) const;
};

}  // namespace fornax::optim
