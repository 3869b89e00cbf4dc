// The kernel language: running C++ builds a Kernel.  A Value is a number of the kernel, an int is
// one of the program that builds it: ordinary loops and conditions unroll and choose, those of the
// Builder happen in the kernel.  The functions on Values are those of graph/number.h, so the value
// column of ops.def compiles for them.
//
//   Builder k("double", {.threads = 128});
//   Value x = k.buffer("x", DType::f32), y = k.output("y", DType::f32), n = k.number("n",
//   DType::i32); Value i = k.block() * 128 + k.thread(); k.when(i < n, [&] { k.store(y, i,
//   k.load(x, i) * 2); }); Kernel kernel = k.finish();
//
// What is emitted is simplified at once: constants fold, equal pure instructions are one, and what
// does not change in a loop stands before it.  Wrong types are Error(internal), with the line.
//
// A Builder serves one thread.
#pragma once
#include <fornax/function.h>
#include <fornax/scalar.h>

#include <array>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <span>

#include "kernel/ir.h"

namespace fornax::kernel {

class Builder;

// A value of the kernel that `builder` makes, or a number of the program that takes the dtype of
// what it meets.
struct Value {
  Builder* builder = nullptr;
  ValueId id = -1;
  Scalar literal;

  Value() = default;
  Value(Builder* b, ValueId i) : builder(b), id(i) {}
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number)
      : literal(number) {}                                       // NOLINT: implicit on purpose
  explicit operator bool() const { return builder != nullptr; }  // of the kernel
  bool none() const { return builder == nullptr; }
  const ValueType& type() const;
  DType dtype() const { return type().dtype; }
};

// A value that changes: assignments inside loops and conditions reach what follows.
class Variable {
 public:
  explicit Variable(Value first);
  ~Variable();
  Variable(Variable&& other) noexcept;
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  void operator=(Value next);
  operator Value() const;
  Value get() const { return *this; }

 private:
  Builder* builder_;
  int slot_;
};

struct KernelSettings {
  Dialect dialect = Dialect::simt;
  int threads = 128;
  std::vector<Distribution> distributions = {};  // tile kernels; `threads` follows from them
  int resident = 1;                              // as Kernel's
};
// What a launch promises of a number or a buffer.
struct Facts {
  int64_t divisor = 1;
  int64_t most = INT32_MAX;
  bool aliased = false;
};
// The rows of a tile in `count` equal parts, each of which is a product by itself: its operands
// begin `a` and `b` elements after those of the part before.
struct Slices {
  int count = 1;
  int64_t a = 0, b = 0;
};

class Builder {
 public:
  explicit Builder(std::string name, KernelSettings settings = {});
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Parameters, in the order of the launch's arguments.
  Value buffer(std::string name, DType dtype, Facts facts = {});  // read only
  Value output(std::string name, DType dtype, Facts facts = {});  // written, perhaps read
  Value number(std::string name, DType dtype, Facts facts = {});
  Value map(std::string name, DType dtype);  // of a matrix, for fetch and deposit

  Value constant(DType dtype, Scalar scalar);
  // A literal becomes a constant of `dtype`; a value is returned as it is.
  Value as(DType dtype, Value value);
  Value cast(Value value, DType dtype);
  Value bits(Value value, DType dtype);

  Value block(int axis = 0);
  Value blocks(int axis = 0);
  Value thread();
  int threads() const;

  Value shared(DType dtype, int64_t count, int64_t alignment = 16);  // in bytes
  Value load(Value memory, Value index, Site site = Site::here());
  Value load(Value memory, Value index, Value mask, Value otherwise, Site site = Site::here());
  Value load_vector(Value memory, Value index, int lanes, Site site = Site::here());
  void store(Value memory, Value index, Value value, Value mask = {}, Site site = Site::here());
  Value atomic(Atomic how, Value memory, Value index, Value value, Value mask = {},
               Site site = Site::here());
  Value compare_exchange(Value memory, Value index, Value expected, Value desired);
  void fence();
  void barrier();
  void warp_barrier();

  // Tiles.
  // Axis 0: rows x 1, axis 1: 1 x columns; held as distribution number `layout` says.
  Value iota(int axis, int extent, int layout = 0);
  // A scalar as `layout` says; a row, a column or a tile as it is.
  Value spread(Value value, int rows, int columns, int layout = 0);
  // `columns` columns of a tile from number `from` on; whole units that the threads share out.
  Value part(Value tile, int from, int columns);
  using Combine =
      FunctionRef<std::vector<Value>(std::span<const Value> left, std::span<const Value> right)>;
  std::vector<Value> reduce(int axis, std::vector<Value> tiles, Combine combine);
  std::vector<Value> scan(int axis, std::vector<Value> tiles, Combine combine);
  Value mma(Value accumulator, Value a, Value a_index, Value b, Value b_index, int k,
            std::array<int64_t, 2> a_strides, std::array<int64_t, 2> b_strides,
            const Slices& slices = {});

  // for (i = 0; i < count; i++): `produce` starts the fetches of a turn, up to `stages` turns ahead
  // of `consume`, which reads them.  Both get the number of the stage, where their boxes lie.
  void pipeline(Value count, int stages, FunctionRef<void(Value i, Value stage)> produce,
                FunctionRef<void(Value i, Value stage)> consume);
  // `bytes`: of the map's box.
  void fetch(Value map, Value memory, Value index, std::span<const Value> coordinates,
             int64_t bytes);
  Value mma_boxes(Value accumulator, Value a, Value a_index, Value b, Value b_index, int k,
                  bool a_transposed, bool b_transposed);
  void deposit(Value map, Value memory, Value tile, std::span<const Value> coordinates);

  // Threads.
  Value extract(Value vector, int lane);
  Value pack(std::span<const Value> lanes);
  Value shuffle(Value value, Value lane);
  Value shuffle_xor(Value value, int lanes);
  Value ballot(Value condition);

  // for (i = from; i < to; i += step).
  void loop(Value from, Value to, Value step, FunctionRef<void(Value i)> body);
  void repeat_while(FunctionRef<Value()> condition, FunctionRef<void()> body);
  void when(Value condition, FunctionRef<void()> then);
  void when(Value condition, FunctionRef<void()> then, FunctionRef<void()> otherwise);

  // Where `condition` is false, the launch fails with `message`, {} in it replaced by `number`.
  void require(Value condition, std::string message, Value number, Site site = Site::here());
  void print(std::string text, std::initializer_list<Value> values);
  Value raw(std::string text, ValueType result, std::initializer_list<Value> operands);

  // The pure instruction `code` on operands of one dtype; elementwise, broadcasting.
  Value arithmetic(Code code, std::initializer_list<Value> operands);
  // Any instruction, as it is: what lowering copies.
  std::vector<Value> emit(Instruction instruction, std::vector<ValueType> results);

  const ValueType& type(ValueId value) const;
  const Kernel& kernel() const;
  // The finished kernel, verified; the Builder is empty then.
  Kernel finish();

  struct State;  // kernel/state.h
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// The dtype that arithmetic on `dtype` happens in: f32 for small floats, 32 bits for small
// integers.
DType compute_dtype(DType dtype);

}  // namespace fornax::kernel
