// Mode grad: the gradient of every op against central differences in f64, per element.
//
// The scalar looked at is the sum of the results times fixed weights.  Where a step in either
// direction changes the slope (a corner, a jump, the edge of the domain) the point is no test and
// other numbers are drawn.
#include <fmt/core.h>
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "tests/ops/compare.h"
#include "tests/ops/modes.h"

namespace fornax::conformance {
namespace {

constexpr double kStep = 1e-5;
// Differences cancel half the digits; the slope's own change adds kStep squared of its size.
constexpr double kTolerance = 2e-6;

// Where the numbers of an operand lie.  Each op has a domain among these.
struct Range {
  double low, high;
};
constexpr Range kRanges[] = {{0.1, 0.9}, {1.2, 2.8}, {-0.9, -0.1}, {-2.8, -1.2}};

using Elements = std::vector<double>;

class Point {
 public:
  Point(Op op, const Sample& sample, Device device) : op_(op), sample_(sample), device_(device) {}

  // Draws operand i from range number `choice` / 4^i.
  void draw(size_t choice, uint64_t seed) {
    std::mt19937_64 random(seed);
    elements_.clear();
    for (size_t i = 0; i < sample_.inputs.size(); i++, choice /= std::size(kRanges)) {
      const Range range = kRanges[choice % std::size(kRanges)];
      Elements numbers(size_t(sample_.inputs[i].type.shape.element_count()));
      for (double& x : numbers) {
        x = range.low + (range.high - range.low) * double(random() >> 11) * 0x1p-53;
      }
      elements_.push_back(std::move(numbers));
    }
  }

  bool is_float(size_t i) const { return is_floating(sample_.inputs[i].type.dtype); }
  size_t count(size_t i) const { return elements_[i].size(); }

  std::vector<Tensor> tensors() const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < elements_.size(); i++) {
      const Input& input = sample_.inputs[i];
      tensors.push_back(is_float(i) ? from(elements_[i], input.type.shape, device_)
                                    : make(input, int(i), Form::contiguous, 7, device_));
    }
    return tensors;
  }
  Tensor value(const std::vector<Tensor>& inputs) const {
    const Tensor y = apply(op_, inputs, sample_.attributes);
    Elements weights(size_t(y.element_count()));
    for (size_t i = 0; i < weights.size(); i++) weights[i] = 0.5 + double(i * 7 % 11) / 8;
    return (y.cast(DType::f64) * from(weights, y.shape(), device_)).sum();
  }
  double value_with(size_t i, size_t k, double change) {
    const double before = elements_[i][k];
    elements_[i][k] = before + change;
    const double result = value(tensors()).item<double>();
    elements_[i][k] = before;
    return result;
  }

 private:
  const Op op_;
  const Sample& sample_;
  const Device device_;
  std::vector<Elements> elements_;
};

// The slope in element k of operand i; nothing where the point is no test.
std::optional<double> slope(Point& point, size_t i, size_t k, double here) {
  const double up = point.value_with(i, k, kStep), down = point.value_with(i, k, -kStep);
  const double slope = (up - down) / (2 * kStep);
  const double bend = (up - here) / kStep - (here - down) / kStep;
  if (!std::isfinite(slope) || std::fabs(bend) > 5e-3 * (1 + std::fabs(slope))) return {};
  return slope;
}

// Whether the point was smooth everywhere and thus a test.
bool check(Point& point, const std::string& where) {
  std::vector<Tensor> inputs = point.tensors(), tracked;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!point.is_float(i)) continue;
    inputs[i] = inputs[i].require_grad();
    tracked.push_back(inputs[i]);
  }
  const Tensor loss = point.value(inputs);
  const double here = loss.item<double>();
  if (!std::isfinite(here)) return false;
  std::vector<Elements> slopes;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!point.is_float(i)) continue;
    Elements& numbers = slopes.emplace_back();
    for (size_t k = 0; k < point.count(i); k++) {
      const std::optional<double> one = slope(point, i, k, here);
      if (!one) return false;
      numbers.push_back(*one);
    }
  }
  if (!loss.requires_grad()) {
    for (const Elements& numbers : slopes) {
      for (double one : numbers) EXPECT_EQ(one, 0) << where << ": has a slope but no gradient";
    }
    return true;
  }
  const std::vector<Tensor> gradients = grad({loss}, tracked, {.allow_unused = true});
  for (size_t t = 0; t < tracked.size(); t++) {
    Elements got(slopes[t].size());
    if (gradients[t].defined()) {
      EXPECT_EQ(gradients[t].shape(), tracked[t].shape()) << where;
      got = gradients[t].to_vector<double>();
    }
    for (size_t k = 0; k < got.size(); k++) {
      EXPECT_NEAR(got[k], slopes[t][k], kTolerance * (1 + std::fabs(slopes[t][k])))
          << where << ": operand " << t << ", element " << k;
    }
  }
  return true;
}

size_t choices_of(const Sample& sample) {
  size_t choices = 1;
  for (size_t i = 0; i < std::min<size_t>(sample.inputs.size(), 2); i++) {
    choices *= std::size(kRanges);
  }
  return choices;
}

void check_op(Op op, Device device) {
  for (const Sample& sample : gradient_samples_of(op)) {
    Point point(op, sample, device);
    int tests = 0;
    // Every range for elementwise ops; for the others, which have no domains, the first that works.
    for (size_t choice = 0; choice < choices_of(sample); choice++) {
      for (uint64_t seed = 0; seed < 3; seed++) {
        point.draw(choice, seed * 97 + choice);
        try {
          if (!check(point, fmt::format("{} {}", info(op).name, text_of(sample)))) continue;
        } catch (const Error& error) {
          ADD_FAILURE() << info(op).name << " " << text_of(sample) << ": " << error.what();
          return;
        }
        tests++;
        break;
      }
      if (tests > 0 && !is_pointwise(op)) break;
    }
    EXPECT_GT(tests, 0) << info(op).name << " " << text_of(sample) << ": no smooth point found";
    if (::testing::Test::HasFailure()) return;
  }
}

// Whether floats go in and come out.
bool is_differentiable(Op op) {
  if (op == Op::arange) return false;  // its public function takes plain numbers, not tensors
  for (const Sample& sample : gradient_samples_of(op)) {
    bool any = false;
    for (const Input& input : sample.inputs) any |= is_floating(input.type.dtype);
    if (!any) return false;
    const auto inputs = make_all(sample, Form::contiguous, 1, Device("reference"));
    return is_floating(apply(op, inputs, sample.attributes).dtype());
  }
  return false;
}

}  // namespace

void register_gradients(Device device) {
  for (int i = 0; i < op_count(); i++) {
    const Op op = Op(i);
    if (!is_differentiable(op)) continue;
    add_test("gradients/" + short_name(device), std::string(info(op).name),
             [op, device] { check_op(op, device); });
  }
}

}  // namespace fornax::conformance
