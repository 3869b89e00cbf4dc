// arange and random_bits: values made from their positions.
#include <algorithm>

#include "backends/flex/index.h"
#include "backends/flex/pool.h"
#include "base/error.h"
#include "base/philox.h"

namespace fornax::flex {
namespace {

constexpr int64_t kGrain = 1 << 13;

// start + i * step: wrapping for integers, in f64 and rounded once for floats.
template <class T>
T element_of_range(T start, T step, int64_t i) {
  if constexpr (std::is_class_v<T>) {
    return T(float(double(float(start)) + double(i) * double(float(step))));
  } else if constexpr (std::is_floating_point_v<T>) {
    return T(double(start) + double(i) * double(step));
  } else {
    return T(uint64_t(start) + uint64_t(i) * uint64_t(step));
  }
}

struct Arange : Kernel {
  explicit Arange(AnchorPlan p) : plan(std::move(p)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView first(plan, 0, inputs), second(plan, 1, inputs);
    with_type(plan.result.dtype, [&](auto type) {
      using T = decltype(type);
      const T start = *first.as<T>(), step = *second.as<T>();
      T* to = data_of<T>(outputs[0]);
      parallel(plan.result.shape.element_count(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) to[i] = element_of_range(start, step, i);
      });
    });
  }

  AnchorPlan plan;
};

// Element i is word i % 4 of block counter + i / 4.
struct RandomBits : Kernel {
  explicit RandomBits(AnchorPlan p) : plan(std::move(p)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView first(plan, 0, inputs), second(plan, 1, inputs);
    const uint64_t key = *first.as<uint64_t>(), counter = *second.as<uint64_t>();
    const int64_t count = plan.result.shape.element_count();
    uint32_t* to = data_of<uint32_t>(outputs[0]);
    parallel((count + 3) / 4, kGrain / 4, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; block++) {
        const std::array<uint32_t, 4> words = philox(key, counter + uint64_t(block));
        std::copy_n(words.data(), std::min<int64_t>(4, count - block * 4), to + block * 4);
      }
    });
  }

  AnchorPlan plan;
};

}  // namespace

std::unique_ptr<Kernel> prepare_generate(const Group& group) {
  AnchorPlan plan = plan_of(group);
  FORNAX_CHECK((plan.op == Op::arange || plan.op == Op::random_bits) && plan.inputs.size() == 2);
  if (plan.op == Op::arange) return std::make_unique<Arange>(std::move(plan));
  return std::make_unique<RandomBits>(std::move(plan));
}

}  // namespace fornax::flex
