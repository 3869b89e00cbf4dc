// Products on compute 90: how they are shared out among blocks.
#include "backends/cube/hopper.h"

#include <gtest/gtest.h>

#include "backends/cube/shape_class.h"

namespace fornax::cube {
namespace {

constexpr int kProcessors = 132;

TEST(HopperPlans, ManyTilesStayWhole) {
  for (const HopperSize& size :
       {HopperSize{1, 4096, 4096, 4096}, {1, 16384, 2304, 768}, {1, 50304, 768, 16384}}) {
    const HopperPlan plan = plan_hopper(size, kProcessors);
    EXPECT_EQ(plan.share, 0) << size.m;
    EXPECT_EQ(plan.rows * plan.columns, 128 * 256) << size.m;
  }
  EXPECT_EQ(plan_hopper({1, 1024, 1024, 1024}, kProcessors).share, 0);
  // Tiles of 128 x 128: 108 and 144.
  EXPECT_EQ(plan_hopper({1, 768, 2304, 16384}, kProcessors).share, 0);
  EXPECT_EQ(plan_hopper({1, 3072, 768, 16384}, kProcessors).share, 0);
}

// All turns of all tiles are somebody's, once; every part has some that its tile needs.
TEST(HopperPlans, SharesAreWholeAndEven) {
  for (const HopperSize& size : {HopperSize{1, 768, 768, 16384},
                                 {1, 256, 256, 65536},
                                 {1, 512, 512, 16384},
                                 {3, 200, 264, 90000}}) {
    const HopperPlan plan = plan_hopper(size, kProcessors);
    ASSERT_GT(plan.share, 0) << size.n;
    const int64_t tiles = size.tiles(plan.rows, plan.columns), turns = size.turns();
    const int64_t blocks = ceiling(tiles * plan.padded, plan.share);
    EXPECT_LE(blocks, kProcessors);
    EXPECT_GE(blocks * 100, kProcessors * 90) << size.n;
    EXPECT_LE(plan.share * 100, ceiling(tiles * turns, kProcessors) * 110) << size.n;
    ASSERT_GE(plan.padded, turns);
    for (int64_t tile = 0; tile < tiles; tile++) {
      const int64_t last = ((tile + 1) * plan.padded - 1) / plan.share;
      const int64_t first = std::max(tile * plan.padded, last * plan.share) - tile * plan.padded;
      EXPECT_LT(first, turns) << "the last part of tile " << tile << " is empty";
    }
  }
}

}  // namespace
}  // namespace fornax::cube
