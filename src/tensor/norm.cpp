// Normalisation.  Statistics of halves are in f32; epsilon stands inside the root.  Nothing is
// scaled beforehand: where the squares of f32 numbers overflow (above 1.8e19) the result is 0
// everywhere.
#include <fornax/ops.h>

#include "tensor/compose.h"

namespace fornax {
namespace {

void check_affine(const Tensor& x, const Tensor& factor, const Shape& wanted, const char* what) {
  if (factor.defined() && factor.shape() != wanted) {
    fail(ErrorKind::shape, "{}: the {} must be {} for {}, got {}", Call::name_or("layer_norm"),
         what, text_of(wanted), text_of(node_of(x).type), text_of(node_of(factor).type));
  }
}
void check_affine(const Tensor& x, const NormOptions& o, const Shape& wanted) {
  check_affine(x, o.weight, wanted, "weight");
  check_affine(x, o.bias, wanted, "bias");
}

// `t` in y's dtype and the shape `as`.
Tensor brought_to(const Tensor& t, const Tensor& y, const Shape& as) {
  return reshaped(converted(t, y.dtype()), as);
}

// y * weight + bias, where they are given, in the shape `as` and y's dtype; then in x's.
Tensor scaled(Tensor y, const Tensor& x, const NormOptions& o, const Shape& as) {
  if (o.weight.defined()) y = y * brought_to(o.weight, y, as);
  if (o.bias.defined()) y = y + brought_to(o.bias, y, as);
  return converted(y, summed_dtype(x.dtype()));
}

// How lines of `over` are brought to mean 0 (where `centred`) and mean square 1.
struct Standard {
  Attributes over;
  double epsilon;
  bool centred;
};
struct Lines {
  Tensor distance, mean, variance, factor;  // the mean is undefined where nothing is centred
  Tensor brought() const { return distance * factor; }
  // distance * factor^2 * mean(g * distance), of the sum of that; the square alone may overflow.
  Tensor part_along(const Tensor& sum, const Standard& s) const {
    return distance * (sum / double(count_over(distance.shape(), s.over)) * factor * factor);
  }
};

Lines lines_of(const Tensor& x, const Standard& s) {
  const Tensor mean = s.centred ? mean_over(x, s.over) : Tensor();
  const Tensor distance = s.centred ? x - mean : x;
  const Tensor variance = mean_over(square(distance), s.over);
  return {distance, mean, variance, rsqrt(variance + s.epsilon)};
}
// Of x in a backward pass, where they are `known`: a gradient that is differentiated depends on x
// through the statistics too.
Lines lines_again(const Tensor& x, const Standard& s, const Lines& known) {
  if (grad_enabled()) return lines_of(x, s);
  return {s.centred ? x - known.mean : x, known.mean, known.variance, known.factor};
}

using Gradients = std::vector<Tensor>;
void set_gradient(const Tensor& result, const Gradients& inputs, const char* name,
                  Function<Gradients(const Gradients&)> backward) {
  auto custom = std::make_shared<CustomGradient>();
  custom->name = name;
  custom->backward = std::move(backward);
  set_tape(result, custom_tape(result, inputs, std::move(custom)));
}

// With d the distance and g the result's gradient, that of x is
// factor * (g - mean(g) - d * factor^2 * mean(g * d)), the means over the line (Ba, Kiros and
// Hinton, "Layer normalization", 2016; for RMS norm without the second term).  Keeps x, mean and
// factor alone.
Tensor standardised(const Tensor& x, const Standard& s) {
  note_read(x);
  if (!tape_of(x) || !grad_enabled()) return lines_of(computable(x), s).brought();
  Lines known;
  const Tensor result = [&] {
    Untracked untracked;
    known = lines_of(computable(x), s);
    return known.brought();
  }();
  known.distance = {};
  set_gradient(result, {x}, "standardise", [x, s, known](const Gradients& gradients) {
    const Tensor& g = gradients[0];
    const Lines lines = lines_again(computable(x), s, known);
    const Tensor across = s.centred ? g - mean_over(g, s.over) : g;
    return Gradients{(across - lines.part_along(sum_over(g * lines.distance, s.over), s)) *
                     lines.factor};
  });
  return result;
}

}  // namespace

Tensor layer_norm(const Tensor& x, int64_t axes, NormOptions o, Site site) {
  Call call("layer_norm", site);
  if (axes < 1 || axes > x.rank()) {
    fail(ErrorKind::value, "layer_norm: cannot normalise the last {} axes of {}", axes,
         text_of(node_of(x).type));
  }
  Attributes over;
  Shape last;
  for (int axis = x.rank() - int(axes); axis < x.rank(); axis++) {
    over.push_back(axis);
    last.push_back(x.shape()[axis]);
  }
  check_affine(x, o, last);
  return scaled(standardised(x, {over, o.epsilon, true}), x, o, last);
}

Tensor rms_norm(const Tensor& x, NormOptions o, Site site) {
  Call call("rms_norm", site);
  const int axis = normal_axis(-1, x);
  const Shape last{x.shape()[axis]};
  check_affine(x, o, last);
  return scaled(standardised(x, {{axis}, o.epsilon, false}), x, o, last);
}

namespace {

// Of an x with channels, all axes but theirs, and their shape [c, 1, ...].
struct Channels {
  explicit Channels(const Tensor& x) {
    if (x.rank() < 2) {
      fail(ErrorKind::shape, "batch_norm: needs a batch and a channel axis, got {}",
           text_of(node_of(x).type));
    }
    count = column = Shape{x.shape()[1]};
    for (int axis = 0; axis < x.rank(); axis++) {
      if (axis != 1) others.push_back(axis);
      if (axis > 1) column.push_back(1);
    }
  }
  Shape count, column;
  Attributes others;
};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, NormOptions o,
                  Site site) {
  Call call("batch_norm", site);
  const Channels channels(x);
  check_affine(x, mean, channels.count, "mean");
  check_affine(x, variance, channels.count, "variance");
  check_affine(x, o, channels.count);
  const Tensor wide = computable(x);
  const Tensor factor = rsqrt(brought_to(variance, wide, channels.column) + o.epsilon);
  const Tensor y = (wide - brought_to(mean, wide, channels.column)) * factor;
  return scaled(y, x, o, channels.column);
}

// With d = x - mean and g the result's gradient, those of bias and weight are sum(g) and
// factor * sum(g * d), and that of x is factor * weight * (g - mean(g) - d * factor^2 * mean(g *
// d)) (Ioffe and Szegedy, "Batch normalization", 2015): two sums, which all three share.
NormedBatch batch_norm(const Tensor& x, NormOptions o, Site site) {
  Call call("batch_norm", site);
  const Channels channels(x);
  check_affine(x, o, channels.count);
  const Standard s{channels.others, o.epsilon, true};
  const auto scale_of = [o, channels](const Lines& lines) {
    return o.weight.defined() ? lines.factor * brought_to(o.weight, lines.factor, channels.column)
                              : lines.factor;
  };
  Gradients inputs;
  for (const Tensor& input : {x, o.weight, o.bias}) {
    if (input.defined()) inputs.push_back(input);
  }
  bool tracked = false;
  for (const Tensor& input : inputs) {
    note_read(input);
    tracked |= grad_enabled() && tape_of(input);
  }
  Lines known;
  Tensor y;
  {
    Untracked untracked;
    known = lines_of(computable(x), s);
    y = known.distance * scale_of(known);
    if (o.bias.defined()) y = y + brought_to(o.bias, y, channels.column);
    y = converted(y, summed_dtype(x.dtype()));
  }
  known.distance = {};
  const NormedBatch result{y, reshaped(known.mean, channels.count),
                           reshaped(known.variance, channels.count)};
  if (!tracked) return result;
  set_gradient(y, inputs, "batch_norm", [=](const Gradients& gradients) {
    const Tensor g = computable(gradients[0]);
    const Lines lines = lines_again(computable(x), s, known);
    const Tensor sum = sum_over(g, s.over), along = sum_over(g * lines.distance, s.over);
    const Tensor across = g - sum / double(count_over(x.shape(), s.over));
    Gradients all{(across - lines.part_along(along, s)) * scale_of(lines)};
    if (o.weight.defined()) all.push_back(reshaped(along * lines.factor, channels.count));
    if (o.bias.defined()) all.push_back(reshaped(sum, channels.count));
    return all;
  });
  return result;
}

Tensor normalize(const Tensor& x, double p, int64_t axis, double epsilon, Site site) {
  Call call("normalize", site);
  const Tensor wide = computable(x);
  const Tensor norm = wide.norm(p, axis, {.keep_dims = true});
  return converted(wide / maximum(norm, epsilon), summed_dtype(x.dtype()));
}

}  // namespace fornax
