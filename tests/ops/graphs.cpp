// Whole graphs: fused, eager, replayed from the plan cache, and on the reference.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "stream/plan.h"
#include "tests/ops/compare.h"
#include "tests/ops/modes.h"
#include "tests/ops/random_graph.h"

namespace fornax::conformance {
namespace {

constexpr int kInstructions = 70;  // each brings two to five ops that keep its numbers tame
constexpr int kSeeds = 40;
constexpr int kRepeats = 4;  // some devices record the third run of a plan and replay the others

std::vector<Host> read_all(const std::vector<Tensor>& tensors) {
  std::vector<Host> hosts;
  for (const Tensor& tensor : tensors) hosts.push_back(read(tensor));
  return hosts;
}

// In smooth graphs each op passes on at most the errors it is given, and adds its own.
Tolerance tolerance_of(const RandomGraph& graph, const Host& want) {
  Tolerance tolerance;
  if (graph.numbers == Numbers::smooth && is_floating(want.type.dtype)) {
    tolerance.absolute.assign(size_t(want.type.shape.element_count()), 2e-4);
  }
  return tolerance;
}

void check(Numbers numbers, uint64_t seed, Device device) {
  const RandomGraph graph = random_graph(numbers, seed, kInstructions);
  const std::vector<Host> eager = read_all(run(graph, device.eager()));
  const std::vector<Host> fused = read_all(run(graph, device.fused()));
  const size_t plans = cached_plan_count(device.physical());
  std::vector<std::vector<Host>> again;
  for (int i = 0; i < kRepeats; i++) again.push_back(read_all(run(graph, device.fused())));
  EXPECT_EQ(cached_plan_count(device.physical()), plans)
      << "a second run made plans, seed " << seed;
  ASSERT_EQ(fused.size(), eager.size());
  std::vector<Host> reference;
  if (numbers != Numbers::all) reference = read_all(run(graph, Device("reference").eager()));
  for (size_t i = 0; i < eager.size(); i++) {
    const std::string where = fmt::format("seed {}, kept value {}: ", seed, i);
    const auto wrong = difference(fused[i], eager[i]);
    ASSERT_FALSE(wrong) << where << "fused against eager: " << *wrong;
    for (const std::vector<Host>& repeated : again) {
      const auto changed = difference(repeated[i], fused[i]);
      ASSERT_FALSE(changed) << where << "a repeated run: " << *changed;
    }
    if (reference.empty()) continue;
    const auto off = difference(eager[i], reference[i], tolerance_of(graph, reference[i]));
    ASSERT_FALSE(off) << where << "against the reference: " << *off;
  }
}

// What random graphs compare with the reference: each op of the table.
void check_coverage() {
  std::vector<int> drawn(size_t(op_count()), 0);
  for (Numbers numbers : {Numbers::exact, Numbers::smooth}) {
    for (uint64_t seed = 1; seed <= kSeeds; seed++) {
      for (const Instruction& step : random_graph(numbers, seed, kInstructions).instructions) {
        drawn[size_t(step.op)]++;
      }
    }
  }
  for (int op = 0; op < op_count(); op++) {
    if (Op(op) == Op::leaf || Op(op) == Op::full) continue;  // operands and numbers of all others
    EXPECT_GE(drawn[size_t(op)], 3) << info(Op(op)).name;
  }
}

}  // namespace

void register_graphs(Device device) {
  const struct {
    const char* name;
    Numbers numbers;
  } classes[] = {{"exact", Numbers::exact}, {"smooth", Numbers::smooth}, {"all", Numbers::all}};
  if (device.physical() == 0) add_test("graphs", "draw_every_op", check_coverage);
  for (const auto& one : classes) {
    add_test("graphs/" + short_name(device), one.name, [numbers = one.numbers, device] {
      for (uint64_t seed = 1; seed <= kSeeds && !::testing::Test::HasFailure(); seed++) {
        check(numbers, seed, device);
      }
    });
  }
}

}  // namespace fornax::conformance
