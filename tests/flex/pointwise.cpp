// Pointwise groups against the definitions of graph/evaluate.h, and fused against one by one.
#include "tests/flex/group.h"

#include <algorithm>
#include <cmath>

namespace fornax::flex {
namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 64, 131, 1024, 5003};

std::vector<Tensor> operands_for(Op op, DType dtype, const Shape& shape, std::mt19937& random) {
  std::vector<Tensor> operands;
  for (int i = 0; i < info(op).inputs; i++) {
    const bool condition = info(op).rule == Rule::selected && i == 0;
    operands.push_back(random_tensor({condition ? DType::bool_ : dtype, shape}, random));
  }
  return operands;
}

Words expected_of(Op op, DType dtype, const std::vector<Tensor>& operands) {
  std::vector<Words> words;
  std::vector<const Word*> pointers;
  for (const Tensor& tensor : operands) words.push_back(tensor.words());
  for (const Words& w : words) pointers.push_back(w.data());
  Words result(words[0].size());
  evaluate(op, dtype, pointers, result);
  return result;
}

TEST(FlexPointwise, EveryOpOfEveryDtypeMeansWhatTheTableSays) {
  std::mt19937 random(1);
  for (int i = 0; i < op_count(); i++) {
    const Op op = Op(i);
    if (!is_pointwise(op)) continue;
    for (int d = 0; d < kDTypeCount; d++) {
      const DType dtype = DType(d);
      if (!takes(op, dtype)) continue;
      for (int64_t size : kSizes) {
        const auto operands = operands_for(op, dtype, {size}, random);
        const Words expected = expected_of(op, dtype, operands);
        const Tensor result = run_one(op, operands);
        const DType type = result.type.dtype;
        for (int64_t e = 0; e < size; e++) {
          const Word want = expected[size_t(e)], got = result.at(e);
          if (same_number(type, want, got)) continue;
          const double distance =
              is_floating(type) ? ulps(type, as<double>(want), as<double>(got)) : 1e9;
          ASSERT_LE(distance, 4.0)
              << info(op).name << " of " << name_of(dtype) << " element " << e << " of " << size
              << ": want " << as<double>(want) << " got " << as<double>(got) << " bits "
              << want.bits << " " << got.bits << " of " << as<double>(operands[0].at(e)) << " "
              << operands[0].at(e).bits << " and " << operands.back().at(e).bits;
        }
      }
    }
  }
}

TEST(FlexPointwise, CastsBetweenAllDtypes) {
  std::mt19937 random(2);
  for (int from = 0; from < kDTypeCount; from++) {
    for (int to = 0; to < kDTypeCount; to++) {
      const Tensor x = random_tensor({DType(from), {517}}, random);
      const Tensor y = run_one(Op::cast, {x}, {to});
      Words expected = x.words();
      convert(DType(from), DType(to), expected);
      for (int64_t i = 0; i < 517; i++) {
        ASSERT_TRUE(same_number(DType(to), expected[size_t(i)], y.at(i)))
            << name_of(DType(from)) << " to " << name_of(DType(to)) << ": " << x.at(i).bits
            << " want " << expected[size_t(i)].bits << " got " << y.at(i).bits;
      }
    }
  }
}

TEST(FlexPointwise, AnyStridesAndBroadcasts) {
  std::mt19937 random(3);
  const Shape shapes[] = {{},       {1},       {5},         {3, 7},        {2, 1, 300},
                          {40, 50}, {3, 4, 5}, {2, 300, 3}, {1, 260, 270}, {2, 3, 4, 5, 6},
                          {0, 3},   {67, 1031}};
  const DType dtypes[] = {DType::f32, DType::i8, DType::f64, DType::bf16, DType::i32, DType::u16};
  for (int round = 0; round < 120; round++) {
    const Shape& shape = shapes[round % int(std::size(shapes))];
    const DType dtype = dtypes[random() % std::size(dtypes)];
    std::vector<Tensor> operands;
    for (int i = 0; i < 2; i++) {
      Shape own = shape;
      for (int axis = 0; axis < own.rank(); axis++) {
        if (random() % 4 == 0 && own[axis] > 0) own[axis] = 1;
      }
      while (own.rank() > 0 && own[0] == 1 && random() % 2) own.erase(0);
      operands.push_back(random() % 3 ? random_view({dtype, own}, random)
                                      : random_tensor({dtype, own}, random));
    }
    Case c;
    const int a = c.input(operands[0]), b = c.input(operands[1]);
    const int sum = c.add(Op::add, {a, b});
    c.group.graph.outputs = {sum};
    c.group.domain = broadcast(operands[0].type.shape, operands[1].type.shape);
    const Tensor result = c.run()[0];
    const Shape& domain = c.group.domain;
    Words words[2];
    for (int i = 0; i < 2; i++) {
      const Tensor& t = operands[size_t(i)];
      const int shift = domain.rank() - t.type.shape.rank();
      for (int64_t e = 0; e < domain.element_count(); e++) {
        int64_t rest = e, offset = t.layout.offset;
        for (int axis = domain.rank() - 1; axis >= 0; axis--) {
          const int64_t index = rest % domain[axis];
          rest /= domain[axis];
          if (axis >= shift && t.type.shape[axis - shift] != 1) {
            offset += index * t.layout.strides[axis - shift];
          }
        }
        words[i].push_back(load(dtype, t.buffer->data, offset));
      }
    }
    Words expected(words[0].size());
    const Word* pointers[] = {words[0].data(), words[1].data()};
    evaluate(Op::add, dtype, pointers, expected);
    for (size_t e = 0; e < expected.size(); e++) {
      ASSERT_TRUE(same_number(dtype, expected[e], result.at(int64_t(e))))
          << text_of(domain) << " " << name_of(dtype) << " element " << e;
    }
  }
}

TEST(FlexPointwise, CopyMakesTransposesRowMajor) {
  std::mt19937 random(4);
  for (const Shape& shape :
       {Shape{64, 33}, Shape{3, 100, 70}, Shape{5, 8, 9, 10}, Shape{1, 200, 31}}) {
    for (DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
      Tensor x = random_tensor({dtype, shape}, random);
      Tensor view = x;
      const int last = shape.rank() - 1;
      std::swap(view.type.shape[last], view.type.shape[last - 1]);
      std::swap(view.layout.strides[last], view.layout.strides[last - 1]);
      EXPECT_EQ(run_one(Op::copy, {view}).words(), view.words()) << text_of(shape);
    }
  }
}

// A random graph of pointwise steps over some inputs of one shape, and its values one by one.
struct RandomGroup {
  Case fused;
  std::vector<Tensor> values;

  RandomGroup(const Shape& shape, int steps, std::mt19937& random) {
    const DType dtypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64,  DType::i8,
                            DType::i32, DType::i64, DType::u8,   DType::bool_};
    for (int i = 0; i < 4; i++) {
      const Type type{i == 0 ? DType::bool_ : dtypes[random() % std::size(dtypes)], shape};
      values.push_back(random() % 2 ? random_tensor(type, random) : random_view(type, random));
      fused.input(values.back());
    }
    for (int i = 0; i < steps; i++) add_step(dtypes[random() % std::size(dtypes)], random);
    for (int i = fused.group.inputs; i < int(values.size()); i++) {
      if (random() % 3 == 0 || i + 1 == int(values.size())) fused.group.graph.outputs.push_back(i);
    }
    fused.group.domain = shape;
  }

  void add_step(DType target, std::mt19937& random) {
    std::vector<int> operands = {int(random() % values.size())};
    const DType dtype = values[size_t(operands[0])].type.dtype;
    Attributes attributes;
    Op op = Op::cast;
    if (random() % 3 != 0) {
      do op = Op(random() % uint32_t(op_count()));
      while (!is_pointwise(op) || !takes(op, dtype));
    } else {
      attributes = {int64_t(target)};
    }
    while (int(operands.size()) < info(op).inputs) operands.push_back(other_of(dtype, random));
    if (info(op).rule == Rule::selected) operands[0] = other_of(DType::bool_, random);
    std::vector<Tensor> tensors;
    for (int operand : operands) tensors.push_back(values[size_t(operand)]);
    values.push_back(run_one(op, tensors, attributes));
    fused.add(op, operands, attributes);
  }
  int other_of(DType dtype, std::mt19937& random) const {
    int found;
    do found = int(random() % values.size());
    while (values[size_t(found)].type.dtype != dtype);
    return found;
  }
};

TEST(FlexPointwise, FusedEqualsOneByOneBitForBit) {
  std::mt19937 random(5);
  const Shape shapes[] = {{3}, {130}, {5, 7, 11}, {4, 300}, {2, 2000}, {}};
  for (int round = 0; round < 400; round++) {
    RandomGroup g(shapes[random() % std::size(shapes)], 1 + int(random() % 14), random);
    const std::vector<Tensor> results = g.fused.run();
    for (size_t i = 0; i < results.size(); i++) {
      const Tensor& want = g.values[size_t(g.fused.group.graph.outputs[i])];
      for (int64_t e = 0; e < want.type.shape.element_count(); e++) {
        ASSERT_TRUE(same_number(want.type.dtype, want.at(e), results[i].at(e)))
            << "round " << round << " output " << i << " element " << e << "\n"
            << text_of(g.fused.group.graph);
      }
    }
  }
}

TEST(FlexPointwise, OutputsMayTakeInputsBuffers) {
  std::mt19937 random(6);
  for (int round = 0; round < 400; round++) {
    RandomGroup g({2, 611}, 2 + int(random() % 10), random);
    Case& fused = g.fused;
    // Each contiguous input serves one output of its type.
    std::vector<Tensor> outputs;
    std::vector<bool> used(size_t(fused.group.inputs), false);
    std::vector<Tensor> expected;
    for (int step : fused.group.graph.outputs) {
      outputs.push_back(fused.output(step));
      Tensor want = fused.output(step);
      for (int64_t e = 0; e < 1222; e++) {
        store(want.type.dtype, want.buffer->data, e, g.values[size_t(step)].at(e));
      }
      expected.push_back(want);
      for (size_t i = 0; i < used.size(); i++) {
        const Tensor& input = fused.inputs[i];
        if (used[i] || input.type.dtype != outputs.back().type.dtype || input.layout.offset != 0 ||
            !is_contiguous(input.type.shape, input.layout)) {
          continue;
        }
        outputs.back().buffer = input.buffer;
        used[i] = true;
        break;
      }
    }
    fused.run(outputs);
    for (size_t i = 0; i < outputs.size(); i++) {
      for (int64_t e = 0; e < 1222; e++) {
        ASSERT_TRUE(same_number(outputs[i].type.dtype, expected[i].at(e), outputs[i].at(e)))
            << "round " << round << " output " << i << " element " << e << "\n"
            << text_of(fused.group.graph);
      }
    }
  }
}

TEST(FlexPointwise, NumbersAndStreamedOutputs) {
  std::mt19937 random(7);
  const Tensor x = random_tensor({DType::f32, {3, 1 << 20}}, random);
  Case c;
  const int a = c.input(x), half = c.number(DType::f32, Scalar(0.5));
  c.group.graph.outputs = {c.add(Op::mul, {half, a})};
  c.group.domain = x.type.shape;
  const Tensor y = c.run()[0];
  const auto* from = static_cast<const float*>(x.buffer->data);
  const auto* to = static_cast<const float*>(y.buffer->data);
  for (int64_t i = 0; i < (int64_t(3) << 20); i++) {
    ASSERT_TRUE(to[i] == from[i] * 0.5f || from[i] != from[i]) << i;
  }
}

}  // namespace
}  // namespace fornax::flex
