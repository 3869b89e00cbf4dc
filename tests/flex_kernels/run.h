// Running one of flex's kernels on made-up operands of any layout, with the numbers it should have
// seen at hand as plain row-major doubles.
#pragma once
#include <fornax/function.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/flex/index.h"
#include "base/error.h"

namespace fornax::flex {

enum class Style { plain, reversed_axes, negative, spaced, repeated };
inline constexpr Style kStyles[] = {Style::plain, Style::reversed_axes, Style::negative,
                                    Style::spaced, Style::repeated};

// An operand or a result: memory and layout, and what they say.
struct Value {
  Type type;
  Layout layout;  // offset included
  std::vector<uint64_t> memory;
  std::vector<double> numbers;  // row-major
  bool is_number = false;       // passed as op full
};

inline Layout styled(const Shape& shape, Style style, int64_t& elements) {
  Layout layout = row_major(shape);
  const int rank = shape.rank();
  if (style == Style::reversed_axes) {
    int64_t stride = 1;
    for (int axis = 0; axis < rank; axis++) {
      layout.strides[axis] = stride;
      stride *= shape[axis];
    }
  }
  int64_t low = 0, high = 0;
  for (int axis = 0; axis < rank; axis++) {
    if (style == Style::negative) layout.strides[axis] = -layout.strides[axis];
    if (style == Style::spaced) layout.strides[axis] *= 3;
    if (style == Style::repeated && axis % 2 == 0) layout.strides[axis] = 0;
    const int64_t reach = std::max<int64_t>(shape[axis] - 1, 0) * layout.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  layout.offset = 5 - low;
  elements = high - low + 6;
  return layout;
}

template <class T>
T element_from(double number) {
  if constexpr (std::is_class_v<T>) {
    return T(float(number));
  } else {
    return T(number);
  }
}

template <class T>
double double_from(T value) {
  if constexpr (std::is_class_v<T>) {
    return double(float(value));
  } else {
    return double(value);
  }
}

// Reads value.numbers back from memory.
inline void read_back(Value& value) {
  const int64_t count = value.type.shape.element_count();
  value.numbers.assign(size_t(count), 0);
  if (count == 0) return;
  with_type(value.type.dtype, [&](auto type) {
    using T = decltype(type);
    const T* data = reinterpret_cast<const T*>(value.memory.data()) + value.layout.offset;
    StridedWalk<1> walk(value.type.shape, {value.layout.strides});
    walk.seek(0);
    for (int64_t i = 0; i < count; i++, walk.next()) {
      value.numbers[size_t(i)] = double_from(data[walk.offsets[0]]);
    }
  });
}

// An operand with element i (row-major) set to make(i).
template <class Make>
Value operand(DType dtype, const Shape& shape, Style style, Make make) {
  Value value{{dtype, shape}, {}, {}, {}, false};
  int64_t elements = 0;
  value.layout = styled(shape, style, elements);
  value.memory.assign(size_t(elements) + 1, 0);
  const int64_t count = shape.element_count();
  if (count > 0) {
    with_type(dtype, [&](auto type) {
      using T = decltype(type);
      T* data = reinterpret_cast<T*>(value.memory.data()) + value.layout.offset;
      StridedWalk<1> walk(shape, {value.layout.strides});
      walk.seek(0);
      for (int64_t i = 0; i < count; i++, walk.next()) {
        data[walk.offsets[0]] = element_from<T>(make(i));
      }
    });
  }
  read_back(value);
  return value;
}

inline Value random_operand(DType dtype, const Shape& shape, Style style, std::mt19937& random,
                            double low = -4, double high = 4) {
  if (!is_signed(dtype)) low = 0;
  std::uniform_real_distribution<double> uniform(low, high);
  return operand(dtype, shape, style, [&](int64_t) {
    const double number = uniform(random);
    return is_floating(dtype) ? number : std::floor(number);
  });
}

inline Value number_operand(DType dtype, const Shape& shape, double number) {
  Value value{{dtype, shape}, {}, {}, {}, true};
  value.numbers.assign(size_t(shape.element_count()), number);
  return value;
}

using Prepare = std::unique_ptr<Kernel> (*)(const Group&);

inline Value run(Prepare prepare, Op op, const std::vector<Value*>& operands,
                 const Attributes& attributes) {
  Group group;
  std::vector<Buffer> buffers(operands.size() + 1);
  std::vector<Argument> inputs;
  std::vector<const Type*> types;
  Step anchor{op, {}, {}, attributes, {}};
  for (size_t i = 0; i < operands.size(); i++) {
    Value& value = *operands[i];
    Step step{value.is_number ? Op::full : Op::leaf, value.type, {}, {}, {}};
    Layout layout = value.layout;
    layout.offset = 0;
    group.graph.steps.push_back(step);
    group.layouts.push_back(layout);
    buffers[i].data = value.memory.data();
    if (value.is_number) {
      inputs.push_back({nullptr, 0, value.numbers.empty() ? 0.0 : value.numbers[0]});
    } else {
      inputs.push_back({&buffers[i], value.layout.offset, {}});
    }
    types.push_back(&value.type);
    anchor.inputs.push_back(int(i));
  }
  anchor.type = infer({op, types.data(), int(types.size()), attributes});
  group.inputs = group.anchor = int(operands.size());
  group.graph.steps.push_back(anchor);
  group.graph.outputs = {group.anchor};
  group.domain = anchor.type.shape;
  Value result{anchor.type, row_major(anchor.type.shape), {}, {}, false};
  result.layout.offset = 3;
  result.memory.assign(size_t(anchor.type.shape.element_count()) + 4, 0xa5a5a5a5a5a5a5a5u);
  buffers.back().data = result.memory.data();
  const Argument output{&buffers.back(), 3, {}};
  prepare(group)->run(inputs, {&output, 1});
  read_back(result);
  return result;
}

// Compares with numbers computed in double.  `terms` is how many products a sum has.
inline void expect_near(const Value& result, const std::vector<double>& wanted, double terms,
                        const std::string& where) {
  ASSERT_EQ(result.numbers.size(), wanted.size()) << where;
  double epsilon = 0;
  switch (result.type.dtype) {
    case DType::f64:
      epsilon = 1e-15;
      break;
    case DType::f32:
      epsilon = 1e-7;
      break;
    case DType::f16:
      epsilon = 1e-3;
      break;
    case DType::bf16:
      epsilon = 8e-3;
      break;
    default:
      epsilon = is_floating(result.type.dtype) ? 0.13 : 0;
  }
  for (size_t i = 0; i < wanted.size(); i++) {
    const double scale = std::abs(wanted[i]) + (size_of(result.type.dtype) >= 4 ? 16 * terms : 4);
    ASSERT_NEAR(result.numbers[i], wanted[i], epsilon * scale) << where << " element " << i;
  }
}

inline void expect_same(const Value& result, const std::vector<double>& wanted,
                        const std::string& where) {
  ASSERT_EQ(result.numbers.size(), wanted.size()) << where;
  for (size_t i = 0; i < wanted.size(); i++) {
    if (std::isnan(wanted[i])) {
      ASSERT_TRUE(std::isnan(result.numbers[i])) << where << " element " << i;
    } else {
      ASSERT_EQ(result.numbers[i], wanted[i]) << where << " element " << i;
    }
  }
}

inline void expect_error(ErrorKind kind, const std::string& words, FunctionRef<void()> body) {
  try {
    body();
    FAIL() << "no error with: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

}  // namespace fornax::flex
