#include "stream/run.h"

#include <chrono>
#include <new>

#include "backend/registry.h"
#include "base/error.h"
#include "base/log.h"

namespace fornax {
namespace {

thread_local ProfileReport* profile = nullptr;

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

struct Runner {
  PhysicalDevice& device;
  int number;
  std::vector<RunValue>& values;
  std::vector<Argument> inputs, outputs;

  std::shared_ptr<const Error> failed_input(const PlanStep& step) const {
    for (int input : step.inputs) {
      if (values[size_t(input)].failure) return values[size_t(input)].failure;
    }
    return nullptr;
  }

  void gather_arguments(const PlanStep& step) {
    inputs.clear();
    for (size_t i = 0; i < step.inputs.size(); i++) {
      const RunValue& value = values[size_t(step.inputs[i])];
      inputs.push_back({value.buffer.get(), value.offset + step.input_offsets[i], value.scalar});
    }
    outputs.clear();
    for (const PlanOutput& output : step.outputs) {
      RunValue& value = values[size_t(output.value)];
      if (output.donor >= 0) {
        value.buffer = values[size_t(step.inputs[size_t(output.donor)])].buffer;
        mark_made_by(*value.buffer, output.op);
      } else {
        const size_t bytes = size_t(output.type.shape.element_count()) * size_of(output.type.dtype);
        value.buffer = device.backend->allocate(device.ordinal, std::max<size_t>(bytes, 1));
        value.buffer->device = number;
        mark_made_by(*value.buffer, output.op);
      }
      outputs.push_back({value.buffer.get(), 0, {}});
    }
  }

  void run(const PlanStep& step) {
    gather_arguments(step);
    if (!profile && !logs(2)) {
      device.backend->execute(*step.prepared, inputs, outputs);
      return;
    }
    const double begin = seconds_now();
    device.backend->execute(*step.prepared, inputs, outputs);
    device.backend->synchronize(device.ordinal);
    const double seconds = seconds_now() - begin;
    if (profile) profile->groups.push_back({step.ops, step.bytes, seconds});
    log(2, "{:9.1f} us {:7.2f} GB/s  {}", seconds * 1e6, double(step.bytes) / seconds * 1e-9,
        step.ops);
  }
};

// The error with the line that recorded the op.  Where it was thrown only the call that made the
// plan run was known, a read somewhere else.
std::shared_ptr<const Error> with_site(const Error& error, Site site) {
  if (site.line == 0) return std::make_shared<const Error>(error);
  std::string message = error.what();
  const size_t known = error.site().line > 0 ? message.rfind(" (at ") : std::string::npos;
  if (known != std::string::npos) message.erase(known);
  return std::make_shared<const Error>(
      error.kind(), fmt::format("{} (at {}:{})", message, site.file, site.line), site);
}

}  // namespace

ProfileReport* set_profile(ProfileReport* report) { return std::exchange(profile, report); }

void run_plan(const Plan& plan, int device, std::vector<RunValue>& values,
              const std::vector<Site>& sites) {
  Runner runner{physical_device(device), device, values, {}, {}};
  for (const PlanStep& step : plan.steps) {
    const Site site = sites[size_t(step.node)];
    std::shared_ptr<const Error> failure = runner.failed_input(step);
    if (!failure && step.failure) failure = with_site(*step.failure, site);
    if (!failure) {
      try {
        runner.run(step);
      } catch (const Error& error) {
        failure = with_site(error, site);
      } catch (const std::bad_alloc&) {
        failure = with_site(Error(ErrorKind::out_of_memory,
                                  fmt::format("{}: no memory left on the host", step.ops)),
                            site);
      } catch (const std::exception& error) {
        failure = with_site(
            Error(ErrorKind::internal, fmt::format("{}: {}", step.ops, error.what())), site);
      }
    }
    if (failure) {
      for (const PlanOutput& output : step.outputs) {
        values[size_t(output.value)].failure = failure;
        values[size_t(output.value)].buffer = nullptr;
      }
    }
    for (int value : step.last_uses) values[size_t(value)].buffer = nullptr;
  }
}

}  // namespace fornax
