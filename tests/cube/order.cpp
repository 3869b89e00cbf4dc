// Which launches wait for which.
#include "backends/cube/order.h"

#include <gtest/gtest.h>

namespace fornax::cube::testing {
namespace {

Touch reads(runtime::Address begin, runtime::Address end) { return {begin, end, false}; }
Touch writes(runtime::Address begin, runtime::Address end) { return {begin, end, true}; }

Order order(const std::vector<std::vector<Touch>>& launches, size_t most = 1000) {
  const std::vector<std::span<const Touch>> spans(launches.begin(), launches.end());
  return order_of(spans, most);
}

TEST(Order, WritersAndReadersOfOnePieceWait) {
  EXPECT_EQ(order({{writes(0, 8)}, {reads(0, 8), writes(8, 16)}, {writes(4, 6)}, {reads(8, 12)}}),
            (Order{{}, {0}, {1}, {1}}));
}

TEST(Order, WhatTouchesNothingInCommonDoesNot) {
  EXPECT_EQ(order({{writes(0, 8)},
                   {writes(8, 16)},
                   {reads(0, 8), writes(16, 24)},
                   {reads(0, 16), writes(24, 32)}}),
            (Order{{}, {}, {0}, {0, 1}}));
}

TEST(Order, WhoWaitsForTheLastWaitsForAllBefore) {
  EXPECT_EQ(order({{writes(0, 8)},
                   {reads(0, 8), writes(8, 16)},
                   {reads(0, 8), reads(8, 16), writes(16, 24)},
                   {writes(0, 8)}}),
            (Order{{}, {0}, {1}, {2}}));
}

TEST(Order, APieceThatIsWrittenInPartStaysKnown) {
  EXPECT_EQ(
      order({{writes(0, 16)}, {writes(0, 8)}, {reads(8, 16)}, {reads(0, 16)}, {writes(0, 16)}}),
      (Order{{}, {0}, {0}, {1}, {2, 3}}));
}

TEST(Order, ALaunchDoesNotWaitForItself) {
  EXPECT_EQ(order({{reads(0, 8), writes(0, 8)}, {reads(0, 8), writes(0, 8)}}), (Order{{}, {0}}));
}

TEST(Order, AsManyReadersAsThereAreAreWaitedFor) {
  std::vector<std::vector<Touch>> launches{{writes(0, 8)}};
  for (runtime::Address i = 1; i <= 200; i++)
    launches.push_back({reads(0, 8), writes(i * 8, i * 8 + 8)});
  launches.push_back({writes(0, 8)});
  const Order found = order(launches);
  EXPECT_EQ(found[200], std::vector<uint32_t>{0});
  EXPECT_EQ(found[201].size(), 200u);
}

TEST(Order, SoManyRunAtOnceAndNotMore) {
  const std::vector<std::vector<Touch>> launches = {{writes(0, 8)},
                                                    {writes(8, 16)},
                                                    {writes(16, 24)},
                                                    {reads(8, 16), writes(24, 32)},
                                                    {writes(32, 40)}};
  EXPECT_EQ(order(launches, 5), (Order{{}, {}, {}, {1}, {}}));
  EXPECT_EQ(order(launches, 2), (Order{{}, {}, {0}, {1}, {2}}));
  EXPECT_EQ(order(launches, 1), (Order{{}, {0}, {1}, {2}, {3}}));
}

}  // namespace
}  // namespace fornax::cube::testing
