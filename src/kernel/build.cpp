// The Builder: parameters, instructions and their types.  Control flow is in control.cpp.
#include "kernel/build.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/evaluate.h"
#include "kernel/state.h"

namespace fornax::kernel {
namespace {

// The value that both types broadcast to, elementwise.
ValueType broadcast(ValueType a, const ValueType& b) {
  if (b.tile()) {
    FORNAX_CHECK(!a.tile() || a.layout == b.layout);
    a.layout = b.layout;
    const auto joined = [](int x, int y) {
      FORNAX_CHECK(x == y || x <= 1 || y <= 1);
      return std::max(x, y);
    };
    a.rows = joined(a.rows, b.rows);
    a.columns = joined(a.columns, b.columns);
  }
  FORNAX_CHECK(a.lanes == b.lanes || a.lanes == 1 || b.lanes == 1);
  a.lanes = std::max(a.lanes, b.lanes);
  return a;
}

bool gives_bool(Code code) {
  return code == Code::equal || code == Code::not_equal || code == Code::less ||
         code == Code::less_equal;
}

ValueType element(ValueType memory) {
  FORNAX_CHECK(memory.memory != Memory::none);
  memory.memory = Memory::none;
  return memory;
}

}  // namespace

DType compute_dtype(DType dtype) {
  const DTypeInfo& row = fornax::info(dtype);
  if (row.size >= 4 || dtype == DType::bool_) return dtype;
  if (row.kind == Kind::floating) return DType::f32;
  return row.kind == Kind::signed_integer ? DType::i32 : DType::u32;
}

const ValueType& Value::type() const {
  FORNAX_CHECK(builder);
  return builder->type(id);
}

Builder::Builder(std::string name, KernelSettings settings) : state_(std::make_unique<State>()) {
  Kernel& kernel = state_->kernel;
  kernel.name = std::move(name);
  kernel.dialect = settings.dialect;
  kernel.distributions = std::move(settings.distributions);
  kernel.threads = settings.threads;
  kernel.resident = settings.resident;
  if (settings.dialect == Dialect::tile) kernel.threads = kernel.distributions.at(0).threads();
  state_->begin_region(false);
}
Builder::~Builder() = default;

const Kernel& Builder::kernel() const { return state_->kernel; }
int Builder::threads() const { return state_->kernel.threads; }
const ValueType& Builder::type(ValueId value) const { return state_->type(value); }

ValueId Builder::State::new_value(ValueType type, InstructionId made_by, int at) {
  kernel.values.push_back({type, made_by});
  level.push_back(at);
  same.push_back(ValueId(same.size()));
  return ValueId(kernel.values.size()) - 1;
}

static Value parameter(Builder& builder, Parameter parameter) {
  Builder::State& state = builder.state();
  const ValueType type = parameter.type;
  const ValueId value = state.new_value(type, -1, 0);
  state.parameters.emplace(value, int(state.kernel.parameters.size()));
  state.kernel.parameters.push_back(std::move(parameter));
  return {&builder, value};
}
Value Builder::buffer(std::string name, DType dtype, Facts facts) {
  return parameter(
      *this,
      {std::move(name), {dtype, Memory::global}, false, facts.aliased, facts.divisor, facts.most});
}
Value Builder::output(std::string name, DType dtype, Facts facts) {
  return parameter(
      *this,
      {std::move(name), {dtype, Memory::global}, true, facts.aliased, facts.divisor, facts.most});
}
Value Builder::number(std::string name, DType dtype, Facts facts) {
  return parameter(*this, {std::move(name), {dtype}, false, false, facts.divisor, facts.most});
}

bool Builder::State::is_constant(ValueId value, int64_t* bits) const {
  const Instruction* from = maker(value);
  if (!from || from->code != Code::constant) return false;
  *bits = from->attributes[0];
  return true;
}

ValueId Builder::State::constant(DType dtype, int64_t bits) {
  Instruction made;
  made.attributes = {bits};
  return append(std::move(made), {{dtype}})[0];
}

Value Builder::map(std::string name, DType dtype) {
  return parameter(*this, {std::move(name), {dtype, Memory::map}, true, true, 1, 0});
}

Value Builder::constant(DType dtype, Scalar scalar) {
  return {this, state_->constant(dtype, int64_t(word_of(dtype, scalar).bits))};
}
Value Builder::as(DType dtype, Value value) {
  if (!value.builder) return constant(dtype, value.literal);
  FORNAX_CHECK(value.builder == this);
  return value;
}

// Instructions that give the same wherever they stand.
static bool repeats(Code code) {
  if (info(code).effect == Effect::pure) return true;
  return code == Code::block || code == Code::blocks || code == Code::thread || code == Code::iota;
}

static std::string key_of(const Instruction& instruction, const ValueType& type) {
  std::string key;
  const auto put = [&](auto number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(instruction.code);
  put(instruction.fast);
  put(type.dtype);
  put(type.lanes);
  put(type.rows);
  put(type.columns);
  put(type.layout);
  for (const ValueId operand : instruction.operands) put(operand);
  for (const int64_t attribute : instruction.attributes) put(attribute);
  return key;
}

std::vector<ValueId> Builder::State::append(Instruction instruction,
                                            std::vector<ValueType> results) {
  for (ValueId& operand : instruction.operands) operand = resolve(operand);
  const bool pure = repeats(instruction.code);
  int at = int(open.size()) - 1;
  std::string key;
  if (pure) {
    int needed = 0;
    for (const ValueId operand : instruction.operands) {
      needed = std::max(needed, level[size_t(operand)]);
    }
    if (instruction.code == Code::constant) at = 0;
    key = key_of(instruction, results[0]);
    for (int i = needed; i <= at; i++) {
      const auto found = open[size_t(i)].seen.find(key);
      if (found != open[size_t(i)].seen.end()) return {found->second};
    }
    while (at > needed && open[size_t(at)].loops) at--;
  }
  const auto id = InstructionId(kernel.instructions.size());
  for (const ValueType& type : results) instruction.results.push_back(new_value(type, id, at));
  OpenRegion& target = open[size_t(at)];
  target.region.instructions.push_back(id);
  if (pure) target.seen.emplace(std::move(key), instruction.results[0]);
  kernel.instructions.push_back(std::move(instruction));
  return kernel.instructions.back().results;
}

std::vector<Value> Builder::emit(Instruction instruction, std::vector<ValueType> results) {
  std::vector<Value> values;
  for (const ValueId id : state_->append(std::move(instruction), std::move(results))) {
    values.emplace_back(this, id);
  }
  return values;
}

Value Builder::arithmetic(Code code, std::initializer_list<Value> operands) {
  const size_t first = code == Code::select ? 1 : 0;  // those that share a dtype
  DType dtype = DType::bool_;
  bool known = false;
  for (size_t i = first; i < operands.size() && !known; i++) {
    const Value& operand = operands.begin()[i];
    if (operand.builder) dtype = operand.dtype(), known = true;
  }
  FORNAX_CHECK(known);
  const DType computed = code == Code::select ? dtype : compute_dtype(dtype);
  Instruction made;
  made.code = code;
  ValueType type{computed};
  for (size_t i = 0; i < operands.size(); i++) {
    Value operand = as(i < first ? DType::bool_ : dtype, operands.begin()[i]);
    FORNAX_CHECK(operand.dtype() == (i < first ? DType::bool_ : dtype));
    if (i >= first) operand = cast(operand, computed);
    type = broadcast(type, operand.type());
    made.operands.push_back(state_->resolve(operand.id));
  }
  type.dtype = gives_bool(code) ? DType::bool_ : computed;
  if (const ValueId simple = simplify(*state_, code, type, made.operands); simple >= 0) {
    return cast({this, simple}, gives_bool(code) ? DType::bool_ : dtype);
  }
  const Value result{this, state_->append(std::move(made), {type})[0]};
  return gives_bool(code) ? result : cast(result, dtype);
}

Value Builder::cast(Value value, DType dtype) {
  value = as(dtype, value);
  if (value.dtype() == dtype) return value;
  int64_t bits = 0;
  if (state_->is_constant(value.id, &bits)) {
    Word word{uint64_t(bits)};
    convert(value.dtype(), dtype, {&word, 1});
    return {this, state_->constant(dtype, int64_t(word.bits))};
  }
  Instruction made;
  made.code = Code::cast;
  made.operands = {value.id};
  ValueType type = value.type();
  type.dtype = dtype;
  return emit(std::move(made), {type})[0];
}

Value Builder::bits(Value value, DType dtype) {
  if (value.dtype() == dtype) return value;
  FORNAX_CHECK(fornax::info(value.dtype()).size == fornax::info(dtype).size);
  Instruction made;
  made.code = Code::bits;
  made.operands = {value.id};
  ValueType type = value.type();
  type.dtype = dtype;
  return emit(std::move(made), {type})[0];
}

static Value place(Builder& builder, Code code, std::vector<int64_t> attributes, ValueType type) {
  Instruction made;
  made.code = code;
  made.attributes = std::move(attributes);
  return builder.emit(std::move(made), {type})[0];
}
Value Builder::block(int axis) { return place(*this, Code::block, {axis}, {DType::i32}); }
Value Builder::blocks(int axis) { return place(*this, Code::blocks, {axis}, {DType::i32}); }
Value Builder::thread() { return place(*this, Code::thread, {}, {DType::i32}); }
Value Builder::shared(DType dtype, int64_t count, int64_t alignment) {
  return place(*this, Code::shared, {count, alignment}, {dtype, Memory::shared});
}
Value Builder::iota(int axis, int extent, int layout) {
  ValueType type{DType::i32};
  type.layout = uint8_t(layout);
  type.rows = axis == 0 ? extent : 1;
  type.columns = axis == 1 ? extent : 1;
  return place(*this, Code::iota, {axis}, type);
}

Value Builder::load(Value memory, Value index, Site site) {
  return load(memory, index, {}, {}, site);
}
Value Builder::load(Value memory, Value index, Value mask, Value otherwise, Site site) {
  index = as(DType::i32, index);
  Instruction made;
  made.code = Code::load;
  made.site = site;
  made.operands = {memory.id, index.id};
  ValueType type = element(memory.type());
  type = broadcast(type, index.type());
  if (mask) {
    otherwise = as(type.dtype, otherwise);
    type = broadcast(broadcast(type, mask.type()), otherwise.type());
    made.operands.push_back(mask.id);
    made.operands.push_back(otherwise.id);
  }
  return emit(std::move(made), {type})[0];
}
Value Builder::load_vector(Value memory, Value index, int lanes, Site site) {
  if (lanes == 1) return load(memory, index, site);
  Instruction made;
  made.code = Code::load;
  made.site = site;
  made.operands = {memory.id, as(DType::i32, index).id};
  ValueType type = element(memory.type());
  type.lanes = uint8_t(lanes);
  return emit(std::move(made), {type})[0];
}
void Builder::store(Value memory, Value index, Value value, Value mask, Site site) {
  Instruction made;
  made.code = Code::store;
  made.site = site;
  const DType dtype = memory.dtype();
  made.operands = {memory.id, as(DType::i32, index).id, cast(value, dtype).id};
  if (mask) made.operands.push_back(mask.id);
  emit(std::move(made), {});
}
Value Builder::atomic(Atomic how, Value memory, Value index, Value value, Value mask, Site site) {
  Instruction made;
  made.code = Code::atomic;
  made.site = site;
  made.attributes = {int64_t(how)};
  const Value operand = cast(value, memory.dtype());
  made.operands = {memory.id, as(DType::i32, index).id, operand.id};
  if (mask) made.operands.push_back(mask.id);
  return emit(std::move(made), {broadcast(type(operand.id), type(made.operands[1]))})[0];
}
Value Builder::compare_exchange(Value memory, Value index, Value expected, Value desired) {
  Instruction made;
  made.code = Code::compare_exchange;
  const DType dtype = memory.dtype();
  made.operands = {memory.id, as(DType::i32, index).id, as(dtype, expected).id,
                   as(dtype, desired).id};
  return emit(std::move(made), {{dtype}})[0];
}

static void effect(Builder& builder, Code code) {
  Instruction made;
  made.code = code;
  builder.emit(std::move(made), {});
}
void Builder::fence() { effect(*this, Code::fence); }
void Builder::barrier() { effect(*this, Code::barrier); }
void Builder::warp_barrier() { effect(*this, Code::warp_barrier); }

Value Builder::spread(Value value, int rows, int columns, int layout) {
  FORNAX_CHECK(value.builder);
  ValueType type = value.type();
  if (!type.tile()) type.layout = uint8_t(layout);
  if (type.rows == rows && type.columns == columns) return value;
  FORNAX_CHECK((type.rows <= 1 || type.rows == rows) &&
               (type.columns <= 1 || type.columns == columns));
  type.rows = rows;
  type.columns = columns;
  Instruction made;
  made.code = Code::spread;
  made.operands = {value.id};
  return emit(std::move(made), {type})[0];
}

Value Builder::part(Value tile, int from, int columns) {
  ValueType type = tile.type();
  if (type.columns <= 1) return tile;
  type.columns = columns;
  Instruction made;
  made.code = Code::part;
  made.operands = {tile.id};
  made.attributes = {from};
  return emit(std::move(made), {type})[0];
}

Value Builder::mma(Value accumulator, Value a, Value a_index, Value b, Value b_index, int k,
                   std::array<int64_t, 2> a_strides, std::array<int64_t, 2> b_strides,
                   const Slices& slices) {
  Instruction made;
  made.code = Code::mma;
  made.operands = {accumulator.id, a.id, as(DType::i32, a_index).id, b.id,
                   as(DType::i32, b_index).id};
  made.attributes = {k,        a_strides[0], a_strides[1], b_strides[0], b_strides[1], slices.count,
                     slices.a, slices.b};
  return emit(std::move(made), {accumulator.type()})[0];
}

void Builder::fetch(Value map, Value memory, Value index, std::span<const Value> coordinates,
                    int64_t bytes) {
  Instruction made;
  made.code = Code::fetch;
  made.attributes = {bytes};
  made.operands = {map.id, memory.id, as(DType::i32, index).id};
  for (const Value& x : coordinates) made.operands.push_back(as(DType::i32, x).id);
  emit(std::move(made), {});
}
Value Builder::mma_boxes(Value accumulator, Value a, Value a_index, Value b, Value b_index, int k,
                         bool a_transposed, bool b_transposed) {
  Instruction made;
  made.code = Code::mma_boxes;
  made.operands = {accumulator.id, a.id, as(DType::i32, a_index).id, b.id,
                   as(DType::i32, b_index).id};
  made.attributes = {k, b_transposed, a_transposed};
  return emit(std::move(made), {accumulator.type()})[0];
}
void Builder::deposit(Value map, Value memory, Value tile, std::span<const Value> coordinates) {
  Instruction made;
  made.code = Code::deposit;
  made.operands = {map.id, memory.id, cast(tile, map.dtype()).id};
  for (const Value& x : coordinates) made.operands.push_back(as(DType::i32, x).id);
  emit(std::move(made), {});
}

Value Builder::extract(Value vector, int lane) {
  if (vector.type().lanes == 1) return vector;
  if (const Instruction* from = state_->maker(vector.id); from && from->code == Code::pack) {
    return {this, from->operands[size_t(lane)]};
  }
  ValueType type = vector.type();
  type.lanes = 1;
  Instruction made;
  made.code = Code::extract;
  made.operands = {vector.id};
  made.attributes = {lane};
  return emit(std::move(made), {type})[0];
}
Value Builder::pack(std::span<const Value> lanes) {
  if (lanes.size() == 1) return lanes[0];
  Instruction made;
  made.code = Code::pack;
  for (const Value& lane : lanes) made.operands.push_back(lane.id);
  ValueType type = lanes[0].type();
  type.lanes = uint8_t(lanes.size());
  return emit(std::move(made), {type})[0];
}
Value Builder::shuffle(Value value, Value lane) {
  Instruction made;
  made.code = Code::shuffle;
  made.operands = {value.id, as(DType::i32, lane).id};
  return emit(std::move(made), {value.type()})[0];
}
Value Builder::shuffle_xor(Value value, int lanes) {
  Instruction made;
  made.code = Code::shuffle_xor;
  made.operands = {value.id};
  made.attributes = {lanes};
  return emit(std::move(made), {value.type()})[0];
}
Value Builder::ballot(Value condition) {
  Instruction made;
  made.code = Code::ballot;
  made.operands = {as(DType::bool_, condition).id};
  return emit(std::move(made), {{DType::u32}})[0];
}

void Builder::require(Value condition, std::string message, Value number, Site site) {
  Instruction made;
  made.code = Code::assert_;
  made.site = site;
  made.text = std::move(message);
  made.operands = {as(DType::bool_, condition).id, as(DType::i64, number).id};
  emit(std::move(made), {});
}
void Builder::print(std::string text, std::initializer_list<Value> values) {
  Instruction made;
  made.code = Code::print;
  made.text = std::move(text);
  for (const Value& value : values) made.operands.push_back(value.id);
  emit(std::move(made), {});
}
Value Builder::raw(std::string text, ValueType result, std::initializer_list<Value> operands) {
  Instruction made;
  made.code = Code::raw;
  made.text = std::move(text);
  for (const Value& operand : operands) made.operands.push_back(operand.id);
  return emit(std::move(made), {result})[0];
}

}  // namespace fornax::kernel
