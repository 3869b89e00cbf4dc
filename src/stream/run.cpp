#include "stream/run.h"

#include <chrono>
#include <new>

#include "backend/allocate.h"
#include "backend/registry.h"
#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"

namespace fornax {

constinit thread_local ProfileReport* profile = nullptr;

namespace {

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// What `work` throws, with the line that recorded the op.
template <class Work>
std::shared_ptr<const Error> failure_of(const std::string& ops, Site site, Work work) {
  try {
    work();
    return nullptr;
  } catch (const Error& error) {
    return with_site(error, site);
  } catch (const std::bad_alloc&) {
    return with_site(
        Error(ErrorKind::out_of_memory, fmt::format("{}: no memory left on the host", ops)), site);
  } catch (const std::exception& error) {
    return with_site(Error(ErrorKind::internal, fmt::format("{}: {}", ops, error.what())), site);
  }
}

// One run of a plan.
class Runner {
 public:
  Runner(const Plan& plan, int device, std::vector<RunValue>& values,
         std::span<const Ref<Node>> nodes)
      : plan_(plan),
        device_(physical_device(device)),
        number_(device),
        values_(values),
        nodes_(nodes) {}

  std::vector<OpenStep> run() {
    watched_ = profile || logs(2);
    const Batching batching(*this);
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      const PlanStep& step = plan_.steps[s];
      std::shared_ptr<const Error> failure = failed_input(step);
      if (!failure && step.failure) failure = with_site(*step.failure, site_of(step));
      if (!failure) failure = failure_of(step.ops, site_of(step), [&] { run(int(s)); });
      if (failure) fail_outputs(step, failure);
      // What is collected has not run, so nothing may go yet.
      if (batching) continue;
      for (int value : step.last_uses) values_[size_t(value)].buffer = nullptr;
    }
    if (batching) run_batch(batching);
    return std::move(open_);
  }

 private:
  // Holds the plan's batch, from the third run on, where no other thread does.
  class Batching {
   public:
    explicit Batching(const Runner& runner) : lock_(runner.plan_.repeats->mutex, std::defer_lock) {
      Repeats& repeats = *runner.plan_.repeats;
      if (runner.watched_ || !settings().graphs || runner.plan_.steps.size() < 2 ||
          repeats.runs.fetch_add(1, std::memory_order_relaxed) < 2 || !runner.plan_.keeps_memory ||
          !lock_.try_lock()) {
        return;
      }
      Backend& backend = *runner.device_.backend;
      if (!repeats.batch) repeats.batch = backend.new_batch(runner.device_.ordinal);
      batch_ = repeats.batch.get();
      if (batch_) backend.begin(*batch_);
    }
    explicit operator bool() const { return batch_ != nullptr; }
    Batch& operator*() const { return *batch_; }

   private:
    std::unique_lock<std::mutex> lock_;
    Batch* batch_ = nullptr;
  };

  Site site_of(const PlanStep& step) const { return nodes_[size_t(step.node)]->site; }

  std::shared_ptr<const Error> failed_input(const PlanStep& step) const {
    for (int input : step.inputs) {
      if (values_[size_t(input)].failure) return values_[size_t(input)].failure;
    }
    return nullptr;
  }

  void fail_outputs(const PlanStep& step, const std::shared_ptr<const Error>& failure) {
    for (const PlanOutput& output : step.outputs) {
      values_[size_t(output.value)].failure = failure;
      values_[size_t(output.value)].buffer = nullptr;
    }
  }

  void gather_arguments(const PlanStep& step) {
    inputs_.clear();
    for (size_t i = 0; i < step.inputs.size(); i++) {
      const RunValue& value = values_[size_t(step.inputs[i])];
      inputs_.push_back({value.buffer.get(), value.offset + step.input_offsets[i], value.scalar});
    }
    outputs_.clear();
    for (const PlanOutput& output : step.outputs) {
      RunValue& value = values_[size_t(output.value)];
      if (output.donor >= 0) {
        const RunValue& donor = values_[size_t(step.inputs[size_t(output.donor)])];
        value.buffer = donor.buffer;
        value.offset = donor.offset;
      } else if (output.place >= 0) {
        if (!arena_) arena_ = allocate(number_, plan_.arena_bytes);
        value.buffer = arena_;
        value.offset = output.place;
      } else if (!output.placed || !value.buffer) {
        const auto elements = size_t(output.type.shape.element_count());
        value.buffer = allocate(number_, elements * size_of(output.type.dtype));
      }
      if (value.buffer != arena_) mark_made_by(*value.buffer, output.op);
      outputs_.push_back({value.buffer.get(), value.offset + output.offset, {}});
    }
  }

  void run(int number) {
    const PlanStep& step = plan_.steps[size_t(number)];
    gather_arguments(step);
    const double begin = watched_ ? seconds_now() : 0;
    const uint64_t execution = device_.backend->execute(*step.prepared, inputs_, outputs_);
    if (execution) open_.push_back({number, execution, site_of(step)});
    if (!watched_) return;
    device_.backend->synchronize(device_.ordinal);
    const double seconds = seconds_now() - begin;
    if (profile) profile->groups.push_back({step.ops, step.bytes, seconds});
    log(2, "{:9.1f} us {:7.2f} GB/s  {}", seconds * 1e6, double(step.bytes) / seconds * 1e-9,
        step.ops);
  }

  void run_batch(const Batching& batching) {
    const PlanStep& last = plan_.steps.back();
    const auto failure =
        failure_of(last.ops, site_of(last), [&] { device_.backend->end(*batching); });
    if (!failure) return;
    for (const PlanStep& step : plan_.steps) fail_outputs(step, failure);
  }

  const Plan& plan_;
  PhysicalDevice& device_;
  const int number_;
  std::vector<RunValue>& values_;
  std::span<const Ref<Node>> nodes_;
  bool watched_ = false;  // each step is waited for
  Ref<Buffer> arena_;
  std::vector<Argument> inputs_, outputs_;
  std::vector<OpenStep> open_;
};

}  // namespace

std::shared_ptr<const Error> with_site(const Error& error, Site site) {
  if (site.line == 0) return std::make_shared<const Error>(error);
  return std::make_shared<const Error>(
      error.kind(), fmt::format("{} (at {}:{})", words_of(error), site.file, site.line), site);
}

std::vector<OpenStep> run_plan(const Plan& plan, int device, std::vector<RunValue>& values,
                               std::span<const Ref<Node>> nodes) {
  return Runner(plan, device, values, nodes).run();
}

}  // namespace fornax
