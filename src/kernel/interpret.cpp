// The interpreter's launches: arguments, blocks, and the turns of their warps.
#include "kernel/interpret.h"

#include <algorithm>

#include "graph/evaluate.h"
#include "kernel/machine.h"

namespace fornax::kernel {
namespace {

[[noreturn]] void refuse(const Kernel& kernel, const Parameter& parameter,
                         const std::string& what) {
  fail(ErrorKind::internal, "{}: {} {}", kernel.name, parameter.name, what);
}

void check_number(const Kernel& kernel, const Parameter& parameter, uint64_t argument) {
  const DType dtype = parameter.type.dtype;
  if (!is_integer(dtype)) return;
  const Scalar number = scalar_of(dtype, load(dtype, &argument, 0));
  const int64_t value = number.as_int64();
  const bool inside = parameter.most == INT64_MAX || (value >= 0 && value <= parameter.most);
  if (!inside || value % parameter.divisor != 0) {
    refuse(kernel, parameter,
           fmt::format("is {}; it should lie in [0, {}] and be a multiple of {}", value,
                       parameter.most, parameter.divisor));
  }
}

// The buffers of a launch.  Those of one memory share a shadow, with the finest granule.
void bind_memories(Machine& machine, const std::vector<int64_t>& counts) {
  const Kernel& kernel = machine.program.kernel;
  std::map<const void*, int64_t> granules, bytes;
  std::vector<const void*> begins;
  size_t buffer = 0;
  for (const MemoryPlan& plan : machine.program.memories) {
    BoundMemory memory;
    memory.dtype = plan.dtype;
    memory.size = int64_t(size_of(plan.dtype));
    const void* begin = machine.shared.data();
    if (plan.parameter < 0) {
      memory.base = machine.shared.data() + plan.offset;
      memory.elements = memory.count = plan.count;
      memory.watched = true;
      memory.shadow.first_byte = plan.offset;
      bytes[begin] = int64_t(machine.shared.size());
      granules[begin] = 1;
    } else {
      const Parameter& parameter = kernel.parameters[size_t(plan.parameter)];
      const uint64_t address = machine.launch.arguments[size_t(plan.parameter)];
      memory.base = reinterpret_cast<std::byte*>(address);
      if (address % uint64_t(parameter.divisor) || address % uint64_t(memory.size)) {
        refuse(kernel, parameter,
               fmt::format("is not aligned to {} bytes", std::max(parameter.divisor, memory.size)));
      }
      const MemoryExtent extent =
          machine.launch.memory ? machine.launch.memory(memory.base) : MemoryExtent();
      begin = extent.begin;
      memory.shadow.first_byte = memory.base - static_cast<const std::byte*>(begin);
      if (extent.bytes > 0) {
        memory.elements = (extent.bytes - memory.shadow.first_byte) / memory.size;
      }
      memory.count = counts.empty() ? memory.elements : counts[buffer++];
      memory.watched = memory.elements > 0 && (parameter.written || parameter.aliased);
      int64_t& granule = granules[begin];
      granule = granule == 0 ? memory.size : std::min(granule, memory.size);
      bytes[begin] = extent.bytes;
    }
    begins.push_back(begin);
    memory.watched = memory.watched && machine.launch.races && machine.simt;
    machine.memories.push_back(memory);
  }
  for (size_t i = 0; i < begins.size(); i++) {
    BoundMemory& memory = machine.memories[i];
    if (!memory.watched) continue;
    const int64_t first = memory.shadow.first_byte;
    memory.shadow = machine.races.watch(begins[i], bytes[begins[i]], granules[begins[i]]);
    memory.shadow.first_byte = first;
  }
}

// The launch's arguments taken apart: facts checked, element counts, the status.
std::vector<int64_t> take_arguments(Machine& machine) {
  const Kernel& kernel = machine.program.kernel;
  const std::vector<uint64_t>& arguments = machine.launch.arguments;
  const size_t numbers = kernel.parameters.size();
  const size_t buffers = size_t(std::ranges::count_if(
      kernel.parameters, [](const Parameter& p) { return p.type.memory == Memory::global; }));
  const size_t counts = machine.launch.checked ? buffers : 0;
  const bool status = reports(kernel, machine.launch.checked);
  if (arguments.size() != numbers + counts + status) {
    fail(ErrorKind::internal,
         "{}: got {} arguments; it takes {} parameters, {} element counts and {} status",
         kernel.name, arguments.size(), numbers, counts, int(status));
  }
  for (size_t i = 0; i < numbers; i++) {
    const Parameter& parameter = kernel.parameters[i];
    if (parameter.type.memory == Memory::none) check_number(kernel, parameter, arguments[i]);
  }
  if (status) machine.status = reinterpret_cast<Status*>(arguments.back());
  const auto first = arguments.begin() + std::ptrdiff_t(numbers);
  return {first, first + std::ptrdiff_t(counts)};
}

void run_until_stop(Context& context) {
  const std::vector<Step>& steps = context.machine.program.steps;
  const auto end = uint32_t(steps.size());
  context.state = Context::State::running;
  while (context.state == Context::State::running) {
    if (context.next == end) {
      context.state = Context::State::finished;
      return;
    }
    const Step& step = steps[context.next++];
    step.run(context, step);
  }
}

// All warps have stopped: at the same barrier, or at the end.
bool block_goes_on(const Machine& machine, const std::vector<Context>& contexts) {
  const Context& first = contexts[0];
  for (const Context& context : contexts) {
    if (context.next == first.next) continue;
    const Context& late = first.state == Context::State::waiting ? first : context;
    fail(ErrorKind::internal, "{}: not all warps reach it",
         where(late, machine.program.steps[late.next - 1]));
  }
  return first.state == Context::State::waiting;
}

void run_block(Machine& machine, std::vector<Context>& contexts) {
  std::ranges::fill(machine.shared, std::byte{0xab});
  machine.races.next_epoch();
  for (Context& context : contexts) {
    context.next = 0;
    context.mask = context.full;
    context.frames.clear();
  }
  do {
    for (Context& context : contexts) run_until_stop(context);
    machine.races.next_epoch();
  } while (block_goes_on(machine, contexts));
}

std::vector<Context> make_contexts(Machine& machine) {
  const Program& program = machine.program;
  const int threads = machine.simt ? program.kernel.threads : 1;
  std::vector<Context> contexts;
  for (int first = 0; first < threads; first += int(kWarp)) {
    Context context{machine};
    context.warp = first / int(kWarp);
    const auto lanes = std::min(uint32_t(threads - first), kWarp);
    context.full = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    context.words.assign(program.words, 0);
    for (const auto& [word, bits] : program.constants) context.words[word] = bits;
    for (size_t i = 0; i < program.parameters.size(); i++) {
      context.words[program.parameters[i]] = machine.launch.arguments[i];
    }
    contexts.push_back(std::move(context));
  }
  return contexts;
}

}  // namespace

std::string where(const Context& context, const Step& step) {
  return fmt::format("{}: {}", context.machine.program.kernel.name, place_of(*step.instruction));
}

void Machine::note(InstructionId id, int64_t index, int64_t count) {
  if ((*status)[0] == 0) *status = {1, id, index, count};
}
void Machine::write_log(const std::string& line) const {
  if (launch.log) *launch.log += line + '\n';
}

Interpreted::Interpreted(Kernel kernel) : program_(prepare(std::move(kernel))) {}
const Kernel& Interpreted::kernel() const { return program_->kernel; }

void Interpreted::run(const Launch& launch) const {
  Machine machine{*program_, launch};
  machine.simt = program_->kernel.dialect == Dialect::simt;
  machine.shared.resize(size_t(program_->shared_bytes) + 16);
  bind_memories(machine, take_arguments(machine));
  std::vector<Context> contexts = make_contexts(machine);
  for (int z = 0; z < launch.grid[2]; z++) {
    for (int y = 0; y < launch.grid[1]; y++) {
      for (int x = 0; x < launch.grid[0]; x++) {
        machine.block = {x, y, z};
        run_block(machine, contexts);
      }
    }
  }
}

}  // namespace fornax::kernel
