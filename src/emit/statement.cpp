// Statements: control, memory, and what has effects.
#include <algorithm>

#include "base/error.h"
#include "emit/writer.h"

namespace fornax::c_like {

using kernel::Code;
using kernel::Effect;
using kernel::Memory;

void Writer::region(const Region& region) {
  for (const kernel::InstructionId id : region.instructions) instruction(id);
}

void Writer::instruction(kernel::InstructionId id) {
  const Instruction& instruction = kernel_.at(id);
  current_ = id;
  note_site(instruction.site);
  switch (instruction.code) {
    case Code::loop:
      return loop(instruction);
    case Code::while_:
      return repeat_while(instruction);
    case Code::if_:
      return condition(instruction);
    case Code::load:
      return load(instruction);
    case Code::store:
      return store(instruction);
    case Code::atomic:
      return atomic(instruction);
    case Code::compare_exchange:
      return compare_exchange(instruction);
    case Code::assert_:
      return require(instruction);
    case Code::print:
      return print(instruction);
    case Code::raw:
      return raw(instruction);
    case Code::shared:
      return shared(instruction);
    case Code::wgmma:
      return wgmma(instruction);
    case Code::wgmma_wait:
      return wgmma_wait(instruction);
    case Code::fetch:
    case Code::copy_out:
    case Code::copy_commit:
    case Code::copy_wait:
    case Code::copy_fence:
    case Code::phase_init:
    case Code::phase_expect:
    case Code::phase_arrive:
    case Code::phase_wait:
    case Code::phase_fence:
    case Code::group_barrier:
    case Code::registers:
    case Code::store_matrix:
    case Code::wgmma_fence:
    case Code::wgmma_commit:
      return engine(instruction);
    case Code::fence:
    case Code::barrier:
    case Code::warp_barrier:
      return line("{};", pattern_of(spelling_, instruction.code, DType::bool_));
    default:
      return pure(instruction);
  }
}

void Writer::shared(const Instruction& instruction) {
  const ValueId result = instruction.results[0];
  const std::string_view type = name_of(kernel_.type(result).dtype);
  const int64_t offset = shared_.offsets[size_t(current_)];
  line("{0}* const v{1} = ({0}*)(shared_memory + {2});", type, result, offset);
  expressions_[size_t(result)] = {fmt::format("v{}", result), true, {}};
}

// A variable for a value that changes.
void Writer::declare(ValueId value, const std::string& start) {
  line("{} v{}{};", type_name(kernel_.type(value)), value, start.empty() ? "" : " = " + start);
  expressions_[size_t(value)] = {fmt::format("v{}", value), true, {value}};
}

// Variables take their next values as if at once: what reads a variable that has its next value
// already is computed before.
void Writer::assign(const std::vector<ValueId>& variables, const std::vector<ValueId>& next) {
  std::vector<Expression> values;
  for (size_t i = 0; i < next.size(); i++) {
    values.push_back(of(next[i]));
    const std::vector<ValueId>& reads = values[i].reads;
    const bool late = std::any_of(
        variables.begin(), variables.begin() + std::ptrdiff_t(i), [&](ValueId variable) {
          return std::find(reads.begin(), reads.end(), variable) != reads.end();
        });
    if (!late) continue;
    line("const {} next{} = {};", type_name(kernel_.type(variables[i])), variables[i],
         values[i].text);
    values[i] = {fmt::format("next{}", variables[i]), true, {}};
  }
  for (size_t i = 0; i < next.size(); i++) {
    const std::string variable = fmt::format("v{}", variables[i]);
    if (values[i].text != variable) line("{} = {};", variable, values[i].text);
  }
}

// After a loop its results are what the variables hold, for good.
void Writer::take_over(const std::vector<ValueId>& results, const std::vector<ValueId>& variables) {
  for (size_t i = 0; i < results.size(); i++) {
    expressions_[size_t(results[i])] = {fmt::format("v{}", variables[i]), true, {}};
  }
}

// Turns of a pipeline are long and wait for each other: a compiler that unrolls them gains nothing
// and takes twice the time.
bool Writer::is_pipeline(const Region& body) const {
  return std::any_of(
      body.instructions.begin(), body.instructions.end(),
      [this](kernel::InstructionId id) { return kernel_.at(id).code == Code::phase_wait; });
}

void Writer::loop(const Instruction& instruction) {
  const Region& body = instruction.regions[0];
  const std::vector<ValueId> variables(body.parameters.begin() + 1, body.parameters.end());
  for (size_t i = 0; i < variables.size(); i++) {
    declare(variables[i], of(instruction.operands[3 + i]).text);
  }
  const ValueId index = body.parameters[0];
  const std::string to = named(instruction.operands[1]).text;
  const std::string step = named(instruction.operands[2]).text;
  if (is_pipeline(body)) line("#pragma unroll 1");
  line("for ({} v{} = {}; v{} < {}; v{} += {}) {{", type_name(kernel_.type(index)), index,
       of(instruction.operands[0]).text, index, to, index, step);
  expressions_[size_t(index)] = {fmt::format("v{}", index), true, {}};
  indent_ += "  ";
  region(body);
  assign(variables, body.yields);
  indent_.resize(indent_.size() - 2);
  line("}}");
  take_over(instruction.results, variables);
}

void Writer::repeat_while(const Instruction& instruction) {
  const std::vector<ValueId>& variables = instruction.regions[0].parameters;
  for (size_t i = 0; i < variables.size(); i++) {
    declare(variables[i], of(instruction.operands[i]).text);
  }
  line("for (;;) {{");
  indent_ += "  ";
  region(instruction.regions[0]);
  const Expression& goes_on = of(instruction.regions[0].yields[0]);
  line(fmt::runtime(goes_on.simple ? "if (!{}) break;" : "if (!({})) break;"), goes_on.text);
  // The second region may name the variables anew.
  const std::vector<ValueId>& again = instruction.regions[1].parameters;
  for (size_t i = 0; i < again.size(); i++) {
    expressions_[size_t(again[i])] = of(variables[i]);
  }
  region(instruction.regions[1]);
  assign(variables, instruction.regions[1].yields);
  indent_.resize(indent_.size() - 2);
  line("}}");
  take_over(instruction.results, variables);
}

void Writer::condition(const Instruction& instruction) {
  for (const ValueId result : instruction.results) declare(result, "");
  line("if ({}) {{", of(instruction.operands[0]).text);
  for (size_t side = 0; side < 2; side++) {
    const Region& inner = instruction.regions[side];
    if (side == 1) {
      if (inner.instructions.empty() && inner.yields.empty()) break;
      line("}} else {{");
    }
    indent_ += "  ";
    region(inner);
    for (size_t i = 0; i < inner.yields.size(); i++) {
      line("v{} = {};", instruction.results[i], of(inner.yields[i]).text);
    }
    indent_.resize(indent_.size() - 2);
  }
  line("}}");
  take_over(instruction.results, instruction.results);
}

void Writer::require(const Instruction& instruction) {
  const Expression& condition = of(instruction.operands[0]);
  const bool counts = instruction.operands.size() > 1;
  line("if (!{0}{1}{2}) note(status, {3}, {4}, 0);", condition.simple ? "" : "(", condition.text,
       condition.simple ? "" : ")", current_, counts ? of(instruction.operands[1]).text : "0");
}

void Writer::print(const Instruction& instruction) {
  std::string format, arguments;
  for (const char c : kernel_.name + ": " + instruction.text) {
    if (c == '%') format += '%';
    if (c == '"' || c == '\\') format += '\\';
    format += c == '\n' ? ' ' : c;
  }
  for (const ValueId operand : instruction.operands) {
    const DType dtype = kernel_.type(operand).dtype;
    for (int i = 0; i < kernel_.type(operand).lanes; i++) {
      const DType wide = is_floating(dtype) ? DType::f64
                         : is_signed(dtype) ? DType::i64
                                            : DType::u64;
      format += is_floating(dtype) ? " %.9g" : is_signed(dtype) ? " %lld" : " %llu";
      const Expression value = lane(operand, i);
      arguments += ", " + (dtype == wide ? value
                                         : fill(conversion_of(spelling_, Code::cast, dtype, wide),
                                                {&value, 1}, {wide, dtype, {}}))
                              .text;
    }
  }
  line(fmt::runtime(spelling_.words.print), "\"" + format + "\\n\"", arguments);
}

void Writer::raw(const Instruction& instruction) {
  std::vector<std::string> names;
  for (const ValueId result : instruction.results) {
    declare(result, "");
    expressions_[size_t(result)].reads.clear();
    names.push_back(of(result).text);
  }
  if (names.empty()) names.emplace_back();
  for (const ValueId operand : instruction.operands) names.push_back(named(operand).text);
  std::string text = instruction.text;
  for (size_t i = 0; i < names.size(); i++) {
    const std::string place = fmt::format("{{{}}}", i);
    for (size_t at = text.find(place); at != text.npos; at = text.find(place, at)) {
      text.replace(at, place.size(), names[i]);
      at += names[i].size();
    }
  }
  put(text);
}

}  // namespace fornax::c_like
