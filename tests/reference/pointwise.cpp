// Groups of pointwise steps, layouts, memory, and what the backend refuses.
#include <cstring>

#include "tests/errors.h"
#include "tests/reference/program.h"

namespace fornax {
namespace {

TEST(Pointwise, steps_broadcast_and_chain) {
  Program p;
  const int a = p.f32({2, 1}, {1, 2}), b = p.f32({3}, {10, 20, 30});
  const int two = p.number(DType::f32, 2);
  const int product = p.step(Op::mul, {a, b});
  p.step(Op::add, {product, two});
  EXPECT_EQ(text_of(p.type()), "f32[2,3]");
  expect_numbers(p.doubles(), {12, 22, 32, 22, 42, 62});
}

TEST(Pointwise, nothing_times_something_is_nothing) {  // C002
  Program p;
  const int a = p.f32({3, 0}, {}), b = p.f32({3, 1}, {1, 2, 3});
  p.step(Op::add, {a, b});
  EXPECT_EQ(text_of(p.type()), "f32[3,0]");
  EXPECT_TRUE(p.doubles().empty());
}

TEST(Pointwise, rounds_after_each_step) {
  Program p;
  const int x = p.leaf(DType::f16, {1}, {2048}), one = p.number(DType::f16, 1);
  const int sum = p.step(Op::add, {x, one});
  p.step(Op::add, {sum, one});
  expect_numbers(p.doubles(), {2048});
}

TEST(Pointwise, casts_stand_among_the_steps) {
  Program p;
  const int x = p.f32({4}, {300, -1, kNan, kInfinity});
  const int bytes = p.step(Op::cast, {x}, {int64_t(DType::u8)});
  p.step(Op::bitwise_not, {bytes});
  EXPECT_EQ(p.integers(), (std::vector<int64_t>{0, 255, 255, 0}));
}

TEST(Pointwise, chooses_by_condition_and_compares) {
  Program p;
  const int x = p.f32({3}, {-1, 0, 2}), zero = p.number(DType::f32, 0);
  const int positive = p.step(Op::greater, {x, zero});
  p.step(Op::where, {positive, x, zero});
  expect_numbers(p.doubles(), {0, 0, 2});
}

TEST(Pointwise, a_result_may_take_the_place_of_an_input) {
  Program p;
  const int x = p.f32({3}, {1, 2, 3});
  const int square = p.step(Op::square, {x});
  p.step(Op::add, {square, x});
  p.run_into(p.buffer(0));
  float result[3];
  reference().read(result, p.buffer(0), 0, sizeof result);
  EXPECT_EQ(result[0], 2);
  EXPECT_EQ(result[2], 12);
}

TEST(Pointwise, reads_through_any_layout) {
  Program p;
  const int x = p.i64({2, 3}, {0, 1, 2, 3, 4, 5});
  Layout backwards;  // the transpose, its rows in reverse
  backwards.strides[0] = -1;
  backwards.strides[1] = 3;
  p.relayout(x, {3, 2}, backwards, 2);
  p.step(Op::copy, {x});
  EXPECT_EQ(p.integers(), (std::vector<int64_t>{2, 5, 1, 4, 0, 3}));
}

TEST(Backend, counts_memory_and_refuses_too_much) {
  const MemoryUse before = reference().memory(0);
  {
    Ref<Buffer> buffer = reference().allocate(0, 1000);
    EXPECT_EQ(reference().memory(0).in_use, before.in_use + 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data) % 64, 0u);
  }
  EXPECT_EQ(reference().memory(0).in_use, before.in_use);
  EXPECT_GE(reference().memory(0).peak, before.in_use + 1000);
  EXPECT_NE(reference().allocate(0, 0)->data, nullptr);
  const std::string message =
      message_of(ErrorKind::out_of_memory, [] { (void)reference().allocate(0, size_t(1) << 60); });
  EXPECT_NE(message.find("1152921504606846976 bytes"), std::string::npos) << message;
  (void)message_of(ErrorKind::out_of_memory, [] { (void)reference().allocate(0, ~size_t(0)); });
}

TEST(Backend, refuses_groups_that_break_the_rules) {
  const auto refused = [](Program& p) {
    p.group().graph.outputs = {int(p.group().graph.steps.size()) - 1};
    return message_of(ErrorKind::internal, [&] { (void)reference().prepare(0, p.group()); });
  };
  Program wrong_type;
  wrong_type.step(Op::exp, {wrong_type.f32({2}, {1, 2})});
  wrong_type.group().graph.steps.back().type.dtype = DType::f64;
  EXPECT_NE(refused(wrong_type).find("%1 (exp)"), std::string::npos);

  Program two_anchors;
  const int sum = two_anchors.step(Op::sum, {two_anchors.f32({2}, {1, 2})}, {0});
  two_anchors.step(Op::sum, {sum}, {0});
  EXPECT_NE(refused(two_anchors).find("not the anchor"), std::string::npos);

  Program later;
  later.step(Op::exp, {later.f32({2}, {1, 2})});
  later.group().graph.steps.back().inputs = {1};
  EXPECT_NE(refused(later).find("later step"), std::string::npos);
}

}  // namespace
}  // namespace fornax
