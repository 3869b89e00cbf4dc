// Statements for the copy engine and the matrix units: calls of helpers named like the codes, whose
// arguments are the operands (a memory and its index as one pointer), then the attributes.
#include <algorithm>

#include "base/error.h"
#include "base/join.h"
#include "emit/writer.h"

namespace fornax::c_like {

using kernel::Code;
using kernel::Memory;

// The first `count` operands as arguments.
std::vector<std::string> Writer::pointers(const Instruction& instruction, size_t count) {
  std::vector<std::string> list;
  for (size_t i = 0; i < count; i++) {
    const ValueId operand = instruction.operands[i];
    if (kernel_.type(operand).memory != Memory::shared) {
      list.push_back(of(operand).text);
      continue;
    }
    const Expression& index = of(instruction.operands[++i]);
    list.push_back(fmt::format("{} + {}", of(operand).text,
                               index.simple ? index.text : "(" + index.text + ")"));
  }
  return list;
}

void Writer::engine(const Instruction& instruction) {
  std::vector<std::string> arguments = pointers(instruction, instruction.operands.size());
  std::string name{kernel::info(instruction.code).name};
  if (instruction.code == Code::registers) {
    // An instruction each, with the number in it.
    const int64_t count = instruction.attributes[0];
    return line("asm volatile(\"setmaxnreg.{}.sync.aligned.u32 {};\");", count > 0 ? "inc" : "dec",
                std::abs(count));
  }
  if (instruction.code == Code::copy_wait) {
    return line("asm volatile(\"cp.async.bulk.wait_group{} {};\" ::: \"memory\");",
                instruction.attributes[1] ? ".read" : "", instruction.attributes[0]);
  }
  if (instruction.code != Code::fetch) {
    for (const int64_t attribute : instruction.attributes) {
      arguments.push_back(fmt::format("{}", attribute));
    }
  }
  line("{}({});", name, join(arguments, ", "));
}

// Names of the variables in which the results lie: those of the accumulators where nobody else
// reads these, so that nothing is copied while the units work on them.
std::vector<std::string> Writer::accumulators(const Instruction& instruction, size_t first) {
  std::vector<std::string> names;
  for (size_t i = 0; i < instruction.results.size(); i++) {
    const ValueId operand = instruction.operands[first + i], result = instruction.results[i];
    const Expression& own = of(operand);
    const bool variable = own.simple && own.text.starts_with('v');
    if (uses_.count[size_t(operand)] == 1 && variable) {
      expressions_[size_t(result)] = {own.text, true, {}};
    } else {
      declare(result, own.text);
      expressions_[size_t(result)].reads.clear();
    }
    names.push_back(of(result).text);
  }
  return names;
}

void Writer::wgmma(const Instruction& instruction) {
  constexpr size_t kFirst = 4;
  const std::vector<std::string> names = accumulators(instruction, kFirst);
  const std::vector<std::string> boxes = pointers(instruction, kFirst);
  const std::string_view dtype = name_of(kernel_.type(instruction.operands[0]).dtype);
  const int64_t columns = instruction.attributes[0];
  const bool b_transposed = instruction.attributes[1] != 0;
  const bool a_transposed = instruction.attributes[2] != 0;
  std::string list, operands;
  for (size_t i = 0; i < names.size(); i++) {
    list += fmt::format("{}%{}", i ? ", " : "", i);
    operands += fmt::format("{}\"+f\"({})", i ? ", " : "", names[i]);
  }
  line(
      "asm volatile(\"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {{{2}}}, %{3}, %{4}, 1, "
      "1, "
      "1, {5}, {6};\"",
      columns, dtype, list, names.size(), names.size() + 1, a_transposed ? 1 : 0,
      b_transposed ? 0 : 1);
  line("    : {}", operands);
  line("    : \"l\"({}({})), \"l\"({}({})));", a_transposed ? "box_columns" : "box_rows", boxes[0],
       b_transposed ? "box_rows" : "box_columns", boxes[1]);
}

void Writer::wgmma_wait(const Instruction& instruction) {
  const std::vector<std::string> names = accumulators(instruction, 0);
  std::string operands;
  for (size_t i = 0; i < names.size(); i++) {
    operands += fmt::format("{}\"+f\"({})", i ? ", " : "", names[i]);
  }
  line("asm volatile(\"wgmma.wait_group.sync.aligned {};\" : {}:: \"memory\");",
       instruction.attributes[0], operands.empty() ? "" : operands + " ");
}

}  // namespace fornax::c_like
