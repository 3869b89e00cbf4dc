#include "grad/parts.h"

#include <algorithm>

#include "tensor/compose.h"

namespace fornax {
namespace {

int64_t end_of(const Part& part) { return part.start + part.gradient.shape()[part.axis]; }

Tensor padded(const Part& part, const Shape& shape) {
  Attributes padding;
  for (int axis = 0; axis < shape.rank(); axis++) {
    const bool own = axis == part.axis;
    for (const int64_t n :
         {own ? part.start : 0, own ? shape[axis] - end_of(part) : 0, int64_t(0)}) {
      padding.push_back(n);
    }
  }
  const Tensor zero = constant(part.gradient.device(), {part.gradient.dtype(), {}}, 0);
  return record(Op::pad, {&part.gradient, &zero}, std::move(padding));
}

// Parts that follow one another along one axis.
Tensor line_up(const std::vector<Part>& parts, const Shape& shape) {
  if (parts.size() == 1) return padded(parts[0], shape);
  const int axis = parts[0].axis;
  std::vector<Tensor> all;
  int64_t end = 0;
  const auto fill = [&](int64_t to) {
    if (to == end) return;
    Shape gap = shape;
    gap[axis] = to - end;
    all.push_back(constant(parts[0].gradient.device(), {parts[0].gradient.dtype(), gap}, 0));
  };
  for (const Part& part : parts) {
    fill(part.start);
    all.push_back(part.gradient);
    end = end_of(part);
  }
  fill(shape[axis]);
  std::vector<const Tensor*> operands;
  for (const Tensor& own : all) operands.push_back(&own);
  return record(Op::cat, operands, {axis});
}

}  // namespace

Tensor joined(std::vector<Part> parts, const Shape& shape) {
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.axis, a.start) < std::pair(b.axis, b.start);
  });
  std::vector<std::vector<Part>> lines;
  for (Part& part : parts) {
    const auto fits = [&](const std::vector<Part>& line) {
      return line.back().axis == part.axis && end_of(line.back()) <= part.start;
    };
    auto line = std::find_if(lines.begin(), lines.end(), fits);
    if (line == lines.end()) line = lines.emplace(lines.end());
    line->push_back(std::move(part));
  }
  Tensor sum;
  for (const std::vector<Part>& line : lines) {
    const Tensor own = line_up(line, shape);
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

Part before_permute(const Part& part, const Attributes& order) {
  return {int(order[size_t(part.axis)]), part.start, permuted(part.gradient, inverse_of(order))};
}

}  // namespace fornax
