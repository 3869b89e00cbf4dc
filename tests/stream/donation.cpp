// Memory: results that take over the buffers of values that die, and never those of values that
// live.
#include <random>

#include "tensor/record.h"
#include "tests/stream/stream_test.h"

namespace fornax {
namespace {

constexpr int64_t kLarge = 1 << 20;  // more than any other test of this program holds

TEST(Donation, an_update_in_a_loop_takes_no_new_memory) {
  Tensor x = numbers({kLarge});
  recorder().sync();  // drops what other tests left pending
  const size_t before = recorder().memory().in_use;
  for (int i = 0; i < 8; i++) {
    x = x * 0.5 + 1;
    recorder().flush();
    EXPECT_EQ(recorder().memory().in_use, before);
  }
  EXPECT_LE(recorder().memory().peak, before + kLarge);  // a second copy would be 4 * kLarge
}

TEST(Donation, a_value_that_somebody_holds_is_left_alone) {
  Tensor x = numbers({1000});
  const Tensor before = x;
  const Tensor view = x.narrow(0, 0, 3);
  x = x * 2;
  recorder().flush();
  EXPECT_EQ(before.to_vector<float>()[999], 1000);
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(x.to_vector<float>()[999], 2000);
}

TEST(Donation, a_view_of_what_dies_keeps_its_values) {
  Tensor x = numbers({1000});
  const Tensor view = x.flip(0);
  x = x + 1;
  recorder().flush();
  EXPECT_EQ(view.to_vector<float>()[0], 1000);
  EXPECT_EQ(x.to_vector<float>()[0], 2);
}

TEST(Donation, an_operand_read_under_two_layouts_is_not_overwritten) {
  Tensor x = numbers({1000});
  x = x + x.flip(0);
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(1000, 1001));
  Tensor square = numbers({30, 30});
  square = square + square.transpose();
  EXPECT_EQ(square.to_vector<float>()[1], 2 + 31);
  EXPECT_EQ(square.to_vector<float>()[30], 31 + 2);
}

TEST(Donation, a_broadcast_operand_is_not_overwritten) {
  Tensor x = numbers({1, 600}), y = numbers({600, 1});
  Tensor sum = x + y;
  x = Tensor();
  y = Tensor();
  EXPECT_EQ(sum.to_vector<float>()[601], 2 + 2);
}

TEST(Donation, a_tracked_value_keeps_what_its_gradient_reads) {
  const Tensor w = numbers({1000}).require_grad();
  Tensor x = w * 1;
  const Tensor y = x * x;  // reads x again in the backward pass
  x = x * 3;
  recorder().flush();
  y.sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>()[9], 20);
}

// Optimizer-like updates of several values at once: outputs overwrite inputs that the same group
// reads for other outputs.  Several sizes, so that backends work in one tile, many, and on threads.
class Updates {
 public:
  Updates(uint64_t seed, int64_t size, Device device) : random_(seed), device_(device) {
    for (int i = 0; i < 6; i++) {
      std::vector<float> numbers(static_cast<size_t>(size));
      for (float& x : numbers) x = float(random_() % 2001) / 1000 - 1;
      values_.push_back(from(numbers, device_));
    }
  }

  void round() {
    for (int step = 0; step < 10; step++) {
      Tensor& target = values_[random_() % values_.size()];
      const Tensor& a = values_[random_() % values_.size()];
      const Tensor& b = values_[random_() % values_.size()];
      const double c = double(random_() % 100) / 100;
      switch (random_() % 5) {
        case 0:
          target = a * c + b * (1 - c);
          break;
        case 1:
          target = target - a * c;
          break;
        case 2:
          target = maximum(a, b) - target;
          break;
        case 3:
          target = a * b;
          break;
        default:
          target = where(a > b, target, neg(a));
          break;
      }
      target = target.clamp(-4, 4);
    }
    device_.flush();
  }
  std::vector<std::vector<float>> read() const {
    std::vector<std::vector<float>> all;
    for (const Tensor& value : values_) all.push_back(value.to_vector<float>());
    return all;
  }

 private:
  std::mt19937_64 random_;
  Device device_;
  std::vector<Tensor> values_;
};

TEST(Donation, outputs_that_overwrite_inputs_of_their_group) {
  for (const DeviceListing& listing : devices()) {
    if (!listing.usable) continue;
    const Device device(listing.name);
    for (int64_t size : {700, 5003, 100003}) {
      const uint64_t seeds = size > 50000 ? 2 : 15;
      for (uint64_t seed = 0; seed < seeds; seed++) {
        Updates fused(seed, size, device.fused()), eager(seed, size, device.eager());
        for (int i = 0; i < 4; i++) {
          fused.round();
          eager.round();
        }
        ASSERT_EQ(fused.read(), eager.read())
            << listing.name << ", size " << size << ", seed " << seed;
      }
    }
  }
}

TEST(Donation, momentum_then_parameters) {
  for (const DeviceListing& listing : devices()) {
    if (!listing.usable) continue;
    const Device device(listing.name);
    Tensor m = full({3001}, 1, {.device = device}).copy(),
           p = full({3001}, 2, {.device = device}).copy();
    const Tensor x = full({3001}, 3, {.device = device}).copy();
    device.flush();
    for (int i = 0; i < 3; i++) {
      m = x * 0.5 + m * 0.5;
      p = p - m * 0.25;
      device.flush();
    }
    EXPECT_FLOAT_EQ(m.to_vector<float>()[3000], 2.75f);    // 1 2 2.5 2.75
    EXPECT_FLOAT_EQ(p.to_vector<float>()[3000], 0.1875f);  // 2 - (2 + 2.5 + 2.75) / 4
  }
}

TEST(Memory, says_which_ops_hold_it) {
  const auto held = [](const std::string& op) {
    for (const auto& share : recorder().memory().by_op) {
      if (share.op == op) return share.bytes;
    }
    return size_t(0);
  };
  const size_t before = held("atan2");
  {
    const Tensor x = numbers({2000});  // smaller buffers are not counted
    const Tensor y = atan2(x, x + 1);
    recorder().flush();
    EXPECT_EQ(held("atan2"), before + 8000);
  }
  EXPECT_EQ(held("atan2"), before);
  const auto shares = recorder().memory().by_op;
  for (size_t i = 1; i < shares.size(); i++) EXPECT_GE(shares[i - 1].bytes, shares[i].bytes);
}

TEST(Memory, is_given_back) {
  const size_t before = recorder().memory().in_use;
  {
    const Tensor x = numbers({5000});
    EXPECT_GE(recorder().memory().in_use, before + 20000);
  }
  EXPECT_EQ(recorder().memory().in_use, before);
}

TEST(Memory, is_given_back_to_the_system_by_trim) {
  constexpr size_t kBytes = size_t(8) << 20;
  const Device cpu("cpu");
  cpu.trim();
  const size_t before = cpu.memory().reserved;
  (full({kBytes / 4}, 2, {.device = cpu}).contiguous() + 1).to_vector<float>();
  EXPECT_GE(cpu.memory().reserved, before + kBytes);  // kept for who asks next
  cpu.trim();
  EXPECT_EQ(cpu.memory().reserved, before);
}

// ── Memory that several leaves look at ───────────────────────────────────────────────────────────
constexpr int64_t kSide = 12;
Tensor square_numbers() { return numbers({kSide, kSide}); }
const void* memory_of(const Tensor& x) { return node_of(x).buffer->data; }

TEST(Donation, a_value_whose_transpose_was_read_before_is_overwritten) {
  const Tensor x = (square_numbers() * 1e-3).contiguous();
  Tensor w = square_numbers();
  recorder().flush();
  const void* before = memory_of(w);
  const Tensor expected = x.matmul(w.transpose().contiguous()), updated = w * 0.5;
  recorder().flush();

  const Tensor y = x.matmul(w.transpose());
  w = w * 0.5;
  recorder().flush();
  EXPECT_EQ(memory_of(w), before);
  EXPECT_EQ(y.to_vector<float>(), expected.to_vector<float>());
  EXPECT_EQ(w.to_vector<float>(), updated.to_vector<float>());
}

// Parameters that decay first are two ops from what they become, and all values have one type.
TEST(Donation, parameters_and_their_moments_stay_where_they_were) {
  std::vector<Tensor> parameters, moments;
  for (int i = 1; i < 3; i++) {
    parameters.push_back(square_numbers() * (0.25 * i));
    moments.push_back(square_numbers() * (0.75 * i));
  }
  const Tensor gradient = square_numbers();
  recorder().flush();
  const auto memory = [&] {
    return std::vector{memory_of(parameters[0]), memory_of(parameters[1]), memory_of(moments[0]),
                       memory_of(moments[1])};
  };
  const std::vector<const void*> before = memory();
  for (int step = 0; step < 3; step++) {
    Tensor decayed[] = {parameters[0] * 0.5, parameters[1] * 0.5};
    for (const size_t i : {1, 0}) {
      moments[i] = moments[i] + (gradient - moments[i]) * 0.5;
      parameters[i] = std::exchange(decayed[i], {}) - moments[i] * 0.125;
    }
    recorder().flush();
    EXPECT_EQ(memory(), before) << "after step " << step;
  }
}

TEST(Donation, a_value_whose_view_is_read_later_is_not) {
  Tensor w = square_numbers();
  recorder().flush();
  const Tensor half = w * 0.5, expected = w.transpose().contiguous().matmul(half);
  recorder().flush();
  Tensor t = w.transpose();
  w = w * 0.5;
  const Tensor y = t.matmul(w);
  t = {};
  EXPECT_EQ(y.to_vector<float>(), expected.to_vector<float>());
  EXPECT_EQ(w.to_vector<float>(), half.to_vector<float>());
}

TEST(Donation, nor_one_whose_view_somebody_holds) {
  Tensor w = square_numbers();
  recorder().flush();
  const std::vector<float> before = w.transpose().to_vector<float>();
  const Tensor t = w.transpose();
  w = w * 0.5;
  recorder().flush();
  EXPECT_EQ(t.to_vector<float>(), before);
}

TEST(Donation, nor_one_whose_views_view_is_held) {
  Tensor w = square_numbers();
  recorder().flush();
  const std::vector<float> before = w.to_vector<float>();
  Tensor flat = w.reshape({kSide * kSide});
  const Tensor kept = flat.reshape({2, kSide * kSide / 2});
  w = w * 0.5;
  flat = {};
  recorder().flush();
  EXPECT_EQ(kept.to_vector<float>(), before);
}

// Each moment keeps its place: what repeats finds everything where it was.
TEST(Donation, values_that_are_updated_together_stay_where_they_are) {
  Tensor a = square_numbers(), b = square_numbers() * 2, c = square_numbers() * 3;
  recorder().flush();
  const void* places[] = {memory_of(a), memory_of(b), memory_of(c)};
  for (int step = 0; step < 3; step++) {
    const Tensor g = square_numbers();
    a = mul_add(g - a, 0.1, a);
    b = mul_add(g * g - b, 0.01, b);
    c = c * 0.99 - a / (b + 1);
    recorder().flush();
    EXPECT_EQ(memory_of(a), places[0]);
    EXPECT_EQ(memory_of(b), places[1]);
    EXPECT_EQ(memory_of(c), places[2]);
  }
}

}  // namespace
}  // namespace fornax
