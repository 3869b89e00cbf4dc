// The interpreter of simt kernels: threads, control flow, memory, warps.
#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

TEST(interpret, a_thread_per_element) {
  Builder k("double", {.threads = 64});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value n = k.number("n", DType::i32);
  const Value i = k.block() * 64 + k.thread();
  k.when(i < n, [&] { k.store(y, i, k.load(x, i) * 2); });
  const Kernel kernel = k.finish();
  std::vector<float> in(150), out(150, -1);
  for (size_t j = 0; j < in.size(); j++) in[j] = float(j);
  Arguments({3, 1, 1}).add(in).add(out).add(149).run(kernel);
  for (size_t j = 0; j < 149; j++) EXPECT_EQ(out[j], 2 * in[j]);
  EXPECT_EQ(out[149], -1);
}

TEST(interpret, loops_diverge) {
  // The sum of the numbers below each thread's own.
  Builder k("sums", {.threads = 50});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable sum(k.constant(DType::i32, 0));
  k.loop(0, t, 1, [&](Value i) { sum = sum + i; });
  k.store(y, t, sum);
  const Kernel kernel = k.finish();
  std::vector<int> out(50);
  Arguments().add(out).run(kernel);
  for (int j = 0; j < 50; j++) EXPECT_EQ(out[size_t(j)], j * (j - 1) / 2);
}

TEST(interpret, shared_memory_and_barriers) {
  // Reverses a block.
  Builder k("reverse", {.threads = 128});
  const Value x = k.output("x", DType::i32), t = k.thread();
  const Value s = k.shared(DType::i32, 128);
  k.store(s, t, k.load(x, t));
  k.barrier();
  k.store(x, t, k.load(s, 127 - t));
  const Kernel kernel = k.finish();
  std::vector<int> data(128);
  for (int j = 0; j < 128; j++) data[size_t(j)] = j;
  Arguments().add(data).run(kernel);
  for (int j = 0; j < 128; j++) EXPECT_EQ(data[size_t(j)], 127 - j);
}

TEST(interpret, a_missing_barrier_is_a_race) {
  Builder k("reverse", {.threads = 128});
  const Value x = k.output("x", DType::i32), t = k.thread();
  const Value s = k.shared(DType::i32, 128);
  k.store(s, t, k.load(x, t));
  k.store(x, t, k.load(s, 127 - t));
  const Kernel kernel = k.finish();
  std::vector<int> data(128);
  const std::string message =
      error_of(ErrorKind::internal, [&] { Arguments().add(data).run(kernel); });
  FORNAX_EXPECT_WORDS(message, "reverse: store in interpret.cpp:");
  FORNAX_EXPECT_WORDS(message, "races at element");
}

std::vector<int> iota(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  for (int i = 0; i < count; i++) numbers[size_t(i)] = i;
  return numbers;
}
std::string fault_of(const Kernel& kernel, Arguments& arguments) {
  return error_of(ErrorKind::internal, [&] { arguments.run(kernel); });
}

TEST(interpret, both_sides_of_a_condition) {
  Builder k("sides", {.threads = 40});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable v(t);
  k.when(
      t % 2 == 0, [&] { k.when(t < 20, [&] { v = t * 10; }); }, [&] { v = -t; });
  k.store(y, t, v);
  std::vector<int> out(40);
  Arguments().add(out).run(k.finish());
  for (int j = 0; j < 40; j++) {
    EXPECT_EQ(out[size_t(j)], j % 2 ? -j : j < 20 ? 10 * j : j);
  }
}

TEST(interpret, repetitions_end_lane_by_lane) {
  // Steps of the Collatz rule down to 1; two variables change places on the way.
  Builder k("collatz", {.threads = 64});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable n(t + 1), steps(k.constant(DType::i32, 0)), a(t), b(k.constant(DType::i32, -1));
  k.repeat_while([&] { return Value(n) != 1; },
                 [&] {
                   n = select(n.get() % 2 == 0, n.get() / 2, n.get() * 3 + 1);
                   steps = steps.get() + 1;
                   const Value old = a;
                   a = b.get();
                   b = old;
                 });
  k.store(y, t * 2, steps);
  k.store(y, t * 2 + 1, a);
  std::vector<int> out(128);
  Arguments().add(out).run(k.finish());
  for (int j = 0; j < 64; j++) {
    int count = 0;
    for (int x = j + 1; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) count++;
    EXPECT_EQ(out[size_t(2 * j)], count);
    EXPECT_EQ(out[size_t(2 * j + 1)], count % 2 ? -1 : j);
  }
}

TEST(interpret, a_barrier_needs_all_threads) {
  Builder lanes("lanes", {.threads = 64});
  lanes.when(lanes.thread() < 40, [&] { lanes.barrier(); });
  Arguments none;
  FORNAX_EXPECT_WORDS(fault_of(lanes.finish(), none), "lanes: barrier: reached by lanes 0xff of");
  Builder warps("warps", {.threads = 64});
  warps.when(warps.thread() < 32, [&] { warps.barrier(); });
  Arguments nothing;
  FORNAX_EXPECT_WORDS(fault_of(warps.finish(), nothing), "warps: barrier: not all warps reach it");
}

TEST(interpret, warps_exchange_values) {
  Builder k("warp", {.threads = 64});
  const Value y = k.output("y", DType::i32), t = k.thread();
  k.store(y, t, k.shuffle(t, 31 - t % 32));
  k.store(y, t + 64, k.shuffle_xor(t, 5));
  k.store(y, t + 128, k.cast(k.ballot(t % 3 == 0), DType::i32));
  std::vector<int> out(192);
  Arguments().add(out).run(k.finish());
  uint32_t ballots[2] = {};
  for (int j = 0; j < 64; j++) ballots[j / 32] |= uint32_t(j % 3 == 0) << (j % 32);
  for (int j = 0; j < 64; j++) {
    EXPECT_EQ(out[size_t(j)], j / 32 * 32 + 31 - j % 32);
    EXPECT_EQ(out[size_t(j + 64)], j ^ 5);
    EXPECT_EQ(uint32_t(out[size_t(j + 128)]), ballots[j / 32]);
  }
}

TEST(interpret, a_shuffle_needs_all_lanes) {
  Builder k("k", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  k.when(t < 7, [&] { k.store(y, t, k.shuffle_xor(t, 1)); });
  std::vector<int> out(32);
  Arguments some;
  some.add(out);
  FORNAX_EXPECT_WORDS(fault_of(k.finish(), some), "reached by lanes 0x7f of 0xffffffff of a warp");
}

TEST(interpret, vectors) {
  Builder k("vectors", {.threads = 8});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32), t = k.thread();
  const Value v = k.load_vector(x, t * 4, 4);
  const Value turned[] = {k.extract(v, 3), k.extract(v, 2), k.extract(v, 1), k.extract(v, 0)};
  k.store(y, t * 4, k.pack(turned) + v);
  std::vector<float> in(32), out(32);
  for (size_t j = 0; j < 32; j++) in[j] = float(j * j);
  Arguments().add(in).add(out).run(k.finish());
  for (size_t j = 0; j < 32; j++) EXPECT_EQ(out[j], in[j] + in[j / 4 * 4 + 3 - j % 4]);
}

TEST(interpret, vectors_are_aligned) {
  Builder k("k", {.threads = 1});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  k.store(y, 0, k.load_vector(x, 2, 4));
  std::vector<float> in(32), out(32);
  Arguments arguments;
  arguments.add(in).add(out);
  FORNAX_EXPECT_WORDS(fault_of(k.finish(), arguments), "4 x 4 bytes is not aligned to 16");
}

TEST(interpret, atomics) {
  Builder k("atomics", {.threads = 64});
  const Value x = k.output("x", DType::i32), f = k.output("f", DType::f32), t = k.thread();
  const Value old = k.atomic(Atomic::add, x, 0, 2, t < 50);
  k.atomic(Atomic::max, x, 1, t);
  k.atomic(Atomic::min, x, 2, -t);
  k.atomic(Atomic::bit_or, x, 3, k.constant(DType::i32, 1) << (t % 7));
  k.atomic(Atomic::exchange, x, 4, t);
  k.atomic(Atomic::add, f, 0, k.cast(t, DType::f32));
  // Whoever finds 0 first leaves its number.
  k.compare_exchange(x, 5, 0, t + 100);
  k.store(x, t + 6, old);
  std::vector<int> out(70);
  std::vector<float> sum(1);
  Arguments().add(out).add(sum).run(k.finish());
  EXPECT_EQ(std::vector<int>(out.begin(), out.begin() + 6),
            (std::vector<int>{100, 63, -63, 127, 63, 100}));
  EXPECT_EQ(sum[0], 2016);
  for (int j = 0; j < 50; j++) EXPECT_EQ(out[size_t(j + 6)], 2 * j);
}

TEST(interpret, shared_memory_begins_as_garbage) {
  Builder k("k", {.threads = 1});
  const Value y = k.output("y", DType::u32), s = k.shared(DType::u32, 4);
  k.store(y, 0, k.load(s, 2));
  std::vector<uint32_t> out(1);
  Arguments().add(out).run(k.finish());
  EXPECT_EQ(out[0], 0xababababu);
}

// One access of each kind, at index n.
Kernel accesses(const char* kind) {
  Builder k("access", {.threads = 1});
  const Value x = k.output("x", DType::i32), n = k.number("n", DType::i32);
  const Value s = k.shared(DType::i32, 4);
  const Site site{"dir/rows.cpp", 31};
  const std::string name = kind;
  if (name == "load") k.store(x, 0, k.load(x, n, site) + 1);
  if (name == "store") k.store(x, n, 7, {}, site);
  if (name == "atomic") k.atomic(Atomic::add, x, n, 7, {}, site);
  if (name == "compare_exchange") k.compare_exchange(x, n, 0, 7);
  if (name == "shared") k.store(x, 0, k.load(s, n, site));
  if (name == "masked") k.store(x, 0, k.load(x, n, n < 4, 9, site));
  return k.finish();
}

TEST(interpret, accesses_beyond_the_end) {
  const std::pair<const char*, const char*> cases[] = {
      {"load", "access: load of x[4] in rows.cpp:31, which has 4 elements"},
      {"store", "access: store of x[4] in rows.cpp:31, which has 4 elements"},
      {"atomic", "access: atomic of x[4] in rows.cpp:31, which has 4 elements"},
      {"compare_exchange", "access: compare_exchange of x[4], which has 4 elements"},
      {"shared", "access: load of shared i32[4] in rows.cpp:31, which has 4 elements"},
  };
  for (const auto& [kind, words] : cases) {
    const Kernel kernel = accesses(kind);
    std::vector<int> data = {1, 2, 3, 4};
    Arguments beyond;
    beyond.add(data).add(4);
    EXPECT_EQ(fault_of(kernel, beyond), words);
    Arguments within;
    within.add(data).add(3).run(kernel);
    // The same, as a device would tell it; what is loaded is 0.
    Arguments checked;
    checked.launch().checked = true;
    data = {1, 2, 3, 4};
    checked.add(data).add(4).run(kernel);
    ASSERT_EQ(checked.status()[0], 1);
    EXPECT_EQ(describe(kernel, checked.status()), words);
    EXPECT_EQ(data[0], std::string(kind) == "shared" ? 0 : 1);
  }
  std::vector<int> data = {1, 2, 3, 4};
  Arguments().add(data).add(5).run(accesses("masked"));
  EXPECT_EQ(data[0], 9);
}

TEST(interpret, facts_are_kept) {
  Builder k("k", {.threads = 1});
  const Value x = k.output("x", DType::i32, {.divisor = 16});
  const Value n = k.number("n", DType::i32, {.divisor = 4, .most = 100});
  k.store(x, 0, n);
  const Kernel kernel = k.finish();
  std::vector<int> data(8);
  Arguments().add(data).add(96).run(kernel);
  EXPECT_EQ(data[0], 96);
  for (const int wrong : {-4, 104, 42}) {
    Arguments arguments;
    arguments.add(data).add(wrong);
    FORNAX_EXPECT_WORDS(fault_of(kernel, arguments), "n is ");
  }
  Arguments shifted;
  shifted.add(data).add(96);
  shifted.launch().arguments[0] += 4;
  FORNAX_EXPECT_WORDS(fault_of(kernel, shifted), "x is not aligned to 16 bytes");
}

TEST(interpret, the_first_failed_assertion_is_kept) {
  Builder k("k", {.threads = 64});
  const Value y = k.output("y", DType::i32), t = k.thread();
  k.require(t < 40, "index {} is beyond 40", t);
  k.store(y, t, t);
  const Kernel kernel = k.finish();
  std::vector<int> out(64);
  Arguments arguments;
  arguments.add(out).run(kernel);
  EXPECT_EQ(arguments.status()[0], 1);
  EXPECT_EQ(describe(kernel, arguments.status()), "index 40 is beyond 40");
  EXPECT_EQ(out, iota(64));
}

TEST(interpret, print_writes_lines) {
  Builder k("k", {.threads = 3});
  k.print("thread {} of", {k.thread(), k.constant(DType::f32, 2.5)});
  std::string log;
  Arguments arguments;
  arguments.launch().log = &log;
  arguments.run(k.finish());
  EXPECT_EQ(log, "thread 0 of 2.5\nthread 1 of 2.5\nthread 2 of 2.5\n");
}

TEST(interpret, raw_text_is_refused) {
  Builder k("k", {.threads = 1});
  const Value y = k.output("y", DType::i32);
  k.store(y, 0, k.raw("{0} = clock();", {DType::i32}, {}));
  std::vector<int> out(1);
  Arguments arguments;
  arguments.add(out);
  FORNAX_EXPECT_WORDS(fault_of(k.finish(), arguments), "k: raw: belongs to one target");
}

TEST(interpret, loops_that_go_wrong) {
  std::vector<int> out(1);
  Builder still("still", {.threads = 1});
  const Value a = still.output("y", DType::i32), n = still.number("n", DType::i32);
  still.loop(0, 4, n, [&](Value i) { still.store(a, 0, i); });
  Arguments zero;
  zero.add(out).add(0);
  FORNAX_EXPECT_WORDS(fault_of(still.finish(), zero), "loop: the step is 0, not above 0");
  Builder over("over", {.threads = 1});
  const Value b = over.output("y", DType::i32);
  over.loop(INT32_MAX - 2, INT32_MAX, 4, [&](Value i) { over.store(b, 0, i); });
  Arguments one;
  one.add(out);
  FORNAX_EXPECT_WORDS(fault_of(over.finish(), one), "the counter goes beyond 2147483647");
}

// What the second warp does to the element that the first one has touched.
std::string race(FunctionRef<void(Builder&, Value memory, Value t)> body, bool look = true) {
  Builder k("race", {.threads = 64});
  const Value x = k.output("x", DType::i32), t = k.thread();
  body(k, x, t);
  std::vector<int> data(64);
  Arguments arguments;
  arguments.add(data).launch().races = look;
  return fault_of(k.finish(), arguments);
}

TEST(interpret, races) {
  const auto write = [](Builder& k, Value x, Value t) {
    k.when(t % 32 == 0, [&] { k.store(x, 0, t); });
  };
  FORNAX_EXPECT_WORDS(race(write), "race: store in interpret.cpp:");
  FORNAX_EXPECT_WORDS(race(write),
                      "races at element 0 with another warp's store in interpret.cpp:");
  EXPECT_EQ(race(write, false), "");
  FORNAX_EXPECT_WORDS(race([](Builder& k, Value x, Value t) { k.store(x, t, k.load(x, 63 - t)); }),
                      "load in interpret.cpp:");
  FORNAX_EXPECT_WORDS(race([](Builder& k, Value x, Value t) {
                        k.when(t < 32, [&] { k.require(k.load(x, t) == 0, "is not 0", t); });
                        k.when(t >= 32, [&] { k.store(x, t - 32, t); });
                      }),
                      "another warp's load in interpret.cpp:");
  FORNAX_EXPECT_WORDS(race([](Builder& k, Value x, Value t) {
                        k.atomic(Atomic::add, x, 0, 1);
                        k.when(t == 63, [&] { k.store(x, 0, t); });
                      }),
                      "another warp's atomic");
  const char* fine = "no race";
  EXPECT_EQ(race([](Builder& k, Value x, Value t) {
              k.atomic(Atomic::add, x, 0, 1);
              k.barrier();
              k.store(x, t, k.load(x, t) + 1);
            }),
            "")
      << fine;
  FORNAX_EXPECT_WORDS(race([](Builder& k, Value x, Value t) { k.store(x, t % 32 / 2, t); }),
                      "lanes write different values to element 0");
  EXPECT_EQ(race([](Builder& k, Value x, Value t) { k.store(x, t / 32, t / 32); }), "");
}

TEST(interpret, blocks_know_their_place) {
  Builder k("blocks", {.threads = 1});
  const Value y = k.output("y", DType::i32);
  const Value at = (k.block(2) * k.blocks(1) + k.block(1)) * k.blocks(0) + k.block(0);
  k.store(y, at, at);
  std::vector<int> out(24);
  Arguments({4, 3, 2}).add(out).run(k.finish());
  EXPECT_EQ(out, iota(24));
}

}  // namespace
}  // namespace fornax::kernel::testing
