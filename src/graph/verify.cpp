// verify(): every rule that holds for a graph; and the form of each op's attributes.
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/forms.h"

namespace fornax {
namespace {

// Windows multiply these with each other or with sizes, so they have narrower limits.
constexpr int64_t kLargestWindow = int64_t(1) << 31;
constexpr int64_t kLargestFactor = int64_t(1) << 20;

bool within(int64_t value, int64_t largest) { return value >= -largest && value <= largest; }

std::string wrong_count(const Signature& s, std::string_view wanted) {
  return fmt::format("takes {}, got {} attributes", wanted, s.attributes.size());
}

std::string axis_problem(int64_t axis) {
  if (axis >= 0 && axis < kMaxRank) return "";
  return fmt::format("axis {} is not one of 0 to {}", axis, kMaxRank - 1);
}

std::string dtype_problem(const Signature& s) {
  if (s.attributes.empty()) return wrong_count(s, "a dtype");
  const int64_t dtype = s.attributes[0];
  if (dtype >= 0 && dtype < kDTypeCount) return "";
  return fmt::format("dtype number {} is not one of 0 to {}", dtype, kDTypeCount - 1);
}

std::string axes_problem(const Signature& s) {
  for (size_t i = 0; i < s.attributes.size(); i++) {
    if (auto problem = axis_problem(s.attributes[i]); !problem.empty()) return problem;
    if (i && s.attributes[i] <= s.attributes[i - 1]) {
      return fmt::format("axes must ascend, got {} after {}", s.attributes[i], s.attributes[i - 1]);
    }
  }
  return "";
}

std::string per_axis_problem(const Signature& s) {
  const int rank = s.input(0).shape.rank();
  if (s.attributes.size() != size_t(rank) * 3) {
    return wrong_count(s, fmt::format("3 numbers for each of {} axes", rank));
  }
  const PerAxis per_axis{s.attributes};
  for (int axis = 0; axis < rank; axis++) {
    int64_t distance;
    if (s.op == Op::slice &&
        __builtin_mul_overflow(per_axis.second(axis) - 1, per_axis.third(axis), &distance)) {
      return fmt::format("{} steps of {} leave 64 bits", per_axis.second(axis) - 1,
                         per_axis.third(axis));
    }
    if (s.op == Op::slice && !within(distance, int64_t(1) << 62)) {
      return fmt::format("{} steps of {} are too far", per_axis.second(axis) - 1,
                         per_axis.third(axis));
    }
    if (s.op == Op::pad && (per_axis.third(axis) < 0 || per_axis.third(axis) > kLargestFactor)) {
      return fmt::format("{} elements between are not 0 to {}", per_axis.third(axis),
                         kLargestFactor);
    }
  }
  return "";
}

std::string windows_problem(const Signature& s) {
  if (s.attributes.size() % kWindowFields != 0 ||
      s.attributes.size() > kWindowFields * size_t(kMaxRank)) {
    return wrong_count(s, fmt::format("{} numbers per window", kWindowFields));
  }
  unsigned seen = 0;
  for (int i = 0; i < window_count(s.attributes); i++) {
    const int64_t axis = s.attributes[size_t(i) * kWindowFields];
    if (auto problem = axis_problem(axis); !problem.empty()) return problem;
    if (seen & (1u << axis)) return fmt::format("axis {} has two windows", axis);
    seen |= 1u << axis;
    const WindowAxis w = window_of(s.attributes, i);
    for (int64_t number : {w.size, w.step, w.dilation}) {
      if (!within(number, kLargestWindow)) {
        return fmt::format("window number {} is above {}", number, kLargestWindow);
      }
    }
  }
  return "";
}

std::string window2d_problem(const Signature& s) {
  if (s.attributes.size() != Window2d::kFields) {
    return wrong_count(s, fmt::format("{} window numbers", Window2d::kFields));
  }
  for (size_t i = 0; i <= 10; i++) {  // the last two are sizes
    if (!within(s.attributes[i], kLargestFactor)) {
      return fmt::format("window number {} is above {}", s.attributes[i], kLargestFactor);
    }
  }
  return "";
}

// Ops whose first attribute is an axis, with `count` attributes whose last is below `limit`.
std::string axis_and_problem(const Signature& s, size_t count, int64_t limit) {
  if (s.attributes.size() != count) {
    return wrong_count(s, count == 1 ? "an axis" : "an axis and a mode");
  }
  if (count == 2 && (s.attributes[1] < 0 || s.attributes[1] >= limit)) {
    return fmt::format("mode {} is not one of 0 to {}", s.attributes[1], limit - 1);
  }
  return axis_problem(s.attributes[0]);
}

std::string form_problem(const Signature& s) {
  const size_t count = s.attributes.size();
  switch (s.op) {
    case Op::leaf:
    case Op::full:
    case Op::arange:
      return count > 1 + size_t(kMaxRank) ? wrong_count(s, "a dtype and at most 8 sizes")
                                          : dtype_problem(s);
    case Op::cast:
      return count > 1 ? wrong_count(s, "a dtype") : dtype_problem(s);
    case Op::random_bits:
    case Op::reshape:
    case Op::expand:
      return count > size_t(kMaxRank) ? wrong_count(s, "at most 8 sizes") : "";
    case Op::permute:
      return count > size_t(kMaxRank) ? wrong_count(s, "one axis per axis") : "";
    case Op::slice:
    case Op::pad:
      return per_axis_problem(s);
    case Op::unfold:
    case Op::fold:
      return windows_problem(s);
    case Op::scatter:
      return axis_and_problem(s, 2, int64_t(ScatterMode::maximum) + 1);
    case Op::argsort:
      return axis_and_problem(s, 2, 2);
    case Op::argmax:
    case Op::argmin:
    case Op::cat:
    case Op::gather:
    case Op::cumsum:
    case Op::cumprod:
    case Op::cummax:
    case Op::cummin:
      return axis_and_problem(s, 1, 0);
    case Op::convolve:
    case Op::convolve_input:
    case Op::convolve_weight:
    case Op::pool_argmax:
      return window2d_problem(s);
    default:
      break;
  }
  if (is_reduce(s.op)) return axes_problem(s);
  return count == 0 ? "" : wrong_count(s, "none");
}

[[noreturn]] void broken(size_t number, const Step& step, std::string_view problem) {
  fail(ErrorKind::internal, "verify: step %{} ({}): {}", number, info(step.op).name, problem);
}

void verify_step(const Graph& graph, size_t number) {
  const Step& step = graph.steps[number];
  std::vector<const Type*> types;
  types.reserve(step.inputs.size());
  for (int input : step.inputs) {
    if (input < 0 || size_t(input) >= number) {
      broken(number, step, fmt::format("reads step %{}, which is not an earlier one", input));
    }
    types.push_back(&graph.steps[size_t(input)].type);
  }
  const Signature signature{step.op, types.data(), int(types.size()), step.attributes};
  if (auto problem = attribute_problem(signature); !problem.empty()) broken(number, step, problem);
  if (step.op != Op::full && !(step.scalar == Scalar())) {
    broken(number, step, "has a scalar, which only full has");
  }
  std::string problem;
  try {
    const Type type = infer(signature);
    (void)type.shape.element_count();
    if (!(type == step.type)) {
      problem = fmt::format("is {}, its rule gives {}", text_of(step.type), text_of(type));
    }
  } catch (const Error& error) {
    problem = reason_of(error);
  }
  if (!problem.empty()) broken(number, step, problem);
  for (int64_t size : step.type.shape) {
    if (size > kLargestNumber) {
      broken(number, step, fmt::format("a size is {}, above {}", size, kLargestNumber));
    }
  }
}

}  // namespace

std::string attribute_problem(const Signature& s) {
  const int expected = info(s.op).inputs;
  if (expected >= 0 && s.input_count != expected) {
    return fmt::format("takes {} inputs, got {}", expected, s.input_count);
  }
  for (int64_t number : s.attributes) {
    if (!within(number, kLargestNumber)) {
      return fmt::format("attribute {} is beyond {}", number, kLargestNumber);
    }
  }
  return form_problem(s);
}

bool attributes_from_type(Op op, const Type& type, Attributes& attributes) {
  const bool dtype = op == Op::leaf || op == Op::full || op == Op::arange || op == Op::cast;
  const bool sizes = op == Op::random_bits || op == Op::reshape || op == Op::expand;
  if (!dtype && !sizes) return false;
  attributes.clear();
  if (dtype) attributes.push_back(int64_t(type.dtype));
  if (op != Op::cast) attributes.insert(attributes.end(), type.shape.begin(), type.shape.end());
  return true;
}

std::string reason_of(const Error& error) {
  const std::string text = error.what();
  return error.site().line > 0 ? text.substr(0, text.rfind(" (at ")) : text;
}

std::string printable(std::string_view text) {
  std::string start(text.substr(0, 24));
  for (char& c : start) {
    if (c < ' ' || c > '~') c = '?';
  }
  return start;
}

void verify(const Graph& graph) {
  for (size_t number = 0; number < graph.steps.size(); number++) verify_step(graph, number);
  for (int output : graph.outputs) {
    if (output < 0 || size_t(output) >= graph.steps.size()) {
      fail(ErrorKind::internal, "verify: output %{} is not one of {} steps", output,
           graph.steps.size());
    }
  }
}

}  // namespace fornax
