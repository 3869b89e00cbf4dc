// arange, random_bits: results that are made of their positions.
#include "backends/cube/frame.h"
#include "backends/cube/kernels.h"
#include "backends/cube/positions.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

// The dtype in which an arange is computed: the meaning of ops.def, where every number of the
// result's dtype and every count fit.
DType arange_dtype(DType dtype) {
  if (is_floating(dtype)) return DType::f64;
  return is_signed(dtype) || is_boolean(dtype) ? DType::i64 : DType::u64;
}

Frame generator(const Anchor& anchor, int lanes) {
  Frame frame;
  frame.read("x0", anchor.inputs[0], {}, {});
  frame.read("x1", anchor.inputs[1], {}, {});
  frame.write("y", Place::output(0), anchor.result.dtype, {anchor.result.shape.element_count()},
              {1}, lanes);
  return frame;
}

void store_lanes(Builder& k, const Framed& f, const At& at, std::span<const Value> lanes) {
  f.views[2].store(k, at.position, k.pack(lanes));
}

// Multipliers and what the keys grow by: base/philox.h.
constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kGrowth0 = 0x9E3779B9, kGrowth1 = 0xBB67AE85;

std::vector<Value> philox(Builder& k, Value key, Value counter) {
  const auto low = [&](Value x) { return k.cast(x, DType::u32); };
  const auto high = [&](Value x) { return k.cast(x >> 32, DType::u32); };
  Value key0 = low(key), key1 = high(key);
  Value c0 = low(counter), c1 = high(counter);
  Value c2 = k.constant(DType::u32, 0), c3 = c2;
  for (int round = 0; round < 10; round++) {
    const Value high0 = mul_high(c0, kMultiplier0), low0 = c0 * kMultiplier0;
    const Value high1 = mul_high(c2, kMultiplier1), low1 = c2 * kMultiplier1;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 = key0 + kGrowth0;
    key1 = key1 + kGrowth1;
  }
  return {c0, c1, c2, c3};
}

constexpr int kWords = 4;  // of a Philox block

void store_words(Builder& k, const Framed& f, const At& at) {
  const Value key = f.views[0].load(k, {}), counter = f.views[1].load(k, {});
  const Value block = k.cast(at.element, DType::u64) >> 2;
  std::vector<Value> words = philox(k, key, counter + block);
  if (at.lanes == kWords) return store_lanes(k, f, at, words);
  const Value which = at.element & (kWords - 1);
  Value word = words[0];
  for (int i = 1; i < kWords; i++) word = select(which == i, words[size_t(i)], word);
  f.views[2].store(k, at.position, word);
}

}  // namespace

Value arange_element(Builder& k, DType dtype, Value start, Value step, Value position) {
  const DType computed = arange_dtype(dtype);
  return k.cast(k.cast(start, computed) + k.cast(position, computed) * k.cast(step, computed),
                dtype);
}

std::unique_ptr<PreparedGroup> prepare_arange(Device& device, const Group& group) {
  const Anchor anchor = anchor_of(group);
  auto list = std::make_unique<LaunchList>(device);
  const int64_t count = anchor.result.shape.element_count();
  if (count == 0) return list;
  const int lanes = 16 / int(size_of(anchor.result.dtype));
  list->add(walk(device, {.name = "arange",
                          .frame = generator(anchor, lanes),
                          .extents = {count},
                          .lanes = lanes,
                          .body = [](Builder& k, const Framed& f, const At& at) {
                            const DType dtype = f.views[2].known.dtype;
                            const Value start = f.views[0].load(k, {});
                            const Value step = f.views[1].load(k, {});
                            std::vector<Value> lanes;
                            for (int lane = 0; lane < at.lanes; lane++) {
                              lanes.push_back(
                                  arange_element(k, dtype, start, step, at.element + lane));
                            }
                            store_lanes(k, f, at, lanes);
                          }}));
  return list;
}

std::unique_ptr<PreparedGroup> prepare_random_bits(Device& device, const Group& group) {
  const Anchor anchor = anchor_of(group);
  auto list = std::make_unique<LaunchList>(device);
  const int64_t count = anchor.result.shape.element_count();
  if (count == 0) return list;
  list->add(walk(device, {.name = "random_bits",
                          .frame = generator(anchor, kWords),
                          .extents = {count},
                          .lanes = kWords,
                          .body = store_words}));
  return list;
}

}  // namespace fornax::cube
