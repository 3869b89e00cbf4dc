// The formulas of the optimizers.  Numbers that change from step to step enter as operands, so
// every step records the same graph.
#include <fornax/ops.h>
#include <fornax/optim.h>

#include <cmath>

#include "base/error.h"

namespace fornax::optim {
namespace {

void check(const char* name, double value, bool ok, const char* rule) {
  if (!ok) fail(ErrorKind::value, "{} is {}; it must be {}", name, value, rule);
}
void check_not_negative(const char* name, double value) {
  check(name, value, std::isfinite(value) && value >= 0, "finite and at least 0");
}

void check_options(const SgdOptions& o, Site site) {
  const Call call("sgd", site);
  check_not_negative("sgd: learning_rate", o.learning_rate);
  check_not_negative("sgd: momentum", o.momentum);
  check("sgd: dampening", o.dampening, std::isfinite(o.dampening), "finite");
  check_not_negative("sgd: weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
    fail(ErrorKind::value,
         "sgd: nesterov needs momentum and no dampening; momentum is {}, dampening {}", o.momentum,
         o.dampening);
  }
}

void check_options(const AdamOptions& o, Site site) {
  const Call call("adam", site);
  check_not_negative("adam: learning_rate", o.learning_rate);
  check("adam: beta1", o.beta1, o.beta1 >= 0 && o.beta1 < 1, "within [0, 1)");
  check("adam: beta2", o.beta2, o.beta2 >= 0 && o.beta2 < 1, "within [0, 1)");
  check_not_negative("adam: epsilon", o.epsilon);
  check_not_negative("adam: weight_decay", o.weight_decay);
}

// AdamW differs by its defaults and by Decay.
AdamOptions adam_options(const AdamWOptions& o) {
  return {o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay};
}

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

Sgd::Sgd(SgdOptions o, Site site) : options(o) { check_options(options, site); }

void Sgd::step(const Leaves& leaves, Site site) {
  const SgdOptions& o = options;
  check_options(o, site);
  const auto update = [&o](const Tensor& parameter, const Tensor& gradient, Memory::Slot& slot) {
    Tensor g = gradient;
    if (o.weight_decay != 0) g = g + parameter * o.weight_decay;
    if (o.momentum != 0) {
      Tensor& velocity = slot.tensors[0];
      velocity = velocity.defined() ? velocity * o.momentum + g * (1 - o.dampening) : g;
      g = o.nesterov ? g + velocity * o.momentum : velocity;
    }
    return parameter - g * o.learning_rate;
  };
  optim::step(leaves, memory_, update, site);
}

Adam::Adam(AdamOptions o, Site site) : options(o) { check_options(options, site); }

void Adam::step(const Leaves& leaves, Site site) {
  check_options(options, site);
  optim::step(leaves, memory_, AdamUpdate(options, Decay::joined), site);
}

AdamW::AdamW(AdamWOptions o, Site site) : options(o) { check_options(adam_options(o), site); }

void AdamW::step(const Leaves& leaves, Site site) {
  const AdamOptions o = adam_options(options);
  check_options(o, site);
  optim::step(leaves, memory_, AdamUpdate(o, Decay::direct), site);
}

}  // namespace fornax::optim
