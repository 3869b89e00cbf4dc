// The formulas of the optimizers.  Numbers that change from step to step enter as operands, so
// every step records the same graph.
#include <fornax/ops.h>
#include <fornax/optim.h>

#include <cmath>

#include "base/error.h"

namespace fornax::optim {
namespace {

// Whether weight decay shrinks the parameter directly instead of joining the gradient.
enum class Decay { joined, direct };

// The numbers of a step as tensors, which parameters of one dtype and device share.
struct AdamNumbers {
  Tensor decay, mean_rate, square_rate, root_factor, epsilon, rate;
  int64_t steps = 0;

  bool serves(const Tensor& parameter, int64_t step) const {
    return steps == step && rate.dtype() == parameter.dtype() &&
           rate.device() == parameter.device().inner();
  }
};

AdamNumbers adam_numbers(const Tensor& parameter, int64_t steps, const AdamOptions& o,
                         Decay decay) {
  const auto number = [&](double value) {
    return full({}, value, {parameter.dtype(), parameter.device().inner()});
  };
  const double mean_share = 1 - std::pow(o.beta1, double(steps));
  const double square_share = 1 - std::pow(o.beta2, double(steps));
  return {.decay = number(decay == Decay::direct ? 1 - o.learning_rate * o.weight_decay
                                                 : o.weight_decay),
          .mean_rate = number(1 - o.beta1),
          .square_rate = number(1 - o.beta2),
          .root_factor = number(1 / std::sqrt(square_share)),
          .epsilon = number(o.epsilon),
          .rate = number(-o.learning_rate / mean_share),
          .steps = steps};
}

// The running mean a step later; it begins at 0.
Tensor moved_on(const Tensor& mean, const Tensor& next, const Tensor& rate) {
  return mean.defined() ? mul_add(next - mean, rate, mean) : next * rate;
}

// Adam's update (Kingma and Ba, "Adam", 2015, algorithm 1), with decay as in Loshchilov and Hutter,
// "Decoupled weight decay regularization", 2019, algorithm 2.
class AdamUpdate {
 public:
  AdamUpdate(const AdamOptions& options, Decay decay) : options_(options), decay_(decay) {}

  Tensor operator()(const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot) {
    if (!numbers_.serves(parameter, slot.steps)) {
      numbers_ = adam_numbers(parameter, slot.steps, options_, decay_);
    }
    const AdamNumbers& n = numbers_;
    Tensor p = parameter, g = gradient;
    if (options_.weight_decay != 0) {
      decay_ == Decay::direct ? p = p* n.decay : g = mul_add(p, n.decay, g);
    }
    Tensor& mean = slot.tensors[0];
    Tensor& square = slot.tensors[1];
    mean = moved_on(mean, g, n.mean_rate);
    square = moved_on(square, g.square(), n.square_rate);
    return mul_add(mean / mul_add(square.sqrt(), n.root_factor, n.epsilon), n.rate, p);
  }

 private:
  const AdamOptions options_;
  const Decay decay_;
  AdamNumbers numbers_;
};

}  // namespace

void Sgd::step(const Leaves& leaves) {
  const SgdOptions& o = options;
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) {
    fail(ErrorKind::value,
         "sgd: nesterov needs momentum and no dampening; momentum is {}, dampening {}", o.momentum,
         o.dampening);
  }
  optim::step(leaves, memory_,
              [&o](const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot) {
                Tensor g = gradient;
                if (o.weight_decay != 0) g = g + parameter * o.weight_decay;
                if (o.momentum != 0) {
                  Tensor& velocity = slot.tensors[0];
                  velocity = velocity.defined() ? velocity * o.momentum + g * (1 - o.dampening) : g;
                  g = o.nesterov ? g + velocity * o.momentum : velocity;
                }
                return parameter - g * o.learning_rate;
              });
}

void Adam::step(const Leaves& leaves) {
  optim::step(leaves, memory_, AdamUpdate(options, Decay::joined));
}

void AdamW::step(const Leaves& leaves) {
  const AdamOptions o{options.learning_rate, options.beta1, options.beta2, options.epsilon,
                      options.weight_decay};
  optim::step(leaves, memory_, AdamUpdate(o, Decay::direct));
}

}  // namespace fornax::optim
