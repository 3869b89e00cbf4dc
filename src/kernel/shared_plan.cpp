// Where each piece of shared memory begins.
#include "kernel/ir.h"

namespace fornax::kernel {

SharedPlan plan_shared(const Kernel& kernel) {
  SharedPlan plan;
  for (const Instruction& instruction : kernel.instructions) {
    plan.offsets.push_back(-1);
    if (instruction.code != Code::shared) continue;
    const int64_t alignment = instruction.attributes[1];
    plan.bytes = (plan.bytes + alignment - 1) / alignment * alignment;
    plan.offsets.back() = plan.bytes;
    const DType dtype = kernel.type(instruction.results[0]).dtype;
    const int64_t bytes = instruction.attributes[0] * int64_t(fornax::info(dtype).size);
    plan.bytes += (bytes + 15) / 16 * 16;
  }
  return plan;
}

}  // namespace fornax::kernel
