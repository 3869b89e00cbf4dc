// The Builder: what it emits, and random programs that mean what they say.
#include <algorithm>
#include <random>

#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

int count_of(const Kernel& kernel, Code code) {
  int count = 0;
  for (const Instruction& x : kernel.instructions) count += x.code == code;
  return count;
}

TEST(builder, equal_instructions_are_one) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), n = k.number("n", DType::i32);
  const Value a = k.thread() * n, b = k.thread() * n;
  EXPECT_EQ(a.id, b.id);
  k.store(y, k.thread(), a + b);
  EXPECT_EQ(count_of(k.finish(), Code::mul), 1);
}

TEST(builder, loads_are_not) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  const Value before = k.load(y, t);
  k.store(y, t, before + 1);
  k.store(y, t + 32, k.load(y, t) - before);
  EXPECT_EQ(count_of(k.finish(), Code::load), 2);
}

TEST(builder, what_does_not_change_stands_before_the_loop) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::f32), n = k.number("n", DType::i32);
  k.loop(0, n, 1, [&](Value i) { k.store(y, i, k.cast(n * n + 1, DType::f32)); });
  const Kernel kernel = k.finish();
  EXPECT_EQ(text_of(kernel).find("mul"), text_of(kernel).rfind("mul"));
  EXPECT_LT(text_of(kernel).find("mul"), text_of(kernel).find("loop"));
  EXPECT_LT(text_of(kernel).find("cast"), text_of(kernel).find("loop"));
}

TEST(builder, what_a_condition_guards_stays_inside) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), n = k.number("n", DType::i32), t = k.thread();
  k.when(t < n, [&] { k.store(y, t, n * n); });
  const Kernel kernel = k.finish();
  EXPECT_GT(text_of(kernel).find("mul"), text_of(kernel).find("if"));
}

TEST(builder, what_nobody_reads_goes) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable unused(t);
  k.loop(0, 4, 1, [&](Value i) { (void)(k.load(y, i) * t); });
  k.store(y, t, t);
  const Kernel kernel = k.finish();
  EXPECT_EQ(count_of(kernel, Code::loop), 0);
  EXPECT_EQ(count_of(kernel, Code::load), 0);
}

TEST(builder, only_variables_that_change_are_carried) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable same(t), sum(k.constant(DType::i32, 0));
  k.loop(0, 4, 1, [&](Value i) {
    sum = sum.get() + i * same.get();
    same = same.get();
  });
  k.store(y, t, sum.get() + same.get());
  const Kernel kernel = k.finish();
  for (const Instruction& x : kernel.instructions) {
    EXPECT_TRUE(x.code != Code::loop || x.results.size() == 1);
  }
  std::vector<int> out(32);
  Arguments().add(out).run(kernel);
  for (int j = 0; j < 32; j++) EXPECT_EQ(out[size_t(j)], 7 * j);
}

TEST(builder, known_conditions_leave_one_side) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  k.when(
      k.as(DType::i32, 3) < 4, [&] { k.store(y, t, 1); }, [&] { k.store(y, t, 2); });
  const Kernel kernel = k.finish();
  EXPECT_EQ(count_of(kernel, Code::if_), 0);
  EXPECT_EQ(count_of(kernel, Code::store), 1);
}

// A random program of three variables, as a kernel and run on the host: every block of statements
// is drawn from a seed of its own.
class RandomProgram {
 public:
  static constexpr int kVariables = 3, kThreads = 64;
  using State = std::array<int32_t, kVariables>;

  explicit RandomProgram(uint64_t seed) : seed_(seed) {}

  Kernel kernel() const {
    Builder k("random", {.threads = kThreads});
    const Value y = k.output("y", DType::i32), t = k.thread();
    std::vector<Variable> variables;
    for (int i = 0; i < kVariables; i++) variables.emplace_back(t * (i + 1));
    block(k, variables, 3, seed_);
    for (int i = 0; i < kVariables; i++) k.store(y, t * kVariables + i, variables[size_t(i)]);
    return k.finish();
  }
  State run(int32_t thread) const {
    State state;
    for (int i = 0; i < kVariables; i++) state[size_t(i)] = thread * (i + 1);
    block(state, 3, seed_);
    return state;
  }

 private:
  // One statement: v[c] = how(v[a], v[b]), or a condition or loop around inner blocks.
  struct Choice {
    Choice(std::mt19937_64& random, int depth) {
      a = random() % kVariables;
      b = random() % kVariables;
      c = random() % kVariables;
      how = random() % 6;
      kind = depth == 0 ? 0 : random() % 4;
      for (uint64_t& seed : inner) seed = random();
    }
    size_t a, b, c, how, kind;
    uint64_t inner[2];
  };

  static Value apply(size_t how, Value a, Value b) {
    switch (how) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return min(a, b);
      case 4:
        return a ^ b;
      default:
        return select(a < b, a, b >> 3);
    }
  }
  static int32_t apply(size_t how, int32_t a, int32_t b) {
    switch (how) {
      case 0:
        return int32_t(uint32_t(a) + uint32_t(b));
      case 1:
        return int32_t(uint32_t(a) - uint32_t(b));
      case 2:
        return int32_t(uint32_t(a) * uint32_t(b));
      case 3:
        return std::min(a, b);
      case 4:
        return a ^ b;
      default:
        return a < b ? a : b >> 3;
    }
  }

  static void block(Builder& k, std::vector<Variable>& v, int depth, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t left = 2 + random() % 3; left > 0; left--) {
      const Choice x(random, depth);
      Variable& c = v[x.c];
      if (x.kind < 2) {
        c = apply(x.how, v[x.a], v[x.b]);
      } else if (x.kind == 2) {
        k.when(
            v[x.a].get() < v[x.b].get(), [&] { block(k, v, depth - 1, x.inner[0]); },
            [&] { block(k, v, depth - 1, x.inner[1]); });
      } else {
        k.loop(0, v[x.a].get() & 3, 1, [&](Value i) {
          c = c.get() + i;
          block(k, v, depth - 1, x.inner[0]);
        });
      }
    }
  }
  static void block(State& v, int depth, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t left = 2 + random() % 3; left > 0; left--) {
      const Choice x(random, depth);
      if (x.kind < 2) {
        v[x.c] = apply(x.how, v[x.a], v[x.b]);
      } else if (x.kind == 2) {
        block(v, depth - 1, x.inner[v[x.a] < v[x.b] ? 0 : 1]);
      } else {
        const int32_t turns = v[x.a] & 3;
        for (int32_t i = 0; i < turns; i++) {
          v[x.c] = apply(0, v[x.c], i);
          block(v, depth - 1, x.inner[0]);
        }
      }
    }
  }

  uint64_t seed_;
};

TEST(builder, random_programs) {
  for (uint64_t seed = 0; seed < 80; seed++) {
    RandomProgram program(seed);
    const Kernel kernel = program.kernel();
    std::vector<int> out(RandomProgram::kThreads * RandomProgram::kVariables);
    Arguments().add(out).run(kernel);
    for (int t = 0; t < RandomProgram::kThreads; t++) {
      const RandomProgram::State wanted = program.run(t);
      for (size_t i = 0; i < wanted.size(); i++) {
        ASSERT_EQ(out[size_t(t) * wanted.size() + i], wanted[i])
            << "seed " << seed << ", thread " << t << "\n"
            << text_of(kernel);
      }
    }
    EXPECT_EQ(text_of(parse_kernel(text_of(kernel))), text_of(kernel));
  }
}

}  // namespace
}  // namespace fornax::kernel::testing
