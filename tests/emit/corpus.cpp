// The corpus (corpus.h).
#include "corpus.h"

#include <bit>
#include <cstring>
#include <limits>

#include "graph/evaluate.h"
#include "kernel/build.h"
#include "kernel/number.h"

namespace fornax::test {
namespace {

using namespace kernel;  // NOLINT: the tests speak the kernel language

constexpr int kCount = 64;  // elements of the data that pointwise kernels read

// Numbers where conversions and arithmetic turn, then spread ones.
double sample(int i, int salt) {
  constexpr double kSpecial[] = {
      0.0,   -0.0,  1.0,        -1.0,          0.5,          -0.5,    1.5,     2.5,     -2.5,
      3.0,   127.5, 128.0,      255.5,         -128.5,       32767.5, 65535.5, 65520.0, 448.0,
      464.0, 465.0, 2147483647, -2147483648.5, 4294967295.5, 9.3e18,  -9.3e18, 1.9e19,  3.4e38,
      1e39,  1e-40, 6e-8,       INFINITY,      -INFINITY,    NAN};
  constexpr int kSpecials = int(std::size(kSpecial));
  if (i < kSpecials) return kSpecial[(i + salt * 5) % kSpecials];
  const uint32_t bits = uint32_t(i * 7 + salt + 1) * 2654435761u;
  const double part = double(bits >> 8) / double(1 << 24) - 0.5;
  return part * std::ldexp(1.0, int(bits % 9) * 3 - 6);
}

Argument buffer(DType dtype, int64_t count) {
  Argument result;
  result.count = count;
  result.bytes.resize(size_t(count) * size_of(dtype));
  return result;
}

Argument filled(DType dtype, int64_t count, int salt) {
  Argument result = buffer(dtype, count);
  for (int64_t i = 0; i < count; i++) {
    store(dtype, result.bytes.data(), i, word_of(dtype, sample(int(i % kCount), salt)));
  }
  return result;
}

Argument number(uint64_t word) {
  Argument result;
  result.word = word;
  return result;
}

// Whether `code` works on `dtype`, by the first letter of its documentation (codes.def).
bool takes(Code code, DType dtype) {
  const std::string_view says = info(code).documentation;
  const bool boolean = says.find("or bool") != says.npos;
  if (dtype == DType::bool_) return boolean;
  if (says[0] == 'F') return is_floating(dtype);
  if (says[0] == 'N') return !is_floating(dtype);
  return says[0] == 'T';
}

bool is_arithmetic(Code code) { return code > Code::constant && code < Code::select; }
// Those that a library computes, each in its own way.
bool is_close(Code code) { return (code >= Code::rsqrt && code <= Code::pow); }

// All of the codes on one dtype: y[code * n + i], and truth[...] where bool comes out.
Case arithmetic(DType dtype, bool close) {
  Builder k("arithmetic " + std::string(name_of(dtype)) + (close ? " close" : ""), {.threads = 64});
  const Value a = k.buffer("a", dtype), b = k.buffer("b", dtype), c = k.buffer("c", dtype);
  const Value y = k.output("y", dtype), truth = k.output("truth", DType::bool_);
  const Value i = k.thread();
  const Value x = k.load(a, i), z = k.load(b, i), w = k.load(c, i);
  int row = 0;
  for (int n = 0; n < code_count(); n++) {
    const Code code = Code(n);
    if (!is_arithmetic(code) || !takes(code, dtype) || is_close(code) != close) continue;
    Value second = z;
    if (code == Code::shift_left || code == Code::shift_right) {
      second = z & int64_t(size_of(dtype) * 8 - 1);
    } else if ((code == Code::div || code == Code::rem) && !is_floating(dtype)) {
      second = select(z == 0, 7, z);
    }
    const int operands = info(code).operands;
    const Value result = operands == 1   ? k.arithmetic(code, {x})
                         : operands == 2 ? k.arithmetic(code, {x, second})
                                         : k.arithmetic(code, {x, second, w});
    k.store(result.dtype() == dtype ? y : truth, i + row++ * kCount, result);
  }
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(dtype, kCount, 0), filled(dtype, kCount, 3), filled(dtype, kCount, 7),
                    buffer(dtype, row * kCount), buffer(DType::bool_, row * kCount)};
  made.ulps = close ? 4 : 0;
  return made;
}

// From one dtype to all, and as other bits of the width.
Case conversions(DType from) {
  Builder k("cast " + std::string(name_of(from)), {.threads = 64});
  const Value x = k.buffer("x", from);
  Case made;
  made.arguments = {filled(from, kCount, 0)};
  std::vector<Value> casts, bits;
  for (int d = 0; d < kDTypeCount; d++) {
    casts.push_back(k.output("to_" + std::string(name_of(DType(d))), DType(d)));
    made.arguments.push_back(buffer(DType(d), kCount));
  }
  for (int d = 0; d < kDTypeCount; d++) {
    if (size_of(DType(d)) != size_of(from) || DType(d) == DType::bool_) continue;
    if (from == DType::bool_) continue;
    bits.push_back(k.output("as_" + std::string(name_of(DType(d))), DType(d)));
    made.arguments.push_back(buffer(DType(d), kCount));
  }
  const Value i = k.thread(), value = k.load(x, i);
  for (const Value& y : casts) k.store(y, i, k.cast(value, y.dtype()));
  for (const Value& y : bits) k.store(y, i, k.bits(value, y.dtype()));
  made.kernel = k.finish();
  return made;
}

// Vectors of every width, their lanes turned round; a masked load on the way.
Case vectors(DType dtype) {
  Builder k("vectors " + std::string(name_of(dtype)), {.threads = 32});
  const Value x = k.buffer("x", dtype, {.divisor = 16}), y = k.output("y", dtype, {.divisor = 16});
  const Value n = k.number("n", DType::i32), t = k.thread();
  for (int lanes = 1, at = 0; lanes <= 16; at += 32 * lanes, lanes *= 2) {
    const Value index = t * lanes + at;
    const Value value = k.load_vector(x, index, lanes);
    std::vector<Value> turned;
    for (int i = lanes; i-- > 0;) turned.push_back(k.extract(value, i));
    k.store(y, index, k.pack(turned), index < n);
  }
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(dtype, 32 * 31, 1), buffer(dtype, 32 * 31), number(32 * 31 - 40)};
  return made;
}

// Arithmetic, conversions and shuffles on vectors, which go lane by lane.
Case vector_arithmetic() {
  Builder k("vector arithmetic", {.threads = 32});
  const Value x = k.buffer("x", DType::f32, {.divisor = 16});
  const Value y = k.output("y", DType::f32, {.divisor = 16});
  const Value z = k.output("z", DType::f16, {.divisor = 16});
  const Value t = k.thread(), a = k.load_vector(x, t * 4, 4);
  const Value b = a * 2.0f + k.load(x, t);
  const Value c = select(b < a, b, k.shuffle_xor(a, 5));
  k.store(y, t * 4, c);
  k.store(z, t * 4, k.cast(c, DType::f16));
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(DType::f32, 128, 2), buffer(DType::f32, 128), buffer(DType::f16, 128)};
  return made;
}

// Loads that a mask leaves out, of one element and of several.
Case masks(bool checked) {
  Builder k(checked ? "masks checked" : "masks", {.threads = 32});
  const Value x = k.buffer("x", DType::f32, {.divisor = 16});
  const Value y = k.output("y", DType::f32, {.divisor = 16}), n = k.number("n", DType::i32);
  const Value t = k.thread();
  k.store(y, t, k.load(x, t, t < n, 1.5f));
  Instruction made_load;
  made_load.code = Code::load;
  made_load.operands = {x.id, (t * 4).id, (t * 4 < n).id, k.constant(DType::f32, -2.0).id};
  ValueType four{DType::f32};
  four.lanes = 4;
  k.store(y, t * 4 + 32, k.emit(made_load, {four})[0], t < n);
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(DType::f32, 64, 2), buffer(DType::f32, 160), number(64)};
  made.checked = checked;
  return made;
}

// Carried values that exchange places, loops in loops, conditions that give values.
Case control() {
  Builder k("control", {.threads = 32});
  const Value y = k.output("y", DType::i32), t = k.thread();
  Variable a(k.constant(DType::i32, 0)), b(k.constant(DType::i32, 1)), sum(t);
  k.loop(0, t, 1, [&](Value i) {
    const Value before = a;
    a = b.get();
    b = before + b;
    k.loop(i, t + 1, 2, [&](Value j) {
      k.when((j & 1) == 0, [&] { sum = sum + a.get() * j; }, [&] { sum = sum - b.get(); });
    });
  });
  Variable steps(k.constant(DType::i32, 0)), n(t + 1);
  k.repeat_while([&] { return n.get() != 1; },
                 [&] {
                   n = select((n.get() & 1) == 0, n.get() / 2, n.get() * 3 + 1);
                   steps = steps + 1;
                 });
  k.store(y, t * 4, a);
  k.store(y, t * 4 + 1, b);
  k.store(y, t * 4 + 2, sum);
  k.store(y, t * 4 + 3, steps);
  Case made;
  made.kernel = k.finish();
  made.arguments = {buffer(DType::i32, 128)};
  return made;
}

// Values that pass through shared memory and the lanes of a warp.
Case exchange() {
  Builder k("exchange", {.threads = 64});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32);
  const Value votes = k.output("votes", DType::u32), t = k.thread();
  const Value base = k.block() * 64;
  const Value early = k.shared(DType::f32, 64), late = k.shared(DType::f64, 64);
  const Value value = k.load(x, base + t);
  k.store(early, t, value);
  k.fence();
  k.barrier();
  Variable sum(k.load(early, 63 - t));
  for (int lanes = 16; lanes > 0; lanes /= 2) sum = sum + k.shuffle_xor(sum, lanes);
  k.barrier();
  k.store(late, t, k.cast(sum, DType::f64));
  k.barrier();
  const Value far = k.load(late, (t + 32) % 64);
  k.store(y, base + t, k.cast(far, DType::f32) + k.shuffle(value, (t * 7) % 32));
  k.warp_barrier();
  k.store(votes, base + t, k.ballot(value < 0.25f));
  Case made;
  made.kernel = k.finish();
  made.blocks = 2;
  made.arguments = {filled(DType::f32, 128, 11), buffer(DType::f32, 128), buffer(DType::u32, 128)};
  // Sums of infinities say nothing.
  for (int i = 0; i < 128; i++) {
    fornax::store(DType::f32, made.arguments[0].bytes.data(), i,
                  word_of(double(i % 37) * 0.25 - 3));
  }
  return made;
}

Case lanes(DType dtype) {
  Builder k("lanes " + std::string(name_of(dtype)), {.threads = 32});
  const Value x = k.buffer("x", dtype), y = k.output("y", dtype), t = k.thread();
  const Value value = k.load(x, t);
  k.store(y, t, k.shuffle(value, 31 - t));
  k.store(y, t + 32, k.shuffle_xor(value, 3));
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(dtype, 32, 1), buffer(dtype, 64)};
  return made;
}

// Atomics whose result does not hang on the order.
Case atomics(DType dtype) {
  Builder k("atomics " + std::string(name_of(dtype)), {.threads = 64});
  const Value x = k.buffer("x", dtype), y = k.output("y", dtype), t = k.thread();
  const Value slot = t % 4, value = k.load(x, t), local = k.shared(dtype, 4);
  k.when(t < 4, [&] { k.store(local, t, k.constant(dtype, 0)); });
  k.barrier();
  k.atomic(Atomic::add, y, slot, value);
  k.atomic(Atomic::add, local, slot, value, t < 40);
  k.atomic(Atomic::min, y, slot + 4, value);
  k.atomic(Atomic::max, y, slot + 8, value);
  k.atomic(Atomic::exchange, y, t + 20, value);
  if (!is_floating(dtype)) k.atomic(Atomic::bit_or, y, slot + 12, value);
  k.store(y, t + 100, k.compare_exchange(y, t + 20, value, 3));
  k.barrier();
  k.when(t < 4, [&] { k.store(y, t + 16, k.load(local, t)); });
  Case made;
  made.kernel = k.finish();
  made.arguments = {buffer(dtype, 64), buffer(dtype, 164)};
  for (int i = 0; i < 64; i++) {
    const double whole = (i * 37) % 101 - (is_signed(dtype) ? 50 : 0);
    fornax::store(dtype, made.arguments[0].bytes.data(), i, word_of(dtype, whole));
  }
  return made;
}

// Accesses beyond the end: of a buffer, of a vector's last lane, before the start, of shared
// memory.
Case outside(int what) {
  Builder k("outside " + std::to_string(what), {.threads = 32});
  const Value x = k.buffer("x", DType::f32, {.divisor = 16}), y = k.output("y", DType::f32);
  const Value local = k.shared(DType::f32, 32), t = k.thread();
  k.store(y, t, 1.0f);
  k.when(t == 9, [&] {
    if (what == 0) k.store(y, t, k.load(x, t + 23));
    if (what == 1) k.store(y, t, k.extract(k.load_vector(x, t + 19, 4), 0));
    if (what == 2) k.store(y, t - 10, 2.0f);
    if (what == 3) k.store(local, t + 23, 2.0f);
    if (what == 4) k.atomic(Atomic::add, y, t * 1000, 2.0f);
    if (what == 5) k.require(t < 9, "thread {} is too far", t);
  });
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(DType::f32, 30, 0), buffer(DType::f32, 32)};
  made.checked = true;
  return made;
}

// Numbers of every dtype as parameters, in their order.
Case numbers() {
  Builder k("numbers", {.threads = 1});
  Case made;
  std::vector<Value> values;
  for (int d = 0; d < kDTypeCount; d++) {
    values.push_back(k.number("value " + std::to_string(d), DType(d)));
    uint64_t word = 0;
    fornax::store(DType(d), &word, 0, word_of(DType(d), 1.0));
    made.arguments.push_back(number(word));
  }
  const Value y = k.output("y", DType::f64);
  for (size_t d = 0; d < values.size(); d++) k.store(y, int(d), k.cast(values[d], DType::f64));
  made.arguments.push_back(buffer(DType::f64, kDTypeCount));
  made.kernel = k.finish();
  return made;
}

Case aids() {
  Builder k("aids", {.threads = 32});
  const Value y = k.output("y", DType::f32), t = k.thread();
  k.print("say \"100 %\" of", {t, k.cast(t, DType::f32)});
  const Value value = k.raw("{0} = {1} * 2.0f;", {DType::f32}, {k.cast(t, DType::f32)});
  k.require(value < 100.0f, "value {}", t);
  k.store(y, t, value);
  Case made;
  made.kernel = k.finish();
  made.arguments = {buffer(DType::f32, 32)};
  made.runs = false;
  return made;
}

// The codes that may be quick rather than exact.
Case quick() {
  Builder k("quick", {.threads = 32});
  const Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32), t = k.thread();
  int row = 0;
  for (int n = 0; n < code_count(); n++) {
    const Code code = Code(n);
    if (!is_arithmetic(code) || !takes(code, DType::f32)) continue;
    Instruction made;
    made.code = code;
    made.fast = true;
    const Value operand = k.load(x, t + row);
    for (int i = 0; i < info(code).operands; i++) made.operands.push_back(operand.id);
    const bool boolean = info(code).documentation.find("gives bool") != std::string_view::npos;
    if (boolean) continue;
    k.store(y, t + row++ * 32, k.emit(made, {{DType::f32}})[0]);
  }
  Case made;
  made.kernel = k.finish();
  made.arguments = {filled(DType::f32, 4096, 0), buffer(DType::f32, 4096)};
  made.runs = false;
  return made;
}

}  // namespace

std::vector<Case> corpus() {
  std::vector<Case> cases;
  for (const DType dtype : kComputed) {
    cases.push_back(arithmetic(dtype, false));
    if (is_floating(dtype)) cases.push_back(arithmetic(dtype, true));
    cases.push_back(atomics(dtype));
  }
  cases.push_back(arithmetic(DType::bool_, false));
  for (int d = 0; d < kDTypeCount; d++) {
    cases.push_back(conversions(DType(d)));
    cases.push_back(vectors(DType(d)));
    cases.push_back(lanes(DType(d)));
  }
  cases.push_back(vector_arithmetic());
  for (const bool checked : {false, true}) cases.push_back(masks(checked));
  cases.push_back(control());
  cases.push_back(exchange());
  for (int what = 0; what < 6; what++) cases.push_back(outside(what));
  cases.push_back(numbers());
  cases.push_back(aids());
  cases.push_back(quick());
  return cases;
}

}  // namespace fornax::test
