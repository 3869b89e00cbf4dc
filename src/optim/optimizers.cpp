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

Tensor adam_update(const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot,
                   const AdamOptions& o, Decay decay) {
  Tensor p = parameter, g = gradient;
  if (o.weight_decay != 0) {
    if (decay == Decay::direct) {
      p = p * (1 - o.learning_rate * o.weight_decay);
    } else {
      g = g + p * o.weight_decay;
    }
  }
  Tensor& mean = slot.tensors[0];
  Tensor& square = slot.tensors[1];
  mean = mean.defined() ? mean * o.beta1 + g * (1 - o.beta1) : g * (1 - o.beta1);
  square = square.defined() ? square * o.beta2 + g * g * (1 - o.beta2) : g * g * (1 - o.beta2);
  const double steps = double(slot.steps);
  const double mean_share = 1 - std::pow(o.beta1, steps);
  const double square_share = 1 - std::pow(o.beta2, steps);
  const Tensor root = square.sqrt() * (1 / std::sqrt(square_share)) + o.epsilon;
  return p - mean * (o.learning_rate / mean_share) / root;
}

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
  optim::step(leaves, memory_,
              [this](const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot) {
                return adam_update(parameter, gradient, slot, options, Decay::joined);
              });
}

void AdamW::step(const Leaves& leaves) {
  const AdamOptions o{options.learning_rate, options.beta1, options.beta2, options.epsilon,
                      options.weight_decay};
  optim::step(leaves, memory_,
              [&o](const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot) {
                return adam_update(parameter, gradient, slot, o, Decay::direct);
              });
}

}  // namespace fornax::optim
