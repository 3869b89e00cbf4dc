// Tiles whose sums several blocks share: what is summed, in which order, and where the parts lie.
#include "backends/cube/splits.h"

#include <random>

#include "tests/cube/run.h"

namespace fornax::cube {
namespace {

constexpr int kRows = 16, kColumns = 16, kTile = kRows * kColumns;

// y[tile] is the sum of x[tile, turn] over the turns.
kernel::Kernel sum_of_turns() {
  Builder k("sum_of_turns", {.dialect = kernel::Dialect::tile, .distributions = {{16, 8, 2}}});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value tiles = k.number("tiles", DType::i32), turns = k.number("turns", DType::i32);
  const Value share = k.number("share", DType::i32), padded = k.number("padded", DType::i32);
  const Splits splits = declare_splits(k, DType::f32);
  const Value within = k.iota(0, kRows) * kColumns + k.iota(1, kColumns);
  const auto add = [&](const kernel::TilePart& part, FunctionRef<void(Value)> then) {
    add_up(k, splits, part, then);
  };
  const auto multiply = [&](Value tile, Value first, Value count) -> Value {
    kernel::Variable sums(k.spread(k.constant(DType::f32, 0), kRows, kColumns));
    k.loop(first, first + count, 1, [&](Value turn) {
      sums = sums.get() + k.load(x, (tile * turns + turn) * kTile + within);
    });
    return sums;
  };
  kernel::share_tiles(k, {share, padded, add}, tiles, turns, multiply,
                      [&](Value tile, Value sums) { k.store(y, tile * kTile + within, sums); });
  return k.finish();
}

class Splitting : public CubeTest {
 protected:
  void check(int64_t tiles, int64_t turns, int64_t share, int64_t padded) {
    const Tensor x = empty({DType::f32, {tiles, turns, kTile}});
    const Tensor y = empty({DType::f32, {tiles, kTile}});
    auto* numbers = static_cast<float*>(x.buffer->data);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < tiles * turns * kTile; i++) numbers[i] = uniform(random_);
    const int64_t blocks = ceiling(tiles * padded, share);
    LaunchList list(device);
    Arguments arguments;
    arguments.buffer(Place::input(0), DType::f32, 0, tiles * turns * kTile);
    arguments.buffer(Place::output(0), DType::f32, 0, tiles * kTile);
    for (const int64_t number : {tiles, turns, share, padded}) {
      arguments.number(DType::i32, number);
    }
    pass_splits(arguments, list, DType::f32, tiles, 2 * blocks, kTile);
    list.add(Launch(device, {"sum of turns", sum_of_turns}, blocks_for(blocks, 1), arguments));
    const std::vector<Argument> from = {{x.buffer.get(), 0, {}}}, to = {{y.buffer.get(), 0, {}}};
    for (int run = 0; run < 2; run++) {  // the second finds the tickets as the first left them
      list.run(from, to);
      throw_late_error(device);
      const auto got = values(y);
      for (int64_t i = 0; i < tiles * kTile; i++) {
        const int64_t tile = i / kTile;
        ASSERT_EQ(got[size_t(i)], expected(numbers, tile, i % kTile, turns, share, padded))
            << tiles << " tiles, " << turns << " turns in shares of " << share;
      }
    }
  }

 private:
  // Parts from shares that begin where they begin, added up in their order.
  static float expected(const float* x, int64_t tile, int64_t element, int64_t turns, int64_t share,
                        int64_t padded) {
    float sum = 0, part = 0;
    bool parts = false;
    for (int64_t turn = 0; turn < turns; turn++) {
      if (turn > 0 && (tile * padded + turn) % share == 0) {
        sum += part, part = 0;
        parts = true;
      }
      part += x[(tile * turns + turn) * kTile + element];
    }
    return parts ? sum + part : part;
  }
  std::mt19937 random_{3};
};

TEST_F(Splitting, SharesGoOnFromTileToTile) {
  check(3, 10, 4, 10);
  check(5, 7, 9, 7);
  check(2, 20, 3, 20);
  check(1, 9, 2, 9);
  check(4, 6, 24, 6);
}

TEST_F(Splitting, SharesOfOneTile) {
  check(3, 10, 4, 12);
  check(4, 9, 5, 10);
  check(2, 8, 4, 8);
}

}  // namespace
}  // namespace fornax::cube
