#include "graph/op.h"

#include <iterator>

namespace fornax {
namespace {

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether the one-letter name `letter` stands in `expression` as a word of its own.
constexpr bool mentions(std::string_view expression, char letter) {
  for (size_t i = 0; i < expression.size(); i++) {
    const bool starts = i == 0 || !is_word(expression[i - 1]);
    const bool ends = i + 1 == expression.size() || !is_word(expression[i + 1]);
    if (expression[i] == letter && starts && ends) return true;
  }
  return false;
}

constexpr Saved saved_by(std::string_view gradient, std::string_view operands) {
  Saved saved;
  for (size_t i = 0; i < operands.size(); i++) {
    if (mentions(gradient, operands[i])) saved.inputs = uint8_t(saved.inputs | (1u << i));
  }
  saved.result = mentions(gradient, 'y');
  return saved;
}

constexpr Precision precision_of(Rule rule) {
  return rule == Rule::exponential ? Precision::wide : Precision::any;
}

constexpr Saved saved_list(std::string_view list, int operand) {
  Saved saved;
  const bool one_list = list.find(';') == std::string_view::npos;
  for (char c : list) {
    if (c == ';') {
      operand--;
    } else if (one_list || operand == 0) {
      if (c == 'y') {
        saved.result = true;
      } else {
        saved.inputs = uint8_t(saved.inputs | (1u << (c - '0')));
      }
    }
  }
  return saved;
}

}  // namespace

// clang-format off
constexpr OpInfo kOpTable[] = {
#define OP1(name, rule, value, dx, doc) \
  {#name, 1, Family::pointwise, Rule::rule, precision_of(Rule::rule), #value, #dx, \
   {saved_by(#dx, "x")}, doc},
#define OP2(name, rule, value, da, db, doc) \
  {#name, 2, Family::pointwise, Rule::rule, precision_of(Rule::rule), #value, #da ", " #db, \
   {saved_by(#da, "ab"), saved_by(#db, "ab")}, doc},
#define OP3(name, rule, value, da, db, dc, doc) \
  {#name, 3, Family::pointwise, Rule::rule, precision_of(Rule::rule), #value, \
   #da ", " #db ", " #dc, {saved_by(#da, "abc"), saved_by(#db, "abc"), saved_by(#dc, "abc")}, \
   doc},
#define OPX(name, inputs, family, precision, saved, doc) \
  {#name, inputs, Family::family, Rule::own, Precision::precision, "", "", \
   {saved_list(saved, 0), saved_list(saved, 1), saved_list(saved, 2)}, doc},
#include <fornax/ops.def>
};
// clang-format on

int op_count() { return int(std::size(kOpTable)); }

bool parse_op(std::string_view name, Op& out) {
  for (size_t i = 0; i < std::size(kOpTable); i++) {
    if (kOpTable[i].name != name) continue;
    out = Op(i);
    return true;
  }
  return false;
}

}  // namespace fornax
