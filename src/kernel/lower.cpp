#include "kernel/lower.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernel/analysis.h"
#include "kernel/lowering.h"
#include "kernel/number.h"
#include "kernel/state.h"

namespace fornax::kernel {

namespace {

int producer_threads(const Kernel& kernel) {
  const auto& all = kernel.instructions;
  const bool has = std::any_of(all.begin(), all.end(),
                               [](const Instruction& x) { return x.code == Code::pipeline; });
  return has ? 128 : 0;
}

}  // namespace

Lowering::Lowering(const Kernel& from, int warp)
    : from_(from),
      warp_(warp),
      to_(from.name,
          {.threads = from.threads + producer_threads(from), .resident = from.resident}) {
  for (const Instruction& x : from.instructions) {
    if (x.code != Code::pipeline) continue;
    FORNAX_CHECK(stages_ == 0 || stages_ == int(x.attributes[0]));
    stages_ = int(x.attributes[0]);
  }
  held_.resize(from.values.size());
  for (const Distribution& d : from.distributions) {
    FORNAX_CHECK(d.threads() == from.threads && std::has_single_bit(unsigned(d.rows)) &&
                 std::has_single_bit(unsigned(d.columns)));
  }
}

Value Lowering::row_thread(const Distribution& d) {
  if (d.rows == 1) return to_.as(DType::i32, 0);
  return to_.thread() >> std::countr_zero(unsigned(d.columns));
}
Value Lowering::column_thread(const Distribution& d) {
  if (d.columns == 1) return to_.as(DType::i32, 0);
  return d.rows == 1 ? to_.thread() : to_.thread() & (d.columns - 1);
}

Kernel Lowering::run() {
  for (size_t i = 0; i < from_.parameters.size(); i++) {
    const Parameter& p = from_.parameters[i];
    const Facts facts{p.divisor, p.most, p.aliased};
    if (p.type.memory == Memory::map) {
      held_[i] = {to_.map(p.name, p.type.dtype)};
    } else if (p.type.memory == Memory::none) {
      held_[i] = {to_.number(p.name, p.type.dtype, facts)};
    } else {
      held_[i] = {p.written ? to_.output(p.name, p.type.dtype, facts)
                            : to_.buffer(p.name, p.type.dtype, facts)};
    }
  }
  if (stages_ > 0) {
    by_roles();
  } else {
    lower(from_.body);
  }
  return to_.finish();
}

Share Lowering::extent(const ValueType& type) const {
  if (!type.tile()) return {1, 1};
  const Distribution& d = distribution(type);
  if (d.fragments) {
    return {type.rows == 1 ? 1 : type.rows / d.rows, type.columns == 1 ? 1 : type.columns / 4};
  }
  const auto share = [](int whole, int parts) {
    FORNAX_CHECK(whole == 1 || whole % parts == 0);
    return whole == 1 ? 1 : whole / parts;
  };
  const int columns = share(type.columns, d.columns * d.vector);
  return {share(type.rows, d.rows), type.columns == 1 ? 1 : columns * d.vector};
}

Value Lowering::element(ValueId value, const Share& whole, int e) const {
  const Share own = extent(from_.type(value));
  const int i = own.rows == 1 ? 0 : e / whole.columns;
  const int j = own.columns == 1 ? 0 : e % whole.columns;
  return held_[size_t(value)][size_t(i * own.columns + j)];
}

Value Lowering::row(const Distribution& d, int i) {
  if (!d.fragments && d.row_vector == 1) return row_thread(d) + i * d.rows;
  if (!d.fragments) {
    const int chunk = i / d.row_vector, line = i % d.row_vector;
    return row_thread(d) * d.row_vector + (chunk * d.rows * d.row_vector + line);
  }
  const Value thread = to_.thread();
  // 128 threads hold 64 rows; of 16 rows a warp's lanes have lane / 4 and 8 more
  return ((thread >> 5) << 4) + ((thread & 31) >> 2) + i * 8;
}
Value Lowering::column(const Distribution& d, int j) {
  if (d.fragments) return ((to_.thread() & 3) << 1) + (j / 2 * 8 + j % 2);
  const int chunk = j / d.vector, lane = j % d.vector;
  return column_thread(d) * d.vector + (chunk * d.columns * d.vector + lane);
}

bool Lowering::skipped(ValueId value) const {
  return role_ == Role::producer && from_.type(value).tile();
}

// Whether anything inside is fetched.
bool Lowering::fetches(const Instruction& x) const {
  if (x.code == Code::pipeline) return true;
  return std::any_of(x.regions.begin(), x.regions.end(), [&](const Region& region) {
    return std::any_of(region.instructions.begin(), region.instructions.end(),
                       [&](InstructionId id) { return fetches(from_.at(id)); });
  });
}

// What the producer has no part in: tiles, and effects other than its own.
bool Lowering::only_consumers(const Instruction& x) const {
  if (x.code == Code::pipeline || x.code == Code::fetch) return false;
  const auto tile = [&](ValueId result) { return from_.type(result).tile(); };
  const Effect effect = info(x.code).effect;
  if (effect == Effect::region && x.code != Code::reduce && x.code != Code::scan) {
    return std::all_of(x.results.begin(), x.results.end(), tile) && !fetches(x);
  }
  if (effect == Effect::write || effect == Effect::region) return true;
  return std::any_of(x.results.begin(), x.results.end(), tile);
}

void Lowering::lower(const Region& region) {
  for (const InstructionId id : region.instructions) lower(from_.at(id));
}

void Lowering::elementwise(const Instruction& x) {
  const Share whole = extent(from_.type(x.results[0]));
  for (int e = 0; e < whole.count(); e++) {
    Value result;
    const auto operand = [&](size_t i) { return element(x.operands[i], whole, e); };
    const DType dtype = from_.type(x.results[0]).dtype;
    if (x.code == Code::cast) {
      result = to_.cast(operand(0), dtype);
    } else if (x.code == Code::bits) {
      result = to_.bits(operand(0), dtype);
    } else if (x.code == Code::spread) {
      result = operand(0);
    } else if (x.code == Code::constant) {
      result = {&to_, to_.state().constant(dtype, x.attributes[0])};
    } else if (x.operands.size() == 1) {
      result = to_.arithmetic(x.code, {operand(0)});
    } else if (x.operands.size() == 2) {
      result = to_.arithmetic(x.code, {operand(0), operand(1)});
    } else {
      result = to_.arithmetic(x.code, {operand(0), operand(1), operand(2)});
    }
    keep(x, 0, result);
  }
}

void Lowering::part(const Instruction& x) {
  const ValueType& from = from_.type(x.operands[0]);
  const Share whole = extent(from), own = extent(from_.type(x.results[0]));
  const int first = int(x.attributes[0]) * whole.columns / from.columns;
  for (int e = 0; e < own.count(); e++) {
    const int place = e / own.columns * whole.columns + first + e % own.columns;
    keep(x, 0, held_[size_t(x.operands[0])][size_t(place)]);
  }
}

void Lowering::lower(const Instruction& x) {
  if (role_ != Role::all && x.code != Code::shared) {
    for (const ValueId result : x.results) held_[size_t(result)].clear();
  }
  if (role_ == Role::producer && only_consumers(x)) return;
  switch (x.code) {
    case Code::block:
      return keep(x, 0, to_.block(int(x.attributes[0])));
    case Code::blocks:
      return keep(x, 0, to_.blocks(int(x.attributes[0])));
    case Code::iota: {
      const Share own = extent(from_.type(x.results[0]));
      const Distribution& d = distribution(from_.type(x.results[0]));
      const bool rows = x.attributes[0] == 0;
      for (int e = 0; e < own.count(); e++) keep(x, 0, rows ? row(d, e) : column(d, e));
      return;
    }
    case Code::shared:
      if (role_ != Role::all) return;  // made before the roles part
      return keep(x, 0,
                  to_.shared(from_.type(x.results[0]).dtype, x.attributes[0], x.attributes[1]));
    case Code::part:
      return part(x);
    case Code::load:
      return load(x);
    case Code::store:
      return store(x);
    case Code::atomic:
      return atomic(x);
    case Code::fence:
      return to_.fence();
    case Code::barrier:
      return barrier();
    case Code::reduce:
      return reduce(x);
    case Code::mma:
      return mma(x);
    case Code::pipeline:
      return pipeline(x);
    case Code::fetch:
      return fetch(x);
    case Code::mma_boxes:
      return mma_boxes(x);
    case Code::deposit:
      return deposit(x);
    case Code::loop:
    case Code::while_:
    case Code::if_:
      return control(x);
    case Code::assert_:
      return assertion(x);
    default:
      FORNAX_CHECK(info(x.code).effect == Effect::pure);
      return elementwise(x);
  }
}

// The elements of carried values, each in a Variable.
std::vector<Variable> Lowering::variables(std::span<const ValueId> values) {
  std::vector<Variable> made;
  for (const ValueId value : values) {
    if (skipped(value)) continue;
    for (const Value& element : held_[size_t(value)]) made.emplace_back(element);
  }
  return made;
}
void Lowering::read(std::span<const ValueId> into, const std::vector<Variable>& variables) {
  size_t next = 0;
  for (const ValueId value : into) {
    std::vector<Value>& elements = held_[size_t(value)];
    elements.clear();
    if (skipped(value)) continue;
    const int count = extent(from_.type(value)).count();
    for (int e = 0; e < count; e++) elements.push_back(variables[next++]);
  }
}
void Lowering::assign(std::vector<Variable>& variables, std::span<const ValueId> from) {
  size_t next = 0;
  for (const ValueId value : from) {
    if (skipped(value)) continue;
    for (const Value& element : held_[size_t(value)]) variables[next++] = element;
  }
}

void Lowering::control(const Instruction& x) {
  if (x.code == Code::loop) {
    const std::span<const ValueId> carried = std::span(x.operands).subspan(3);
    std::vector<Variable> running = variables(carried);
    const Region& body = x.regions[0];
    to_.loop(scalar(x.operands[0]), scalar(x.operands[1]), scalar(x.operands[2]), [&](Value i) {
      held_[size_t(body.parameters[0])] = {i};
      read(std::span(body.parameters).subspan(1), running);
      lower(body);
      assign(running, body.yields);
    });
    return read(x.results, running);
  }
  if (x.code == Code::while_) {
    std::vector<Variable> running = variables(x.operands);
    to_.repeat_while(
        [&] {
          read(x.regions[0].parameters, running);
          lower(x.regions[0]);
          return scalar(x.regions[0].yields[0]);
        },
        [&] {
          lower(x.regions[1]);
          assign(running, x.regions[1].yields);
        });
    return read(x.results, running);
  }
  std::vector<Variable> running;
  for (const ValueId result : x.results) {
    if (skipped(result)) continue;
    const ValueType& type = from_.type(result);
    const int count = extent(type).count();
    for (int e = 0; e < count; e++) running.emplace_back(to_.constant(type.dtype, 0));
  }
  const auto side = [&](size_t i) {
    lower(x.regions[i]);
    assign(running, x.regions[i].yields);
  };
  to_.when(
      scalar(x.operands[0]), [&] { side(0); }, [&] { side(1); });
  read(x.results, running);
}

void Lowering::assertion(const Instruction& x) {
  Share whole{1, 1};
  for (const ValueId operand : x.operands) {
    const Share own = extent(from_.type(operand));
    whole = {std::max(whole.rows, own.rows), std::max(whole.columns, own.columns)};
  }
  for (int e = 0; e < whole.count(); e++) {
    to_.require(element(x.operands[0], whole, e), x.text,
                x.operands.size() > 1 ? element(x.operands[1], whole, e) : Value(0), x.site);
  }
}

void Lowering::mma(const Instruction& x) {
  const Share own = extent(from_.type(x.results[0]));
  const Distribution& d = distribution(from_.type(x.results[0]));
  const Value a = scalar(x.operands[1]), b = scalar(x.operands[3]);
  const DType dtype = from_.type(x.results[0]).dtype;
  const bool floats = fornax::info(dtype).kind == Kind::floating;
  std::vector<Value> sums = held_[size_t(x.operands[0])];
  // Elements that lie side by side are loaded together.
  const auto load = [&](Value memory, Value index, int vector, std::vector<Value>& into) {
    const bool whole = divisor_of(to_.state(), index.id) % vector == 0;
    const Value loaded = whole ? to_.load_vector(memory, index, vector, x.site) : Value();
    for (int lane = 0; lane < vector; lane++) {
      const Value element =
          whole ? to_.extract(loaded, lane) : to_.load(memory, index + lane, x.site);
      into.push_back(to_.cast(element, dtype));
    }
  };
  const auto vector_of = [](Value memory, int64_t stride, int vector) {
    const int most = 16 / int(fornax::info(memory.dtype()).size);
    return stride == 1 ? std::min(vector, most) : 1;
  };
  const int a_vector = vector_of(a, x.attributes[1], d.row_vector);
  const int b_vector = vector_of(b, x.attributes[4], d.vector);
  Value a_first = scalar(x.operands[2]), b_first = scalar(x.operands[4]);
  if (const int64_t slices = x.attributes[5]; slices > 1) {
    const int64_t height = from_.type(x.results[0]).rows / slices;
    const Value slice = row_thread(d) / (height / d.row_vector);
    a_first = a_first + slice * (x.attributes[6] - height * x.attributes[1]);
    b_first = b_first + slice * x.attributes[7];
  }
  const auto add = [&](Value k) {
    std::vector<Value> left, right;
    for (int i = 0; i < own.rows; i += a_vector) {
      load(a, a_first + row(d, i) * x.attributes[1] + k * x.attributes[2], a_vector, left);
    }
    for (int j = 0; j < own.columns; j += b_vector) {
      load(b, b_first + column(d, j) * x.attributes[4] + k * x.attributes[3], b_vector, right);
    }
    for (int e = 0; e < own.count(); e++) {
      Value& sum = sums[size_t(e)];
      const Value a_element = left[size_t(e / own.columns)];
      const Value b_element = right[size_t(e % own.columns)];
      sum = floats ? fma(a_element, b_element, sum) : sum + a_element * b_element;
    }
  };
  // Longer sums would make long programs, which take long to compile.
  constexpr int kUnrolled = 16;
  const int64_t depth = x.attributes[0];
  if (depth <= kUnrolled || depth % kUnrolled != 0) {
    for (int64_t k = 0; k < depth; k++) add(to_.constant(DType::i32, k));
  } else {
    std::vector<Variable> running;
    for (const Value& sum : sums) running.emplace_back(sum);
    to_.loop(0, depth, kUnrolled, [&](Value first) {
      for (size_t e = 0; e < sums.size(); e++) sums[e] = running[e];
      for (int k = 0; k < kUnrolled; k++) add(first + k);
      for (size_t e = 0; e < sums.size(); e++) running[e] = sums[e];
    });
    for (size_t e = 0; e < sums.size(); e++) sums[e] = running[e];
  }
  held_[size_t(x.results[0])] = std::move(sums);
}

Kernel lower(const Kernel& kernel, int warp) {
  FORNAX_CHECK(kernel.dialect == Dialect::tile);
  return Lowering(kernel, warp).run();
}

}  // namespace fornax::kernel
