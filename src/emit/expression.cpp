// Expressions: what pure instructions become.
#include <algorithm>

#include "base/error.h"
#include "emit/writer.h"

namespace fornax::c_like {

using kernel::Code;

namespace {

constexpr size_t kLongest = 72;  // characters of an expression that is not named yet

}  // namespace

const Expression& Writer::named(ValueId value) {
  if (waits_[size_t(value)]) define_now(value, Expression(of(value)));
  return of(value);
}

Expression Writer::lane(ValueId value, int lane) {
  if (kernel_.type(value).lanes == 1) return named(value);
  Expression result = named(value);
  result.text += fmt::format(".lane[{}]", lane);
  return result;
}

void Writer::define(ValueId value, Expression expression) {
  const size_t i = size_t(value);
  if (uses_.count[i] == 1 && uses_.local[i] && kernel_.type(value).lanes == 1 &&
      expression.text.size() <= kLongest) {
    waits_[i] = true;
    expressions_[i] = std::move(expression);
  } else {
    define_now(value, expression);
  }
}

void Writer::define_now(ValueId value, const Expression& expression) {
  line("const {} v{} = {};", type_name(kernel_.type(value)), value, expression.text);
  expressions_[size_t(value)] = {fmt::format("v{}", value), true, {}};
  waits_[size_t(value)] = false;
}

// Whether the language has a way to compute all lanes together; it is written then.
bool Writer::whole_vector(const Instruction& instruction) {
  const ValueId result = instruction.results[0];
  Names names;
  names.type = kernel_.type(result).dtype;
  const std::string_view pattern = vector_pattern_of(spelling_, instruction.code, names.type);
  if (pattern.empty() || instruction.fast) return false;
  std::vector<Expression> operands;
  for (const ValueId operand : instruction.operands) operands.push_back(named(operand));
  define_now(result, fill(pattern, operands, names));
  return true;
}

void Writer::pure(const Instruction& instruction) {
  const ValueId result = instruction.results[0];
  const ValueType& type = kernel_.type(result);
  if (instruction.code == Code::constant) {
    expressions_[size_t(result)] = literal(type.dtype, instruction.attributes[0]);
    return;
  }
  if (instruction.code == Code::extract) {
    define(result, lane(instruction.operands[0], int(instruction.attributes[0])));
    return;
  }
  std::vector<Expression> operands;
  if (type.lanes == 1) {
    for (const ValueId operand : instruction.operands) operands.push_back(of(operand));
    // All lanes of a warp must take part, so it stands where it is, not inside what reads it.
    const bool together = instruction.code == Code::shuffle ||
                          instruction.code == Code::shuffle_xor || instruction.code == Code::ballot;
    const Expression value = element(instruction, operands);
    together ? define_now(result, value) : define(result, value);
    return;
  }
  if (whole_vector(instruction)) return;
  Expression vector{"{{", true, {}};
  for (int i = 0; i < type.lanes; i++) {
    if (instruction.code == Code::pack) {
      vector.text += (i ? ", " : "") + of(instruction.operands[size_t(i)]).text;
      continue;
    }
    operands.clear();
    for (const ValueId operand : instruction.operands) operands.push_back(lane(operand, i));
    vector.text += (i ? ", " : "") + element(instruction, operands).text;
  }
  vector.text += "}}";
  define_now(result, vector);
}

// Whether overflow and a divisor of 0 need no care.
bool Writer::is_index(const Instruction& instruction) const {
  if (instruction.code == Code::div || instruction.code == Code::rem) {
    const kernel::InstructionId id = kernel_.values[size_t(instruction.operands[1])].made_by;
    if (id < 0 || kernel_.at(id).code != Code::constant) return false;
    const int64_t divisor = kernel_.at(id).attributes[0];
    return !is_floating(kernel_.type(instruction.operands[1]).dtype) && divisor > 0;
  }
  return uses_.only_places[size_t(instruction.results[0])];
}

// One element of the result.
Expression Writer::element(const Instruction& instruction, std::span<const Expression> operands) {
  const Code code = instruction.code;
  const DType result = kernel_.type(instruction.results[0]).dtype;
  Names names;
  names.type = result;
  if (!instruction.operands.empty()) {
    names.source = kernel_.type(instruction.operands[0]).dtype;
    if (code != Code::select) names.type = names.source;
  }
  if (code == Code::cast || code == Code::bits) {
    names.type = result;
    return fill(conversion_of(spelling_, code, names.source, result), operands, names);
  }
  if (code == Code::block || code == Code::blocks) {
    names.attribute = std::string(1, "xyz"[instruction.attributes[0]]);
  } else if (!instruction.attributes.empty()) {
    names.attribute = fmt::format("{}", instruction.attributes[0]);
  }
  Manner manner = instruction.fast ? Manner::fast : Manner::usual;
  if (is_index(instruction)) manner = Manner::index;
  return fill(pattern_of(spelling_, code, names.type, manner), operands, names);
}

Expression Writer::splat(ValueId value, const ValueType& type) {
  if (kernel_.type(value).lanes > 1) return named(value);
  Expression result{type_name(type) + "{{", true, {}};
  for (int i = 0; i < type.lanes; i++) result.text += (i ? ", " : "") + lane(value, i).text;
  result.text += "}}";
  return result;
}

}  // namespace fornax::c_like
