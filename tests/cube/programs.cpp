// Programs that are compiled while groups are prepared: each once, errors where they are launched.
#include <thread>
#include <vector>

#include "tests/cube/run.h"
#include "tests/errors.h"

namespace fornax::cube {
namespace {

class CubePrograms : public CubeTest {
 protected:
  Group negation() {
    Case c;
    c.group.graph.outputs = {c.add(Op::neg, {c.input(x)})};
    c.group.domain = x.type.shape;
    return c.group;
  }
  // Whether the group computes it.
  void expect_negation(const PreparedGroup& prepared) {
    const Tensor y = empty(x.type);
    run(prepared, y);
    EXPECT_EQ(values(y).at(2), -values(x).at(2));
  }
  void run(const PreparedGroup& prepared, const Tensor& y) {
    const std::vector<Argument> from = {{x.buffer.get(), 0, {}}}, to = {{y.buffer.get(), 0, {}}};
    prepared.run(from, to);
  }
  Tensor x = counting({DType::f32, {64}});
};

TEST_F(CubePrograms, EqualRecipesAreCompiledOnceAlsoAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) threads.emplace_back([&] { (void)prepare(negation()); });
  for (std::thread& thread : threads) thread.join();
  expect_negation(*prepare(negation()));
  EXPECT_EQ(runtime.compiled, 1);
  EXPECT_EQ(programs(), 1u);
}

TEST_F(CubePrograms, WhatDoesNotCompileIsToldByTheLaunchAndTriedAgain) {
  runtime.refuses = true;
  const auto prepared = prepare(negation());
  const Tensor y = empty(x.type);
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(message_of(ErrorKind::internal, [&] { run(*prepared, y); }), "refused");
  }
  runtime.refuses = false;
  expect_negation(*prepared);
}

}  // namespace
}  // namespace fornax::cube
