// Losses.  Halves are computed in f32 and results go back to the input's dtype.
#include <fornax/ops.h>

#include <cmath>

#include "tensor/compose.h"

namespace fornax {
namespace {

Tensor finished(const Tensor& loss, Reduction reduction, DType dtype) {
  Tensor result = loss;
  if (reduction == Reduction::mean) result = loss.mean();
  if (reduction == Reduction::sum) result = loss.sum();
  return converted(result, summed_dtype(dtype));
}

// Losses of unequal shapes would broadcast, which is never meant.
void check_same_shape(const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape()) {
    fail(ErrorKind::shape, "{}: x is {} and the target {}; their shapes must be equal",
         Call::name_or("loss"), text_of(node_of(x).type), text_of(node_of(target).type));
  }
}

// ── Classification ───────────────────────────────────────────────────────────────────────────────
// The class axis is 1, or 0 where there is no batch.
int class_axis(const Tensor& logits) {
  if (logits.rank() == 0) {
    fail(ErrorKind::shape, "{}: logits need a class axis, got {}", Call::name_or("cross_entropy"),
         text_of(node_of(logits).type));
  }
  return logits.rank() == 1 ? 0 : 1;
}

void check_options(const CrossEntropyOptions& o, int64_t classes) {
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1)) {
    fail(ErrorKind::value, "{}: label smoothing must be between 0 and 1, got {}",
         Call::name_or("cross_entropy"), o.label_smoothing);
  }
  if (o.class_weights.defined() && o.class_weights.shape() != Shape{classes}) {
    fail(ErrorKind::shape, "{}: class weights must be [{}], one per class, got {}",
         Call::name_or("cross_entropy"), classes, text_of(node_of(o.class_weights).type));
  }
}

// Class weights shaped to broadcast along the class axis.
Tensor weights_along(const Tensor& logits, int axis, const CrossEntropyOptions& o) {
  Shape column{logits.shape()[axis]};
  while (column.rank() < logits.rank() - axis) column.push_back(1);
  return reshaped(converted(o.class_weights, logits.dtype()), column);
}

// Integer targets: which count, and where to look where they do.
struct Targets {
  Tensor ignored;  // bool, the targets' shape with a class axis of size 1
  Tensor classes;  // the same shape, 0 where ignored
  Shape shape;     // as given
};

Targets targets_of(const Tensor& logits, int axis, const Tensor& targets, int64_t ignore_index) {
  const Shape shape = without(logits.shape(), {axis});
  if (!is_integer(targets.dtype()) || targets.shape() != shape) {
    fail(ErrorKind::shape, "{}: logits {} want targets of integers {} or probabilities {}, got {}",
         Call::name_or("cross_entropy"), text_of(node_of(logits).type), text_of(shape),
         text_of(logits.shape()), text_of(node_of(targets).type));
  }
  Shape wide = shape;
  wide.insert(axis, 1);
  const Tensor given = reshaped(converted(targets, DType::i64), wide);
  const Tensor ignored = given == ignore_index;
  return {ignored, where(ignored, 0, given), shape};
}

// From the log-probability of each target (class axis of size 1) and, for label smoothing, those of
// all classes.  A mean divides by the weights of the targets that count.
Tensor from_log_probabilities(const Tensor& picked, const Tensor& all, const Targets& t, int axis,
                              const CrossEntropyOptions& o) {
  Tensor loss = -picked, weight;
  if (o.class_weights.defined()) {
    const Tensor table = converted(o.class_weights, picked.dtype());
    weight = reshaped(gathered(table, 0, reshaped(t.classes, {t.classes.element_count()})),
                      picked.shape());
    loss = loss * weight;
  }
  if (all.defined()) {
    const int64_t classes = all.shape()[axis];
    const Tensor weighted = o.class_weights.defined() ? all * weights_along(all, axis, o) : all;
    loss = loss * (1 - o.label_smoothing) -
           sum_over(weighted, {axis}) * (o.label_smoothing / double(classes));
  }
  loss = reshaped(where(t.ignored, 0, loss), t.shape);
  if (o.reduction == Reduction::none) return loss;
  if (o.reduction == Reduction::sum) return loss.sum();
  const Tensor counted = weight.defined() ? where(t.ignored, 0, weight)
                                          : converted(bitwise_not(t.ignored), loss.dtype());
  return loss.sum() / counted.sum();
}

// The logits of the targets, looked up where they lie: x is the logits in the dtype of the
// computation, of which so no copy is kept.  The gradient is of x.
Tensor looked_up(const Tensor& logits, const Tensor& x, int axis, const Tensor& classes) {
  if (logits.dtype() == x.dtype()) return gathered(x, axis, classes);
  const Tensor result = [&] {
    Untracked untracked;
    return converted(gathered(logits, axis, classes), x.dtype());
  }();
  note_read(x);
  if (!tape_of(x) || !grad_enabled()) return result;
  auto custom = std::make_shared<CustomGradient>();
  custom->name = "gather";
  custom->backward = [axis, classes, size = x.shape()[axis]](const std::vector<Tensor>& gradients) {
    return std::vector<Tensor>{placed_along(gradients[0], classes, axis, size)};
  };
  set_tape(result, custom_tape(result, {x}, std::move(custom)));
  return result;
}

// Targets as probabilities: -sum over classes of target * log-probability.
Tensor from_probabilities(const Tensor& all, const Tensor& targets, int axis,
                          const CrossEntropyOptions& o) {
  Tensor wanted = converted(targets, all.dtype());
  const double classes = double(all.shape()[axis]);
  if (o.label_smoothing != 0) {
    wanted = wanted * (1 - o.label_smoothing) + o.label_smoothing / classes;
  }
  if (o.class_weights.defined()) wanted = wanted * weights_along(all, axis, o);
  const Tensor loss = -reshaped(sum_over(wanted * all, {axis}), without(all.shape(), {axis}));
  if (o.reduction == Reduction::none) return loss;
  return o.reduction == Reduction::sum ? loss.sum() : loss.mean();
}

}  // namespace

// Without smoothing only the targets' logits are looked at: nothing of the logits' size is kept.
// They are shifted by the maximum before the difference is taken, which large logits need.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions o,
                     Site site) {
  Call call("cross_entropy", site);
  const int axis = class_axis(logits);
  check_options(o, logits.shape()[axis]);
  const DType dtype = summed_dtype(logits.dtype());
  const Tensor x = computable(logits);
  if (is_floating(targets.dtype()) && targets.shape() == logits.shape()) {
    return converted(from_probabilities(log_softmax(x, axis), targets, axis, o), dtype);
  }
  const Targets t = targets_of(logits, axis, targets, o.ignore_index);
  if (o.label_smoothing != 0 || x.element_count() == 0) {
    const Tensor all = log_softmax(x, axis);
    return converted(from_log_probabilities(gathered(all, axis, t.classes), all, t, axis, o),
                     dtype);
  }
  const Tensor shift = shift_over(x, {axis});
  const Tensor total = log(sum_over(exp(x - shift), {axis}));
  const Tensor picked = looked_up(logits, x, axis, t.classes) - shift - total;
  return converted(from_log_probabilities(picked, {}, t, axis, o), dtype);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, CrossEntropyOptions o,
                Site site) {
  Call call("nll_loss", site);
  const int axis = class_axis(log_probabilities);
  check_options(o, log_probabilities.shape()[axis]);
  const Tensor all = computable(log_probabilities);
  const Targets t = targets_of(log_probabilities, axis, targets, o.ignore_index);
  const Tensor smoothed = o.label_smoothing != 0 ? all : Tensor();
  const Tensor picked = gathered(all, axis, t.classes);
  return converted(from_log_probabilities(picked, smoothed, t, axis, o),
                   summed_dtype(log_probabilities.dtype()));
}

Tensor mse_loss(const Tensor& x, const Tensor& target, LossOptions o, Site site) {
  Call call("mse_loss", site);
  check_same_shape(x, target);
  return finished(square(computable(x) - computable(target)), o.reduction, x.dtype());
}

Tensor l1_loss(const Tensor& x, const Tensor& target, LossOptions o, Site site) {
  Call call("l1_loss", site);
  check_same_shape(x, target);
  return finished(abs(computable(x) - computable(target)), o.reduction, x.dtype());
}

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta, LossOptions o, Site site) {
  Call call("huber_loss", site);
  check_same_shape(x, target);
  if (!(delta > 0)) fail(ErrorKind::value, "huber_loss: delta must be positive, got {}", delta);
  const Tensor distance = abs(computable(x) - computable(target));
  const Tensor loss =
      where(distance <= delta, square(distance) * 0.5, (distance - 0.5 * delta) * delta);
  return finished(loss, o.reduction, x.dtype());
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, LossOptions o, Site site) {
  Call call("bce_with_logits", site);
  check_same_shape(logits, target);
  const Tensor x = computable(logits);
  const Tensor loss = maximum(x, 0) - x * computable(target) + log1p(exp(-abs(x)));
  return finished(loss, o.reduction, logits.dtype());
}

// Where the target is 0 its logarithm does not count.
Tensor kl_div(const Tensor& log_x, const Tensor& target, LossOptions o, Site site) {
  Call call("kl_div", site);
  check_same_shape(log_x, target);
  const Tensor wanted = computable(target);
  const Tensor logarithm = log(where(wanted > 0, wanted, 1));
  return finished(wanted * (logarithm - computable(log_x)), o.reduction, log_x.dtype());
}

}  // namespace fornax
