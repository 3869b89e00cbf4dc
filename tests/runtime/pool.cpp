// The caching allocator, over numbers instead of memory.
#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace fornax::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A device with so many bytes.
struct Store {
  size_t left;
  int taken = 0, given = 0;
  Address next = 4096;
  std::map<Address, size_t> segments = {};
  Pool pool{[this](size_t bytes) -> Address {
              if (bytes > left) return 0;
              left -= bytes;
              taken++;
              const Address address = next;
              segments[address] = bytes;
              next += bytes + 4096;
              return address;
            },
            [this](Address address) {
              left += segments.at(address);
              segments.erase(address);
              given++;
            }};
};

TEST(Pool, SmallBlocksShareASegment) {
  Store store{64 * kMiB};
  const Address a = store.pool.allocate(1), b = store.pool.allocate(600);
  EXPECT_EQ(b, a + 256);
  EXPECT_EQ(store.taken, 1);
  EXPECT_EQ(store.pool.use().in_use, 256u + 768u);
  EXPECT_EQ(store.pool.use().reserved, 2 * kMiB);
  store.pool.release(a);
  EXPECT_EQ(store.pool.allocate(256), a);
}

TEST(Pool, TheBestFitIsUsed) {
  Store store{64 * kMiB};
  const Address a = store.pool.allocate(4096), gap1 = store.pool.allocate(512);
  const Address b = store.pool.allocate(2048), gap2 = store.pool.allocate(512);
  store.pool.release(a);
  store.pool.release(b);
  store.pool.trim();  // nothing waits for its size any more
  EXPECT_EQ(store.pool.allocate(1536), b);
  EXPECT_EQ(store.pool.allocate(4096), a);
  store.pool.release(gap1);
  store.pool.release(gap2);
}

TEST(Pool, LargeBlocksAreCutAndJoined) {
  Store store{64 * kMiB};
  const Address whole = store.pool.allocate(30 * kMiB);
  store.pool.release(whole);
  const Address a = store.pool.allocate(10 * kMiB), b = store.pool.allocate(10 * kMiB),
                c = store.pool.allocate(10 * kMiB);
  EXPECT_EQ(a, whole);
  EXPECT_EQ(b, a + 10 * kMiB);
  EXPECT_EQ(store.taken, 1);
  store.pool.release(a);
  store.pool.release(c);
  store.pool.release(b);  // joins both
  EXPECT_EQ(store.pool.allocate(30 * kMiB), whole);
  EXPECT_EQ(store.taken, 1);
}

TEST(Pool, ManyNeighboursAreJoinedInAnyOrder) {
  for (const bool upwards : {true, false}) {
    Store store{64 * kMiB};
    std::vector<Address> blocks;
    for (int i = 0; i < 80; i++) blocks.push_back(store.pool.allocate(1024));
    if (!upwards) std::reverse(blocks.begin(), blocks.end());
    const Address last = store.pool.allocate(1024);  // keeps the segment
    for (const Address block : blocks) store.pool.release(block);
    store.pool.trim();
    EXPECT_EQ(store.pool.allocate(80 * 1024), upwards ? blocks.front() : blocks.back());
    EXPECT_EQ(store.taken, 1);
    store.pool.release(last);
  }
}

TEST(Pool, WhatIsGivenBackWaitsForItsSize) {
  Store store{64 * kMiB};
  const Address a = store.pool.allocate(512), b = store.pool.allocate(512);
  store.pool.release(b);
  store.pool.release(a);
  const Address other = store.pool.allocate(256);
  EXPECT_TRUE(other > b);
  EXPECT_EQ(store.pool.allocate(512), a);  // the lowest first
  EXPECT_EQ(store.pool.allocate(512), b);
}

TEST(Pool, TrimGivesBackWhatNobodyUses) {
  Store store{64 * kMiB};
  const Address a = store.pool.allocate(30 * kMiB), b = store.pool.allocate(3 * kMiB);
  store.pool.release(a);
  EXPECT_EQ(store.given, 0);
  store.pool.trim();
  EXPECT_EQ(store.given, 1);
  EXPECT_EQ(store.pool.use().reserved, 20 * kMiB);
  EXPECT_EQ(store.pool.use().in_use, 3 * kMiB);
  EXPECT_EQ(store.pool.use().peak, 33 * kMiB);
  store.pool.release(b);
  store.pool.trim();
  EXPECT_EQ(store.left, 64 * kMiB);
}

TEST(Pool, WithoutMemoryCachedSegmentsAreGivenBackFirst) {
  Store store{64 * kMiB};
  store.pool.release(store.pool.allocate(40 * kMiB));
  EXPECT_NE(store.pool.allocate(50 * kMiB), 0u);
  EXPECT_EQ(store.given, 1);
  EXPECT_NE(store.pool.allocate(8 * kMiB), 0u);  // a segment of 20 MiB has no room
  EXPECT_EQ(store.pool.allocate(8 * kMiB), 0u);
  EXPECT_EQ(store.pool.allocate(SIZE_MAX), 0u);
}

TEST(Pool, BlocksNeverOverlap) {
  Store store{512 * kMiB};
  std::mt19937 random(1);
  std::map<Address, size_t> blocks;
  for (int step = 0; step < 20000; step++) {
    if (blocks.size() < 200 && random() % 2) {
      const size_t bytes = size_t(1) << (random() % 22);
      const Address address = store.pool.allocate(bytes + random() % bytes);
      ASSERT_EQ(address % 256, 0u);
      const auto after = blocks.lower_bound(address);
      ASSERT_TRUE(after == blocks.end() || address + bytes <= after->first);
      ASSERT_TRUE(after == blocks.begin() ||
                  std::prev(after)->first + std::prev(after)->second <= address);
      blocks[address] = bytes;
    } else if (!blocks.empty()) {
      const auto chosen = std::next(blocks.begin(), long(random() % blocks.size()));
      store.pool.release(chosen->first);
      blocks.erase(chosen);
    }
  }
  for (const auto& [address, bytes] : blocks) store.pool.release(address);
  EXPECT_EQ(store.pool.use().in_use, 0u);
  store.pool.trim();
  EXPECT_EQ(store.left, 512 * kMiB);  // so everything was joined again
}

}  // namespace
}  // namespace fornax::runtime
