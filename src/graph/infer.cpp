// infer(): pointwise rules, and the table that finds the rules of the other ops.
#include <iterator>

#include "base/error.h"
#include "graph/rules.h"

namespace fornax {
namespace {

using TypeRule = Type (*)(const Signature&);

Type type_of_pointwise(const Signature& s);

constexpr TypeRule kRules[] = {
#define OP1(...) type_of_pointwise,
#define OP2(...) type_of_pointwise,
#define OP3(...) type_of_pointwise,
#define OPX(name, ...) type_##name,
#include <fornax/ops.def>
};

std::string operands_of(const Signature& s) {
  std::string text;
  for (int i = 0; i < s.input_count; i++) {
    if (i) text += i + 1 == s.input_count ? " and " : ", ";
    text += text_of(s.input(i));
  }
  return text;
}

[[noreturn]] void wrong_dtype(const Signature& s, const char* what) {
  fail(ErrorKind::dtype, "{}: {}, got {}", Call::name_or(info(s.op).name.data()), what,
       operands_of(s));
}

void check_dtype(const Signature& s, Rule rule, DType dtype) {
  switch (rule) {
    case Rule::signed_same:
      if (is_boolean(dtype)) wrong_dtype(s, "bool operands have no arithmetic; cast them first");
      break;
    case Rule::floating:
    case Rule::exponential:
    case Rule::floating_boolean:
      if (!is_floating(dtype)) wrong_dtype(s, "operands must be floating; cast them first");
      break;
    case Rule::bitwise:
      if (is_floating(dtype)) wrong_dtype(s, "operands must be integers or bool; cast them first");
      break;
    default:
      break;
  }
}

Type type_of_pointwise(const Signature& s) {
  const Rule rule = info(s.op).rule;
  const int first = rule == Rule::selected ? 1 : 0;
  if (first == 1 && !is_boolean(s.input(0).dtype)) {
    wrong_dtype(s, "the condition must be bool; compare it with != 0");
  }
  Type type{s.input(first).dtype, s.input(0).shape};
  for (int i = 1; i < s.input_count; i++) {
    const Type& next = s.input(i);
    if (next.dtype != type.dtype && i > first) {
      wrong_dtype(s, "operands must share a dtype; cast one");
    }
    if (next.shape == type.shape) continue;
    type.shape = broadcast(type.shape, next.shape, info(s.op).name.data());
  }
  check_dtype(s, rule, type.dtype);
  if (gives_boolean(rule)) type.dtype = DType::bool_;
  return type;
}

}  // namespace

Type infer(const Signature& s) {
  const int expected = info(s.op).inputs;
  if (expected >= 0 && s.input_count != expected) {
    fail(ErrorKind::internal, "{}: takes {} inputs, got {}", info(s.op).name, expected,
         s.input_count);
  }
  return kRules[size_t(s.op)](s);
}

Shape broadcast(const Shape& a, const Shape& b, const char* name) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int axis = 0; axis < shorter.rank(); axis++) {
    const int64_t x = longer[axis + shift], y = shorter[axis];
    if (x == y || y == 1) continue;
    if (x != 1) {
      fail(ErrorKind::shape, "{}: cannot broadcast {} with {}: axis {} is {} against {}",
           Call::name_or(name), text_of(a), text_of(b), axis + shift, a.rank() >= b.rank() ? x : y,
           a.rank() >= b.rank() ? y : x);
    }
    result[axis + shift] = y;
  }
  return result;
}

std::string text_of(const Type& type) {
  return std::string(name_of(type.dtype)) + text_of(type.shape);
}

}  // namespace fornax
