// The table of rules.  A rule may only say what holds for every number of the dtype: x + 0 is not x
// for the float -0, and floats are not regrouped, since each op rounds.
#include "graph/algebra.h"

#include <fornax/dtype.h>

#include <cmath>

#include "graph/attributes.h"
#include "graph/evaluate.h"

namespace fornax {
namespace {

constexpr int kNone = -1;

bool is_whole(DType dtype) { return !is_floating(dtype); }

// Whether the step is a constant of exactly this number, zeros told apart by their sign.
bool is_number(const Step& step, double value) {
  if (step.op != Op::full) return false;
  const Scalar number = scalar_of(step.type.dtype, word_of(step.type.dtype, step.scalar));
  return number.as_double() == value && std::signbit(number.as_double()) == std::signbit(value);
}

const Step& input(const Builder& b, const Step& step, int i) { return b[step.inputs[size_t(i)]]; }

// Operand `i`, where the result has its type: broadcasting may have made it larger.
int operand(const Builder& b, const Step& step, int i) {
  return input(b, step, i).type == step.type ? step.inputs[size_t(i)] : kNone;
}

// The operand beside one that is the number `value`, on either side of a commutative op.
int beside_number(const Builder& b, const Step& step, double value) {
  for (int i : {1, 0}) {
    if (is_number(input(b, step, i), value)) return operand(b, step, 1 - i);
  }
  return kNone;
}

int add_zero(Builder& b, const Step& step) {
  if (step.op != Op::add) return kNone;
  return beside_number(b, step, is_whole(step.type.dtype) ? 0.0 : -0.0);
}

int subtract_zero(Builder& b, const Step& step) {
  return step.op == Op::sub && is_number(input(b, step, 1), 0.0) ? operand(b, step, 0) : kNone;
}

int multiply_one(Builder& b, const Step& step) {
  return step.op == Op::mul ? beside_number(b, step, 1) : kNone;
}

int divide_one(Builder& b, const Step& step) {
  return step.op == Op::div && is_number(input(b, step, 1), 1) ? operand(b, step, 0) : kNone;
}

int multiply_zero(Builder& b, const Step& step) {
  if (step.op != Op::mul || !is_whole(step.type.dtype)) return kNone;
  for (int i : {0, 1}) {
    if (is_number(input(b, step, i), 0)) return b.put_full(step.type, 0);
  }
  return kNone;
}

int twice_undone(Builder& b, const Step& step) {
  if (step.op != Op::neg && step.op != Op::bitwise_not) return kNone;
  const Step& inner = input(b, step, 0);
  return inner.op == step.op ? inner.inputs[0] : kNone;
}

int twice_as_once(Builder& b, const Step& step) {
  if (step.op != Op::abs && step.op != Op::sign) return kNone;
  return input(b, step, 0).op == step.op ? step.inputs[0] : kNone;
}

bool rounds(Op op) {
  return op == Op::floor || op == Op::ceil || op == Op::round || op == Op::trunc;
}

int round_whole(Builder& b, const Step& step) {
  if (!rounds(step.op)) return kNone;
  return is_whole(step.type.dtype) || rounds(input(b, step, 0).op) ? step.inputs[0] : kNone;
}

int sign_unseen(Builder& b, const Step& step) {
  if (step.op != Op::square && !(step.op == Op::abs && is_signed(step.type.dtype))) return kNone;
  const Step& inner = input(b, step, 0);
  return inner.op == Op::neg ? b.put(step.op, {inner.inputs[0]}) : kNone;
}

int same_operands(Builder& b, const Step& step) {
  if (step.inputs.size() != 2 || step.inputs[0] != step.inputs[1]) return kNone;
  switch (step.op) {
    case Op::maximum:
    case Op::minimum:
    case Op::bitwise_and:
    case Op::bitwise_or:
      return step.inputs[0];
    case Op::bitwise_xor:
      return b.put_full(step.type, 0);
    case Op::sub:
      return is_whole(step.type.dtype) ? b.put_full(step.type, 0) : kNone;
    default:
      return kNone;
  }
}

int add_negated(Builder& b, const Step& step) {
  if (step.op != Op::add && step.op != Op::sub) return kNone;
  const Step& right = input(b, step, 1);
  if (right.op != Op::neg) return kNone;
  return b.put(step.op == Op::add ? Op::sub : Op::add, {step.inputs[0], right.inputs[0]});
}

// (x + 2) + 3 and (x * 2) * 3: whole numbers wrap, and wrapping regroups.
int regroup(Builder& b, const Step& step) {
  if ((step.op != Op::add && step.op != Op::mul) || !is_whole(step.type.dtype)) return kNone;
  const Step& inner = input(b, step, 0);
  if (inner.op != step.op) return kNone;
  const Step &first = input(b, inner, 1), &second = input(b, step, 1);
  if (first.op != Op::full || second.op != Op::full) return kNone;
  const int x = inner.inputs[0];
  const Type type{step.type.dtype, broadcast(first.type.shape, second.type.shape)};
  const Scalar numbers[] = {first.scalar, second.scalar};
  return b.put(step.op, {x, b.put_full(type, evaluate(step.op, type.dtype, numbers))});
}

// Numbers on the right, so that the other rules find them.
int number_to_the_right(Builder& b, const Step& step) {
  if (step.op != Op::add && step.op != Op::mul) return kNone;
  if (input(b, step, 0).op != Op::full || input(b, step, 1).op == Op::full) return kNone;
  return b.put(step.op, {step.inputs[1], step.inputs[0]});
}

int known_condition(Builder& b, const Step& step) {
  if (step.op != Op::where) return kNone;
  if (step.inputs[1] == step.inputs[2]) return operand(b, step, 1);
  const Step& condition = input(b, step, 0);
  if (condition.op != Op::full) return kNone;
  return operand(b, step, is_number(condition, 1) ? 1 : 2);
}

int cast_to_itself(Builder& b, const Step& step) {
  return step.op == Op::cast ? operand(b, step, 0) : kNone;
}

// Bits that whole numbers of the dtype need, or that its floats have for them.
int digits(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return 1;
    case DType::f8e5m2:
      return 3;
    case DType::f8e4m3:
      return 4;
    case DType::bf16:
      return 8;
    case DType::f16:
      return 11;
    case DType::f32:
      return 24;
    case DType::f64:
      return 53;
    default:
      return int(size_of(dtype)) * 8 - is_signed(dtype);
  }
}

// Whether every number of `narrow` is one of `wide`.
bool holds(DType wide, DType narrow) {
  if (wide == narrow || is_boolean(narrow)) return true;
  if (is_boolean(wide)) return false;
  if (is_floating(narrow)) return is_floating(wide) && size_of(wide) > size_of(narrow);
  if (!is_floating(wide) && is_signed(narrow) && !is_signed(wide)) return false;
  return digits(wide) >= digits(narrow);
}

int cast_of_cast(Builder& b, const Step& step) {
  if (step.op != Op::cast || input(b, step, 0).op != Op::cast) return kNone;
  const Step inner = input(b, step, 0);
  const DType from = input(b, inner, 0).type.dtype, middle = inner.type.dtype;
  const DType to = step.type.dtype;
  // Integers become other integers by dropping high bits, and it does not matter in how many turns;
  // by way of a float they saturate instead.
  const bool low_bits =
      is_integer(from) && is_integer(middle) && is_integer(to) && size_of(middle) >= size_of(to);
  const bool saturates =
      is_integer(from) && is_floating(middle) && is_integer(to) && !holds(to, from);
  if (!low_bits && (saturates || !holds(middle, from))) return kNone;
  return b.put(Op::cast, inner.inputs, step.attributes);
}

int view_of_itself(Builder& b, const Step& step) {
  switch (step.op) {
    case Op::detach:
      return step.inputs[0];
    case Op::reshape:
    case Op::expand:
      return operand(b, step, 0);
    case Op::permute:
      for (size_t i = 0; i < step.attributes.size(); i++) {
        if (step.attributes[i] != int64_t(i)) return kNone;
      }
      return step.inputs[0];
    case Op::slice: {
      const PerAxis per_axis{step.attributes};
      for (int axis = 0; axis < step.type.shape.rank(); axis++) {
        if (per_axis.third(axis) != 1 && step.type.shape[axis] > 1) return kNone;
      }
      return operand(b, step, 0);
    }
    default:
      return kNone;
  }
}

int view_of_number(Builder& b, const Step& step) {
  if (!is_view(step.op) || input(b, step, 0).op != Op::full) return kNone;
  return b.put_full(step.type, input(b, step, 0).scalar);
}

Attributes slice_of_slice(const Step& outer, const Step& inner) {
  const PerAxis a{inner.attributes}, b{outer.attributes};
  Attributes result;
  for (int axis = 0; axis < outer.type.shape.rank(); axis++) {
    const int64_t count = b.second(axis);
    result.push_back(count > 0 ? a.first(axis) + b.first(axis) * a.third(axis) : 0);
    result.push_back(count);
    result.push_back(count > 1 ? a.third(axis) * b.third(axis) : 1);
  }
  return result;
}

int view_of_view(Builder& b, const Step& step) {
  if (step.inputs.size() != 1 || input(b, step, 0).op != step.op) return kNone;
  const Step inner = input(b, step, 0);
  switch (step.op) {
    case Op::reshape:
    case Op::expand:
      return b.put(step.op, inner.inputs, step.attributes);
    case Op::permute: {
      Attributes axes;
      for (int64_t axis : step.attributes) axes.push_back(inner.attributes[size_t(axis)]);
      return b.put(Op::permute, inner.inputs, std::move(axes));
    }
    case Op::slice:
      return b.put(Op::slice, inner.inputs, slice_of_slice(step, inner));
    default:
      return kNone;
  }
}

// Floats are folded only where every backend rounds the exact result once.
bool folds(Op op, DType dtype) {
  if (is_whole(dtype)) return true;
  switch (op) {
    case Op::reciprocal:
    case Op::sqrt:
    case Op::div:
      return true;
    case Op::pow:
    case Op::floor_divide:
    case Op::trunc_divide:
    case Op::remainder:
      return false;
    default:
      return !gives_floats(info(op).rule);
  }
}

int fold_numbers(Builder& b, const Step& step) {
  if (!is_pointwise(step.op) || step.op == Op::copy) return kNone;
  const DType dtype = b[step.inputs.back()].type.dtype;
  if (!folds(step.op, dtype)) return kNone;
  std::vector<Scalar> numbers;
  for (int i : step.inputs) {
    if (b[i].op != Op::full) return kNone;
    numbers.push_back(b[i].scalar);
  }
  return b.put_full(step.type, evaluate(step.op, dtype, numbers));
}

int fold_cast(Builder& b, const Step& step) {
  if (step.op != Op::cast || input(b, step, 0).op != Op::full) return kNone;
  const Step& x = input(b, step, 0);
  return b.put_full(step.type, round_to(step.type.dtype, round_to(x.type.dtype, x.scalar)));
}

constexpr Rewrite kTable[] = {
    {"numbers come last",
     "%0 = leaf : T[2,3]\n%1 = full 3 : T[]\n%2 = mul %1 %0 : T[2,3]\n%3 = mul %0 %1 : T[2,3]\n"
     "return %2 %3\n",
     number_to_the_right},
    {"x plus nothing",
     "%0 = leaf : T[2,3]\n%1 = full -0.0 : T[]\n%2 = add %0 %1 : T[2,3]\nreturn %2\n", add_zero},
    {"x minus nothing",
     "%0 = leaf : T[2,3]\n%1 = full 0 : T[]\n%2 = sub %0 %1 : T[2,3]\nreturn %2\n", subtract_zero},
    {"x times 1", "%0 = leaf : T[2,3]\n%1 = full 1 : T[]\n%2 = mul %1 %0 : T[2,3]\nreturn %2\n",
     multiply_one},
    {"x over 1", "%0 = leaf : T[2,3]\n%1 = full 1 : T[]\n%2 = div %0 %1 : T[2,3]\nreturn %2\n",
     divide_one},
    {"whole numbers times 0",
     "%0 = leaf : T[2,3]\n%1 = full 0 : T[]\n%2 = mul %0 %1 : T[2,3]\n%3 = neg %2 : T[2,3]\n"
     "return %3\n",
     multiply_zero},
    {"minus minus x", "%0 = leaf : T[2,3]\n%1 = neg %0 : T[2,3]\n%2 = neg %1 : T[2,3]\nreturn %2\n",
     twice_undone},
    {"not not x",
     "%0 = leaf : T[2,3]\n%1 = bitwise_not %0 : T[2,3]\n%2 = bitwise_not %1 : T[2,3]\nreturn %2\n",
     twice_undone},
    {"magnitude of a magnitude",
     "%0 = leaf : T[2,3]\n%1 = abs %0 : T[2,3]\n%2 = abs %1 : T[2,3]\nreturn %2\n", twice_as_once},
    {"rounding whole numbers",
     "%0 = leaf : T[2,3]\n%1 = ceil %0 : T[2,3]\n%2 = round %1 : T[2,3]\nreturn %2\n", round_whole},
    {"a sign that is not seen",
     "%0 = leaf : T[2,3]\n%1 = neg %0 : T[2,3]\n%2 = square %1 : T[2,3]\nreturn %2\n", sign_unseen},
    {"the larger of x and x", "%0 = leaf : T[2,3]\n%1 = maximum %0 %0 : T[2,3]\nreturn %1\n",
     same_operands},
    {"plus minus x",
     "%0 = leaf : T[2,3]\n%1 = leaf : T[3]\n%2 = neg %1 : T[3]\n%3 = add %0 %2 : T[2,3]\n"
     "return %3\n",
     add_negated},
    {"whole numbers regroup",
     "%0 = leaf : T[2,3]\n%1 = full 3 : T[]\n%2 = full 7 : T[]\n%3 = mul %0 %1 : T[2,3]\n"
     "%4 = mul %3 %2 : T[2,3]\nreturn %4\n",
     regroup},
    {"where the answer is known",
     "%0 = leaf : T[2,3]\n%1 = leaf : T[2,3]\n%2 = full true : bool[]\n"
     "%3 = where %2 %0 %1 : T[2,3]\nreturn %3\n",
     known_condition},
    {"cast to its own dtype", "%0 = leaf : T[2,3]\n%1 = cast %0 : T[2,3]\nreturn %1\n",
     cast_to_itself},
    {"cast by way of a wider dtype",
     "%0 = leaf : T[2,3]\n%1 = cast %0 : f64[2,3]\n%2 = cast %1 : f16[2,3]\nreturn %2\n",
     cast_of_cast},
    {"a view of everything",
     "%0 = leaf : T[2,3]\n%1 = slice %0 {0,2,1,0,3,1} : T[2,3]\n%2 = permute %1 {0,1} : T[2,3]\n"
     "%3 = expand %2 : T[2,3]\n%4 = reshape %3 : T[2,3]\n%5 = detach %4 : T[2,3]\nreturn %5\n",
     view_of_itself},
    {"a view of one number",
     "%0 = full 3 : T[]\n%1 = expand %0 : T[2,3]\n%2 = permute %1 {1,0} : T[3,2]\nreturn %2\n",
     view_of_number},
    {"reshape of reshape",
     "%0 = leaf : T[2,3]\n%1 = reshape %0 : T[6]\n%2 = reshape %1 : T[3,2]\nreturn %2\n",
     view_of_view},
    {"permute of permute",
     "%0 = leaf : T[2,3,4]\n%1 = permute %0 {1,2,0} : T[3,4,2]\n%2 = permute %1 {0,2,1} : "
     "T[3,2,4]\n"
     "return %2\n",
     view_of_view},
    {"expand of expand",
     "%0 = leaf : T[1,3]\n%1 = expand %0 : T[2,3]\n%2 = expand %1 : T[4,2,3]\nreturn %2\n",
     view_of_view},
    {"slice of slice",
     "%0 = leaf : T[4,7]\n%1 = slice %0 {3,3,-1,1,3,2} : T[3,3]\n"
     "%2 = slice %1 {1,2,1,2,2,-1} : T[2,2]\nreturn %2\n",
     view_of_view},
    {"numbers are computed",
     "%0 = full 3 : T[2]\n%1 = full 2 : T[]\n%2 = mul %0 %1 : T[2]\n%3 = less %2 %1 : bool[2]\n"
     "return %3\n",
     fold_numbers},
    {"numbers are cast", "%0 = full 3 : T[2]\n%1 = cast %0 : i64[2]\nreturn %1\n", fold_cast},
};

}  // namespace

std::span<const Rewrite> algebra() { return kTable; }

}  // namespace fornax
