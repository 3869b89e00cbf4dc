// A small group and its inputs, written by a test and run by the reference backend.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backend/registry.h"
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/evaluate.h"

namespace fornax {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Backend& reference() {
  for (int i = 0; i < physical_device_count(); i++) {
    if (physical_device(i).backend->name() == "reference") return *physical_device(i).backend;
  }
  fail(ErrorKind::device, "tests: the reference backend is missing");
}

class Program {
 public:
  // An input with these elements in row-major order.
  int leaf(DType dtype, Shape shape, std::vector<Scalar> elements) {
    EXPECT_EQ(size_t(shape.element_count()), elements.size());
    const size_t bytes = elements.size() * size_of(dtype);
    buffers_.push_back(reference().allocate(0, bytes));
    for (size_t i = 0; i < elements.size(); i++) {
      store(dtype, buffers_.back()->data, int64_t(i), word_of(dtype, elements[i]));
    }
    arguments_.push_back({buffers_.back().get(), 0, {}});
    return input(Op::leaf, {dtype, shape}, row_major(shape));
  }
  int f32(Shape shape, std::vector<Scalar> elements) {
    return leaf(DType::f32, shape, std::move(elements));
  }
  int i64(Shape shape, std::vector<Scalar> elements) {
    return leaf(DType::i64, shape, std::move(elements));
  }
  int number(DType dtype, Scalar scalar) {
    arguments_.push_back({nullptr, 0, scalar});
    return input(Op::full, {dtype, {}}, {});
  }
  // The buffer of the last leaf read another way.
  void relayout(int number, Shape shape, Layout layout, int64_t offset) {
    group_.graph.steps[size_t(number)].type.shape = shape;
    group_.layouts[size_t(number)] = layout;
    arguments_[size_t(number)].offset = offset;
  }

  int step(Op op, std::vector<int> inputs, Attributes attributes = {}) {
    std::vector<const Type*> types;
    for (int i : inputs) types.push_back(&group_.graph.steps[size_t(i)].type);
    const Type type = infer({op, types.data(), int(types.size()), attributes});
    const int number = int(group_.graph.steps.size());
    if (!is_pointwise(op) && op != Op::cast) {
      group_.anchor = number;
      if (!types.empty()) group_.domain = types[0]->shape;
    }
    group_.graph.steps.push_back({op, type, std::move(inputs), std::move(attributes), {}});
    return number;
  }

  // The last step's elements.
  std::vector<Scalar> run() {
    const Type& type = group_.graph.steps.back().type;
    const size_t count = size_t(type.shape.element_count());
    Ref<Buffer> result = reference().allocate(0, count * size_of(type.dtype));
    run_into(*result);
    std::vector<Scalar> elements;
    for (size_t i = 0; i < count; i++) {
      elements.push_back(scalar_of(type.dtype, load(type.dtype, result->data, int64_t(i))));
    }
    return elements;
  }
  void run_into(Buffer& result) {
    group_.graph.outputs = {int(group_.graph.steps.size()) - 1};
    const Argument output{&result, 0, {}};
    const auto prepared = reference().prepare(0, group_);
    reference().execute(*prepared, arguments_, {&output, 1});
  }
  std::vector<double> doubles() {
    std::vector<double> result;
    for (const Scalar& element : run()) result.push_back(element.as_double());
    return result;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> result;
    for (const Scalar& element : run()) result.push_back(element.as_int64());
    return result;
  }
  const Type& type() const { return group_.graph.steps.back().type; }
  Group& group() { return group_; }
  Buffer& buffer(int i) { return *buffers_[size_t(i)]; }

 private:
  int input(Op op, const Type& type, const Layout& layout) {
    group_.inputs++;
    group_.layouts.push_back(layout);
    group_.graph.steps.push_back({op, type, {}, {}, {}});
    return group_.inputs - 1;
  }

  Group group_;
  std::vector<Ref<Buffer>> buffers_;
  std::vector<Argument> arguments_;
};

// Equal as numbers, NaN equal to NaN, or apart by at most `tolerance`.
inline void expect_numbers(const std::vector<double>& got, const std::vector<double>& want,
                           double tolerance = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "at " << i << ": " << got[i];
    } else if (std::isinf(want[i]) || tolerance == 0) {
      EXPECT_EQ(got[i], want[i]) << "at " << i;
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance) << "at " << i;
    }
  }
}

}  // namespace fornax
