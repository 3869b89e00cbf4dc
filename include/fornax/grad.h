// Gradients beyond Tensor::backward(): scopes, partial and higher derivatives, hooks, custom ops,
// checkpoints.  A backward pass reads its graph and may run while other threads record.
#pragma once
#include <fornax/function.h>
#include <fornax/tensor.h>

namespace fornax {

// While one lives, ops on this thread are not tracked.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

struct GradOptions {
  std::vector<Tensor> seeds = {};  // one per output; none: outputs are single numbers, seeded by 1
  bool create_graph = false;       // the gradients are tracked themselves
  bool retain_graph = false;       // the graph can be walked again; implied by create_graph
  bool allow_unused = false;  // an input without influence gets an undefined gradient, no error
};
// d(sum of seeds * outputs) / d(each input).  Touches no grad() of any tensor.
// Error(value): an output or input is not tracked, an input has no influence, the graph is spent.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         GradOptions o = {}, Site site = Site::here());

// Calls `hook` with the gradient of x in each backward pass; what it returns, if defined, goes on
// in its place.  Error(value): x is not tracked.
void on_gradient(const Tensor& x, Function<Tensor(const Tensor&)> hook, Site site = Site::here());

// An op of one's own.  backward gets the inputs, the results and one gradient per result (zeros
// where none arrived) and returns one gradient per input, undefined where none flows.
// Differentiable again where backward is written with ops.
struct CustomOp {
  std::string name;
  Function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> forward;
  Function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& results,
                               const std::vector<Tensor>& gradients)>
      backward;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, Site site = Site::here()) const;
};

// f(inputs) of which only the inputs are kept; the backward pass runs f again.  Tensors that f
// captures, parameters for one, get their gradients too.
class Checkpoint {
 public:
  using Body = Function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  explicit Checkpoint(Body body) : body_(std::move(body)) {}
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, Site site = Site::here()) const;

 private:
  Body body_;
};
inline Checkpoint checkpoint(Checkpoint::Body body) { return Checkpoint(std::move(body)); }

}  // namespace fornax
