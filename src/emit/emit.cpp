// From a kernel to a program for a device: the language is chosen, and what a launch passes is
// said.
#include "emit/emit.h"

#include "base/error.h"
#include "emit/c_like.h"
#include "kernel/check.h"

namespace fornax {

using runtime::Language;
using runtime::ParameterKind;

static std::vector<ParameterKind> parameters_of(const kernel::Kernel& kernel, bool checked) {
  std::vector<ParameterKind> kinds;
  int64_t buffers = 0;
  for (const kernel::Parameter& parameter : kernel.parameters) {
    const bool buffer = parameter.type.memory == kernel::Memory::global;
    if (parameter.type.memory == kernel::Memory::map) {
      kinds.push_back(ParameterKind::tensor_map);
      continue;
    }
    const bool wide = buffer || size_of(parameter.type.dtype) == 8;
    kinds.push_back(buffer && parameter.written ? ParameterKind::output
                    : wide                      ? ParameterKind::word64
                                                : ParameterKind::word32);
    buffers += buffer;
  }
  if (checked) kinds.insert(kinds.end(), size_t(buffers), ParameterKind::word64);
  if (reports(kernel, checked)) kinds.push_back(ParameterKind::word64);
  return kinds;
}

runtime::Source emit(const kernel::Kernel& kernel, const runtime::Capabilities& capabilities,
                     EmitSettings settings) {
  if (kernel.dialect != kernel::Dialect::simt) {
    fail(ErrorKind::internal, "emit: {} is a tile kernel; lower it first", kernel.name);
  }
  runtime::Source source;
  source.label = kernel.name;
  source.threads = kernel.threads;
  source.shared_bytes = size_t(plan_shared(kernel).bytes);
  source.parameters = parameters_of(kernel, settings.checked);
  switch (capabilities.language) {
    case Language::kernel:
      source.entry = kernel.name;
      source.text = text_of(kernel);
      break;
    case Language::cuda: {
      source.waits = settings.waits = capabilities.compute >= 90;
      c_like::Program program = c_like::write(c_like::cuda(), kernel, settings);
      source.entry = std::move(program.entry);
      source.text = program.text();
      break;
    }
  }
  return source;
}

}  // namespace fornax
