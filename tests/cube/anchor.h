// Running groups of one anchor on the kernels of the cube backend, step by step in the interpreter,
// and on the reference backend, with operands of any layout.  For tests alone.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "backends/cube/kernels.h"
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/evaluate.h"
#include "runtime/registry.h"
#include "tests/cube/late.h"

namespace fornax::cube::testing {

inline runtime::Runtime& interpreter() {
  static runtime::Runtime& found = []() -> runtime::Runtime& {
    setenv("FORNAX_INTERPRETER", "1", 1);
    for (runtime::Runtime* runtime : runtime::runtimes()) {
      if (runtime->name() == "interpreter") return *runtime;
    }
    fail(ErrorKind::internal, "no interpreter");
  }();
  return found;
}
// A device of its own, so that its programs can be counted.
inline std::unique_ptr<Device> new_device() {
  std::string absence;
  return std::make_unique<Device>(interpreter(), 0, interpreter().devices(absence).at(0));
}

inline Backend& reference(int& ordinal) {
  interpreter();  // the settings are read once
  for (int i = 0; i < physical_device_count(); i++) {
    PhysicalDevice& device = physical_device(i);
    if (device.backend->name() != "reference") continue;
    ordinal = device.ordinal;
    return *device.backend;
  }
  fail(ErrorKind::internal, "no reference backend");
}

enum class Style { plain, reversed_axes, negative, spaced, repeated };
inline constexpr Style kStyles[] = {Style::plain, Style::reversed_axes, Style::negative,
                                    Style::spaced, Style::repeated};

// An operand: its memory, and how its elements lie there; or one number.
struct Operand {
  Type type;
  Layout layout;
  std::vector<uint64_t> memory;
  bool is_number = false;
  Scalar number;
};

inline Layout styled(const Shape& shape, Style style, int64_t& elements) {
  Layout layout = row_major(shape);
  if (style == Style::reversed_axes) {
    int64_t stride = 1;
    for (int axis = 0; axis < shape.rank(); axis++) {
      layout.strides[axis] = stride;
      stride *= shape[axis];
    }
  }
  int64_t low = 0, high = 0;
  for (int axis = 0; axis < shape.rank(); axis++) {
    int64_t& stride = layout.strides[axis];
    if (style == Style::negative) stride = -stride;
    if (style == Style::spaced) stride *= 3;
    if (style == Style::repeated && axis % 2 == 0) stride = 0;
    const int64_t reach = std::max<int64_t>(shape[axis] - 1, 0) * stride;
    (reach < 0 ? low : high) += reach;
  }
  layout.offset = (style == Style::plain ? 4 : 5) - low;
  elements = high - low + 6;
  return layout;
}

// An operand whose memory holds make() everywhere.
template <class Make>
Operand operand(const Type& type, Style style, Make make) {
  int64_t elements = 0;
  Operand made{type, styled(type.shape, style, elements), {}, false, {}};
  made.memory.assign(size_t(elements) * size_of(type.dtype) / 8 + 1, 0);
  for (int64_t i = 0; i < elements; i++) {
    store(type.dtype, made.memory.data(), i, word_of(type.dtype, make()));
  }
  return made;
}
inline Operand random_operand(DType dtype, const Shape& shape, Style style, std::mt19937& random,
                              double low = -2, double high = 2) {
  if (!is_signed(dtype)) low = 0;
  std::uniform_real_distribution<double> uniform(low, high);
  return operand({dtype, shape}, style, [&]() -> Scalar {
    const double number = uniform(random);
    if (is_floating(dtype)) return number;
    return int64_t(std::floor(number));
  });
}
inline Operand number_operand(DType dtype, const Shape& shape, double number) {
  return {{dtype, shape}, {}, {}, true, number};
}

using Prepare = std::unique_ptr<PreparedGroup> (*)(Device&, const Group&);

struct Case {
  Group group;
  const std::vector<Operand>& operands;

  Case(Op op, const std::vector<Operand>& with, const Attributes& attributes) : operands(with) {
    Step anchor{op, {}, {}, attributes, {}};
    std::vector<const Type*> types;
    for (const Operand& x : operands) {
      group.graph.steps.push_back({x.is_number ? Op::full : Op::leaf, x.type, {}, {}, x.number});
      group.layouts.push_back(x.layout);
      group.layouts.back().offset = 0;
      types.push_back(&x.type);
      anchor.inputs.push_back(group.inputs++);
    }
    anchor.type = infer({op, types.data(), int(types.size()), attributes});
    group.anchor = group.inputs;
    group.domain = types[0]->shape;
    group.graph.steps.push_back(anchor);
    group.graph.outputs = {group.anchor};
  }
  const Type& result() const { return group.graph.steps.back().type; }

  // The result's elements; `run` gets inputs and the output in memory of `backend`'s kind.
  template <class Allocate, class Write, class Run>
  std::vector<Word> words(Allocate allocate, Write write, Run run) const {
    std::vector<Argument> inputs;
    for (const Operand& x : operands) {
      if (x.is_number) {
        inputs.push_back({nullptr, 0, x.number});
        continue;
      }
      Buffer* buffer = allocate(x.memory.size() * 8);
      write(*buffer, x.memory);
      inputs.push_back({buffer, x.layout.offset, {}});
    }
    const size_t count = size_t(result().shape.element_count());
    std::vector<uint64_t> memory(count * size_of(result().dtype) / 8 + 1);
    const Argument output{allocate(memory.size() * 8), 0, {}};
    run(inputs, output, memory);
    std::vector<Word> all;
    for (size_t i = 0; i < count; i++) {
      all.push_back(load(result().dtype, memory.data(), int64_t(i)));
    }
    return all;
  }

  std::vector<Word> by_reference() const {
    int ordinal = 0;
    Backend& backend = reference(ordinal);
    std::vector<Ref<Buffer>> buffers;
    return words(
        [&](size_t bytes) {
          buffers.push_back(backend.allocate(ordinal, bytes));
          return buffers.back().get();
        },
        [&](Buffer& to, const std::vector<uint64_t>& from) {
          backend.write(to, 0, from.data(), from.size() * 8);
        },
        [&](auto& inputs, const Argument& output, std::vector<uint64_t>& into) {
          backend.execute(*backend.prepare(ordinal, group), inputs, {&output, 1});
          backend.read(into.data(), *output.buffer, 0, into.size() * 8);
        });
  }
  std::vector<Word> by_kernels(Device& device, Prepare prepare) const {
    runtime::Runtime& runtime = device.runtime();
    std::deque<Buffer> buffers;
    const auto address = [](const Buffer& buffer) {
      return reinterpret_cast<runtime::Address>(buffer.data);
    };
    std::vector<Word> all = words(
        [&](size_t bytes) {
          Buffer& made = buffers.emplace_back();
          made.data = reinterpret_cast<void*>(runtime.allocate(0, bytes));
          return &made;
        },
        [&](Buffer& to, const std::vector<uint64_t>& from) {
          runtime.write(0, address(to), from.data(), from.size() * 8);
        },
        [&](auto& inputs, const Argument& output, std::vector<uint64_t>& into) {
          prepare(device, group)->run(inputs, {&output, 1});
          throw_late_error(device);
          runtime.read(0, into.data(), address(*output.buffer), into.size() * 8);
        });
    for (const Buffer& buffer : buffers) runtime.release(0, address(buffer));
    return all;
  }
};

// How far two correct results may lie apart, as a part of their size.
inline double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-15;
    case DType::f32:
      return 1e-7;
    case DType::f16:
      return 1e-3;
    case DType::bf16:
      return 8e-3;
    default:
      return is_floating(dtype) ? 0.13 : 0;
  }
}

// `terms`: how many numbers of about 1 a result is the sum of.
inline void expect_near(const Case& c, const std::vector<Word>& got, const std::vector<Word>& want,
                        double terms, const std::string& where) {
  const DType dtype = c.result().dtype;
  ASSERT_EQ(got.size(), want.size()) << where;
  for (size_t i = 0; i < want.size(); i++) {
    if (!is_floating(dtype)) {
      ASSERT_EQ(int64_t(got[i].bits), int64_t(want[i].bits)) << where << " element " << i;
      continue;
    }
    const double a = as<double>(got[i]), b = as<double>(want[i]);
    if (std::isnan(b) || std::isinf(b)) {
      ASSERT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << where << " element " << i << ": " << a;
      continue;
    }
    ASSERT_NEAR(a, b, epsilon_of(dtype) * (2 * std::abs(b) + terms)) << where << " element " << i;
  }
}

inline std::string words_of(const std::vector<Operand>& operands) {
  std::string words;
  for (const Operand& x : operands) {
    words += text_of(x.type) + " strides";
    for (int axis = 0; axis < x.type.shape.rank(); axis++) {
      words += " " + std::to_string(x.layout.strides[axis]);
    }
    words += "; ";
  }
  return words;
}

// Runs the op on kernels of `device` and compares.
inline void check(Device& device, Prepare prepare, Op op, const std::vector<Operand>& operands,
                  const Attributes& attributes = {}, double terms = 0) {
  const Case c(op, operands, attributes);
  const std::string where = std::string(info(op).name) + " of " + words_of(operands);
  expect_near(c, c.by_kernels(device, prepare), c.by_reference(), terms, where);
}

}  // namespace fornax::cube::testing
