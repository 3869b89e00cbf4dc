// Normalisation.  Statistics of halves are in f32; epsilon stands inside the root.  Nothing is
// scaled beforehand: where the squares of f32 numbers overflow (above 1.8e19) the result is 0
// everywhere.
#include <fornax/ops.h>

#include "tensor/compose.h"

namespace fornax {
namespace {

void check_affine(const Tensor& x, const Tensor& factor, const Shape& wanted, const char* what) {
  if (factor.shape() != wanted) {
    fail(ErrorKind::shape, "{}: the {} must be {} for {}, got {}", Call::name_or("layer_norm"),
         what, text_of(wanted), text_of(node_of(x).type), text_of(node_of(factor).type));
  }
}

// y * weight + bias, where they are given, in the shape `as` and y's dtype; then in dtype `result`.
Tensor scaled(Tensor y, const Tensor& x, const NormOptions& o, const Shape& wanted,
              const Shape& as) {
  if (o.weight.defined()) {
    check_affine(x, o.weight, wanted, "weight");
    y = y * reshaped(converted(o.weight, y.dtype()), as);
  }
  if (o.bias.defined()) {
    check_affine(x, o.bias, wanted, "bias");
    y = y + reshaped(converted(o.bias, y.dtype()), as);
  }
  return converted(y, floating_dtype(x.dtype()));
}

// How lines of `over` are brought to mean 0 (where `centred`) and mean square 1.
struct Standard {
  Attributes over;
  double epsilon;
  bool centred;
};
struct Lines {
  Tensor distance, mean, factor;  // the mean is undefined where nothing is centred
  Tensor brought() const { return distance * factor; }
};

Lines lines_of(const Tensor& x, const Standard& s) {
  const Tensor mean = s.centred ? mean_over(x, s.over) : Tensor();
  const Tensor distance = s.centred ? x - mean : x;
  return {distance, mean, rsqrt(mean_over(square(distance), s.over) + s.epsilon)};
}

// With y the result and g its gradient, that of x is factor * (g - mean(g) - y * mean(g * y)), the
// means over the line (Ba, Kiros and Hinton, "Layer normalization", 2016; for RMS norm without the
// second term).  Keeps x, mean and factor alone.
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
  auto custom = std::make_shared<CustomGradient>();
  custom->name = "standardise";
  custom->backward = [x, s, known](const std::vector<Tensor>& gradients) {
    const Tensor wide = computable(x), &g = gradients[0];
    Lines lines = known;
    if (grad_enabled()) {  // a gradient that is differentiated depends on x through the factor too
      lines = lines_of(wide, s);
    } else {
      lines.distance = s.centred ? wide - known.mean : wide;
    }
    const Tensor across = s.centred ? g - mean_over(g, s.over) : g;
    const Tensor y = lines.brought();
    return std::vector<Tensor>{(across - y * mean_over(g * y, s.over)) * lines.factor};
  };
  set_tape(result, custom_tape(result, {x}, std::move(custom)));
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
  return scaled(standardised(x, {over, o.epsilon, true}), x, o, last, last);
}

Tensor rms_norm(const Tensor& x, NormOptions o, Site site) {
  Call call("rms_norm", site);
  const int axis = normal_axis(-1, x.rank());
  const Shape last{x.shape()[axis]};
  return scaled(standardised(x, {{axis}, o.epsilon, false}), x, o, last, last);
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, NormOptions o,
                  Site site) {
  Call call("batch_norm", site);
  if (x.rank() < 2) {
    fail(ErrorKind::shape, "batch_norm: needs a batch and a channel axis, got {}",
         text_of(node_of(x).type));
  }
  const Shape channels{x.shape()[1]};
  check_affine(x, mean, channels, "mean");
  check_affine(x, variance, channels, "variance");
  Shape column = channels;
  while (column.rank() < x.rank() - 1) column.push_back(1);
  const Tensor wide = computable(x);
  const auto as_column = [&](const Tensor& t) {
    return reshaped(converted(t, wide.dtype()), column);
  };
  const Tensor y = (wide - as_column(mean)) * rsqrt(as_column(variance) + o.epsilon);
  return scaled(y, x, o, channels, column);
}

Tensor normalize(const Tensor& x, double p, int64_t axis, double epsilon, Site site) {
  Call call("normalize", site);
  const Tensor wide = computable(x);
  const Tensor norm = wide.norm(p, axis, {.keep_dims = true});
  return converted(wide / maximum(norm, epsilon), floating_dtype(x.dtype()));
}

}  // namespace fornax
