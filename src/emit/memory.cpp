// Statements that access memory.  In the checked mode an access stands behind a test.
#include "base/error.h"
#include "emit/writer.h"

namespace fornax::c_like {

using kernel::Code;
using kernel::Memory;

namespace {

std::string in_parentheses(const Expression& expression) {
  return expression.simple ? expression.text : "(" + expression.text + ")";
}

}  // namespace

std::string Writer::place(const Instruction& instruction, int lanes) {
  const ValueId memory = instruction.operands[0];
  const Expression& index =
      settings_.checked ? named(instruction.operands[1]) : of(instruction.operands[1]);
  const std::string pointer = of(memory).text;
  if (lanes == 1) return fmt::format("{}[{}]", pointer, index.text);
  const bool written = instruction.code != Code::load;
  const std::string type =
      type_name({.dtype = kernel_.type(memory).dtype, .lanes = uint8_t(lanes)});
  return fmt::format("*({}{}*)({} + {})", written ? "" : "const ", type, pointer,
                     in_parentheses(index));
}

std::string Writer::inside(const Instruction& instruction, int lanes) {
  const ValueId memory = instruction.operands[0];
  std::string count;
  if (kernel_.type(memory).memory == Memory::global) {
    count = of(memory).text + "count";
  } else {
    count = fmt::format("{}", kernel_.at(kernel_.values[size_t(memory)].made_by).attributes[0]);
  }
  return fmt::format("inside({}, {}, {}, status, {})", named(instruction.operands[1]).text, lanes,
                     count, current_);
}

std::string Writer::when(const Instruction& instruction, size_t mask, int lanes) {
  std::string condition;
  if (instruction.operands.size() > mask) {
    FORNAX_CHECK(kernel_.type(instruction.operands[mask]).lanes == 1);
    condition = of(instruction.operands[mask]).text;
  }
  if (!settings_.checked) return condition;
  if (!condition.empty()) condition = in_parentheses(of(instruction.operands[mask])) + " && ";
  return condition + inside(instruction, lanes);
}

void Writer::load(const Instruction& instruction) {
  const ValueId result = instruction.results[0];
  const ValueType& type = kernel_.type(result);
  FORNAX_CHECK(kernel_.type(instruction.operands[1]).lanes == 1);
  const bool masked = instruction.operands.size() > 2;
  if (type.lanes > 1 && (masked || settings_.checked)) return load_vector(instruction);
  std::string value = place(instruction, type.lanes);
  if (settings_.checked) {
    const std::string zero = fmt::format("{}(0)", name_of(type.dtype));
    value = fmt::format("{} ? {} : {}", inside(instruction, type.lanes), value, zero);
    if (masked) value = "(" + value + ")";
  }
  if (masked) {
    value = fmt::format("{} ? {} : {}", in_parentheses(of(instruction.operands[2])), value,
                        in_parentheses(of(instruction.operands[3])));
  }
  define_now(result, {value, false, {}});
}

// Several elements, some of which may not be there.
void Writer::load_vector(const Instruction& instruction) {
  const ValueId result = instruction.results[0];
  const ValueType& type = kernel_.type(result);
  declare(result, "{}");
  expressions_[size_t(result)].reads.clear();
  const std::string access = fmt::format("v{} = {};", result, place(instruction, type.lanes));
  const std::string test = settings_.checked ? inside(instruction, type.lanes) : "";
  if (instruction.operands.size() > 2) {
    FORNAX_CHECK(kernel_.type(instruction.operands[2]).lanes == 1);
    const std::string otherwise = splat(instruction.operands[3], type).text;
    line("if (!{}) v{} = {};", in_parentheses(of(instruction.operands[2])), result, otherwise);
    line("else {}{}", test.empty() ? "" : "if (" + test + ") ", access);
  } else {
    line("if ({}) {}", test, access);
  }
}

void Writer::store(const Instruction& instruction) {
  const int lanes = kernel_.type(instruction.operands[2]).lanes;
  FORNAX_CHECK(kernel_.type(instruction.operands[1]).lanes == 1);
  const std::string where = place(instruction, lanes);
  const std::string condition = when(instruction, 3, lanes);
  line("{}{} = {};", condition.empty() ? "" : "if (" + condition + ") ", where,
       of(instruction.operands[2]).text);
}

// A result that nobody reads needs no name.
void Writer::exchange(const Instruction& instruction, std::string_view pattern, size_t operands,
                      size_t mask) {
  const ValueId result = instruction.results[0];
  const DType dtype = kernel_.type(instruction.operands[0]).dtype;
  FORNAX_CHECK(kernel_.type(result).lanes == 1);
  const Expression& index = named(instruction.operands[1]);
  std::vector<Expression> values = {
      {fmt::format("{} + {}", of(instruction.operands[0]).text, in_parentheses(index)), false, {}}};
  for (size_t i = 2; i < operands; i++) values.push_back(of(instruction.operands[i]));
  const std::string value = fill(pattern, values, {dtype, dtype, {}}).text;
  const std::string condition = when(instruction, mask, 1);
  const bool used = uses_.count[size_t(result)] > 0;
  if (condition.empty() && used) return define_now(result, {value, false, {}});
  if (used) {
    declare(result, fmt::format("{}(0)", name_of(dtype)));
    expressions_[size_t(result)].reads.clear();
  }
  line("{}{}{};", condition.empty() ? "" : "if (" + condition + ") ",
       used ? fmt::format("v{} = ", result) : "", value);
}

void Writer::atomic(const Instruction& instruction) {
  const auto how = kernel::Atomic(instruction.attributes[0]);
  const DType dtype = kernel_.type(instruction.operands[0]).dtype;
  exchange(instruction, pattern_of(spelling_, how, dtype), 3, 3);
}

void Writer::compare_exchange(const Instruction& instruction) {
  const DType dtype = kernel_.type(instruction.operands[0]).dtype;
  exchange(instruction, pattern_of(spelling_, Code::compare_exchange, dtype), 4, 4);
}

}  // namespace fornax::c_like
