// Arenas: where results that do not outlive a plan lie.
#include <algorithm>
#include <random>

#include "backend/registry.h"
#include "tests/stream/stream_test.h"

namespace fornax {
namespace {

struct Range {
  int64_t begin, end;  // bytes
};

// A segment of products, which are groups of their own, and additions, which may take over memory.
// Node i reads two of what came before.
Segment random_segment(uint64_t seed, int nodes) {
  std::mt19937_64 random(seed);
  const auto below = [&](int count) { return int(random() % uint64_t(count)); };
  Segment segment;
  const Type type{DType::f32, {32, 32}};
  for (int i = 0; i < 3; i++) segment.leaves.push_back({type, row_major(type.shape), false, i > 0});
  for (int i = 0; i < nodes; i++) {
    const int known = 3 + i, recent = std::min(known, 6);
    SegmentNode node{below(3) ? Op::matmul : Op::add, type, {}, {}, below(8) == 0};
    for (int k = 0; k < 2; k++) node.inputs.push_back(known - 1 - below(recent));
    segment.nodes.push_back(std::move(node));
  }
  segment.nodes.back().outlives = true;
  return segment;
}

Plan arena_plan(const Segment& segment) {
  const Device device("reference");
  PhysicalDevice& physical = physical_device(device.physical());
  Plan plan = make_plan(segment, *physical.backend, physical.ordinal);
  EXPECT_EQ(plan.arena_bytes, 0u) << "no arena unless the backend wants one";
  plan_arena(segment, plan);
  return plan;
}

// Runs the plan without computing: nothing that is still to be read is ever overwritten.
void expect_sound(const Plan& plan, const std::string& where) {
  std::vector<Range> place(size_t(plan.values), Range{-1, -1});
  std::vector<int> last(size_t(plan.values), -1);
  for (int s = 0; s < int(plan.steps.size()); s++) {
    for (int value : plan.steps[size_t(s)].inputs) last[size_t(value)] = s;
  }
  std::vector<int> alive;  // in the arena
  for (int s = 0; s < int(plan.steps.size()); s++) {
    const PlanStep& step = plan.steps[size_t(s)];
    for (const PlanOutput& output : step.outputs) {
      Range& range = place[size_t(output.value)];
      const int64_t size = int64_t(size_of(output.type.dtype));
      if (output.donor >= 0) {
        const int donor = step.inputs[size_t(output.donor)];
        ASSERT_EQ(last[size_t(donor)], s) << where << ": the donor is read later";
        range = place[size_t(donor)];
        std::erase(alive, donor);
      } else if (output.place >= 0) {
        range.begin = output.place * size;
        range.end = range.begin + output.type.shape.element_count() * size;
        ASSERT_EQ(range.begin % 256, 0) << where;
        ASSERT_LE(size_t(range.end), plan.arena_bytes) << where;
      }
      if (range.begin < 0) continue;
      for (int other : alive) {
        const Range& taken = place[size_t(other)];
        ASSERT_TRUE(range.end <= taken.begin || taken.end <= range.begin)
            << where << ": step " << s << " overwrites value " << other;
      }
      alive.push_back(output.value);
    }
    std::erase_if(alive, [&](int value) { return last[size_t(value)] <= s; });
  }
  for (const PlanResult& result : plan.results) {
    ASSERT_LT(place[size_t(result.value)].begin, 0) << where << ": a result lies in the arena";
  }
}

TEST(Arena, never_overwrites_what_is_still_read) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    const Plan plan = arena_plan(random_segment(seed, 5 + int(seed)));
    ASSERT_TRUE(plan.keeps_memory);
    expect_sound(plan, "seed " + std::to_string(seed));
  }
}

TEST(Arena, of_a_chain_holds_two_values) {
  Segment segment;
  const Type type{DType::f32, {100, 100}};
  segment.leaves.push_back({type, row_major(type.shape), false, false});
  for (int i = 0; i < 12; i++) segment.nodes.push_back({Op::matmul, type, {}, {i, 0}, i == 11});
  const Plan plan = arena_plan(segment);
  EXPECT_EQ(plan.arena_bytes, 2 * 40192u);  // 40000 bytes each, in units of 256
}

// What dies early makes room for results, which an arena could not give back.
TEST(Arena, is_not_made_where_it_would_cost_memory) {
  Segment segment;
  const Type wide{DType::f32, {4096, 4096}}, leaf{DType::f32, {4096, 1}};
  segment.leaves.push_back({leaf, row_major(leaf.shape), false, false});
  segment.leaves.push_back({{DType::f32, {1, 4096}}, row_major({1, 4096}), false, false});
  segment.nodes.push_back({Op::matmul, wide, {}, {0, 1}, false});
  segment.nodes.push_back({Op::matmul, leaf, {}, {2, 0}, false});
  segment.nodes.push_back({Op::matmul, wide, {}, {3, 1}, true});
  const Plan plan = arena_plan(segment);
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_FALSE(plan.keeps_memory);
}

}  // namespace
}  // namespace fornax
