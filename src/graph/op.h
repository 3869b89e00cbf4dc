// The vocabulary: which ops exist and what the table says of each.  All constant data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fornax {

enum class Op : uint8_t {
#define OP1(name, ...) name,
#define OP2(name, ...) name,
#define OP3(name, ...) name,
#define OPX(name, ...) name,
#include <fornax/ops.def>
};

// Pointwise ops are those with a value column; the rest move data.
enum class Family : uint8_t {
  pointwise,
  leaf,
  constant,
  view,
  index,
  reduce,
  scan,
  contract,
  convolve,
  other
};

// How the result's dtype follows from the operands' (the head of ops.def explains each).
enum class Rule : uint8_t {
  same,
  signed_same,
  floating,
  exponential,
  boolean,
  floating_boolean,
  bitwise,
  selected,
  own
};

constexpr bool gives_floats(Rule rule) {
  return rule == Rule::floating || rule == Rule::exponential;
}
constexpr bool wants_floats(Rule rule) {
  return gives_floats(rule) || rule == Rule::floating_boolean;
}
constexpr bool gives_boolean(Rule rule) {
  return rule == Rule::boolean || rule == Rule::floating_boolean;
}

// What Autocast does to operands of f32 and of 16 bits.
enum class Precision : uint8_t {
  any,     // nothing
  narrow,  // brings them to its dtype
  wide     // brings them to f32
};

// Which values the gradient of one operand reads, so that recording keeps no others alive.
struct Saved {
  uint8_t inputs = 0;  // bit i: input i
  bool result = false;
};

struct OpInfo {
  std::string_view name;
  int inputs;  // -1: any number
  Family family;
  Rule rule;  // own: type_<name> decides
  Precision precision;
  std::string_view value;  // the value column as text; empty for ops that move data
  std::string_view gradient;
  Saved saved[3];  // per operand; the last one serves further operands
  std::string_view documentation;
};

extern const OpInfo kOpTable[];
inline const OpInfo& info(Op op) { return kOpTable[size_t(op)]; }
int op_count();
// The op named `name`; false where there is none.
bool parse_op(std::string_view name, Op& out);

inline bool is_pointwise(Op op) { return info(op).family == Family::pointwise; }
inline bool is_view(Op op) { return info(op).family == Family::view; }
inline bool is_reduce(Op op) { return info(op).family == Family::reduce; }

}  // namespace fornax
