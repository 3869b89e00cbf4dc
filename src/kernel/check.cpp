#include "kernel/check.h"

#include <fmt/core.h>

namespace fornax::kernel {
namespace {

std::string memory_name(const Kernel& kernel, ValueId memory) {
  const InstructionId made_by = kernel.values[size_t(memory)].made_by;
  if (made_by < 0) return kernel.parameters[size_t(memory)].name;
  return fmt::format("shared {}", name_of(kernel.type(memory).dtype));
}

bool accesses(Code code) {
  return code == Code::load || code == Code::store || code == Code::atomic ||
         code == Code::compare_exchange || code == Code::mma;
}

}  // namespace

std::string place_of(const Instruction& instruction) {
  std::string text{info(instruction.code).name};
  if (instruction.site.line > 0) {
    std::string_view file = instruction.site.file;
    file.remove_prefix(file.rfind('/') + 1);
    text += fmt::format(" in {}:{}", file, instruction.site.line);
  }
  return text;
}

bool reports(const Kernel& kernel, bool checked) {
  for (const Instruction& instruction : kernel.instructions) {
    if (instruction.code == Code::assert_ || (checked && accesses(instruction.code))) return true;
  }
  return false;
}

std::string describe(const Kernel& kernel, const Status& status) {
  const Instruction& instruction = kernel.at(InstructionId(status[1]));
  const int64_t index = status[2], count = status[3];
  if (instruction.code == Code::assert_) {
    std::string text = instruction.text;
    for (size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at)) {
      const std::string number = std::to_string(index);
      text.replace(at, 2, number);
      at += number.size();
    }
    return text;
  }
  const std::string_view code = info(instruction.code).name;
  const std::string place = place_of(instruction).substr(code.size());
  if (instruction.code == Code::mma) {
    return fmt::format("{}: mma of {} and {}{} reads element {} of {}", kernel.name,
                       memory_name(kernel, instruction.operands[1]),
                       memory_name(kernel, instruction.operands[3]), place, index, count);
  }
  return fmt::format("{}: {} of {}[{}]{}, which has {} elements", kernel.name, code,
                     memory_name(kernel, instruction.operands[0]), index, place, count);
}

}  // namespace fornax::kernel
