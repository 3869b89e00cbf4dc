#include "runtimes/cuda/runtime.h"

#include <chrono>
#include <future>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "runtime/registry.h"

namespace fornax::cuda {
namespace {

const runtime::Registered registered(10, []() -> std::unique_ptr<runtime::Runtime> {
  return std::make_unique<CudaRuntime>(RuntimeOptions{settings().cuda_driver, settings().nvrtc,
                                                      &runtime::code_cache(), settings().nvtx});
});

// What this thread is recording.
thread_local std::unique_ptr<Recording> under_way;

// What a recorded launch would do has not happened, so there is nothing to wait for.
void check_not_recording(const Gpu& gpu) {
  if (under_way && under_way->gpu().get() == &gpu) {
    fail(ErrorKind::internal,
         "{}: nothing may wait for the device between begin_recording and end_recording",
         gpu.name());
  }
}

std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; i++) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

}  // namespace

// NVRTC is a large file and the driver takes its time, so both are opened at once.
bool CudaRuntime::open_libraries() {
  driver_ = Driver::load(options_.driver, absence_);
  if (!driver_) return false;
  std::string no_compiler;
  auto compiler = std::async(std::launch::async, [&] {
    return Nvrtc::load(options_.nvrtc, driver_->version, no_compiler);
  });
  const Result result = driver_->init(0);
  ranges_ = Ranges(options_.nvtx);
  nvrtc_ = compiler.get();
  if (result != Result::success) {
    absence_ = fmt::format("the driver does not start: {}{}", driver_->describe(result),
                           result == Result::not_initialized
                               ? "; CUDA does not survive fork(), if it was used before one"
                               : "");
  } else if (!nvrtc_) {
    absence_ = no_compiler;
  }
  return absence_.empty();
}

void CudaRuntime::find() {
  if (!open_libraries()) return;
  int count = 0;
  const Result result = driver_->device_count(&count);
  if (result != Result::success) {
    absence_ = fmt::format("the devices cannot be counted: {}", driver_->describe(result));
    return;
  }
  for (int ordinal = 0; ordinal < count; ordinal++) add_device(ordinal);
  if (devices_.empty()) {
    if (absence_.empty()) {
      absence_ =
          fmt::format("the driver, CUDA {}, shows no device; CUDA_VISIBLE_DEVICES may hide it",
                      version_text(driver_->version));
    }
    return;
  }
  absence_.clear();
  log(1, "cuda: {} devices, driver {}, {}", devices_.size(), version_text(driver_->version),
      nvrtc_->version());
}

// A device that does not answer is left out.
void CudaRuntime::add_device(int ordinal) {
  Device device = 0;
  char name[256] = "";
  Uuid uuid = {};
  size_t bytes = 0;
  Result result = driver_->device(&device, ordinal);
  const auto ask = [&](Result answer) {
    if (result == Result::success) result = answer;
  };
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    ask(driver_->device_attribute(&value, which, device));
    return value;
  };
  ask(driver_->device_name(name, sizeof name - 1, device));
  ask(driver_->device_uuid(&uuid, device));
  ask(driver_->device_memory(&bytes, device));
  runtime::Capabilities can;
  can.language = runtime::Language::cuda;
  can.compute =
      attribute(DeviceAttribute::compute_major) * 10 + attribute(DeviceAttribute::compute_minor);
  // From 90 on, what makes a device fast is not in the portable instruction set.
  can.target = fmt::format("sm_{}{}", can.compute, can.compute >= 90 ? "a" : "");
  can.warp = attribute(DeviceAttribute::warp);
  can.most_threads = attribute(DeviceAttribute::most_threads);
  can.processors = attribute(DeviceAttribute::processors);
  can.shared_bytes = size_t(attribute(DeviceAttribute::shared_bytes));
  if (result != Result::success) {
    absence_ = fmt::format("device {} does not answer: {}", ordinal, driver_->describe(result));
    log(1, "cuda: {}", absence_);
    return;
  }
  const std::string description =
      fmt::format("{} ({:.1f} GiB, {})", name, double(bytes) / double(1 << 30), can.target);
  const std::string gpu = fmt::format("cuda:{}", devices_.size());
  devices_.push_back({"cuda", uuid_text(uuid), description, can});
  units_.push_back(std::make_unique<Unit>(std::make_shared<Gpu>(driver_, device, gpu)));
}

const std::vector<runtime::RuntimeDevice>& CudaRuntime::devices(std::string& absence) {
  find_once_([this] { find(); });
  absence = absence_;
  return devices_;
}

CudaRuntime::Unit& CudaRuntime::unit(int device) {
  find_once_([this] { find(); });
  if (device < 0 || size_t(device) >= units_.size()) {
    fail(ErrorKind::device, "cuda: there is no device {} of {}{}{}", device, units_.size(),
         absence_.empty() ? "" : ": ", absence_);
  }
  return *units_[size_t(device)];
}

// For calls that wait for the device.
CudaRuntime::Unit& CudaRuntime::waiting(int device) {
  Unit& found = unit(device);
  check_not_recording(*found.gpu);
  found.gpu->enter();
  return found;
}

Address CudaRuntime::allocate(int device, size_t bytes) {
  return unit(device).gpu->allocate(bytes);
}

void CudaRuntime::release(int device, Address memory) noexcept {
  if (device >= 0 && size_t(device) < units_.size()) units_[size_t(device)]->gpu->release(memory);
}

runtime::MemoryUse CudaRuntime::memory(int device) {
  Gpu& gpu = *unit(device).gpu;
  gpu.check_usable();
  return gpu.use();
}

void CudaRuntime::trim(int device) { waiting(device).gpu->trim(); }

void CudaRuntime::write(int device, Address to, const void* from, size_t bytes) {
  Unit& u = unit(device);
  u.gpu->enter();
  u.staging.write(to, from, bytes);
}

void CudaRuntime::read(int device, void* to, Address from, size_t bytes) {
  waiting(device).staging.read(to, from, bytes);
}

void CudaRuntime::copy(int to_device, Address to, int from_device, Address from, size_t bytes) {
  Gpu& target = *unit(to_device).gpu;
  if (bytes == 0) return;
  if (to_device == from_device) {
    target.enter();
    return target.check(target.driver().copy(to, from, bytes, target.stream()), "copying");
  }
  Gpu& source = *unit(from_device).gpu;
  target.enter();
  source.enter();
  // The copy runs on the target's stream, after all that the source was given before, and whatever
  // comes to the source's later runs after the copy.
  const auto order = [&](Gpu& first, Gpu& second) {
    const Driver& driver = first.driver();
    Event event = nullptr;
    first.enter();
    first.check(driver.create_event(&event, kEventWithoutTime), "making an event");
    Result result = driver.record_event(event, first.stream());
    second.enter();
    if (result == Result::success) result = driver.let_stream_wait(second.stream(), event, 0);
    first.quietly([&](const Driver& d) { d.destroy_event(event); });  // once it has happened
    first.check(result, "ordering a copy");
  };
  order(source, target);
  target.enter();
  target.check(target.driver().copy_to_peer(to, target.context(), from, source.context(), bytes,
                                            target.stream()),
               "copying from another device");
  order(target, source);
}

std::shared_ptr<runtime::Program> CudaRuntime::find(int device, const runtime::Recipe& recipe) {
  const Unit& u = unit(device);
  u.gpu->check_usable();
  if (!keeps(recipe)) return nullptr;
  const std::string& target = devices_[size_t(device)].capabilities.target;
  auto found = options_.cache->find(cache_key(recipe, target));
  if (!found) return nullptr;
  return std::make_shared<Program>(u.gpu, std::move(found->source), found->report,
                                   std::move(found->code));
}

std::shared_ptr<runtime::Program> CudaRuntime::compile(int device, const runtime::Recipe& recipe) {
  if (auto found = find(device, recipe)) return found;
  const std::string& target = devices_[size_t(device)].capabilities.target;
  runtime::Source source = recipe.make();
  log(4, "source of \"{}\" for {}:\n{}", source.label, target, source.text);
  const auto begin = std::chrono::steady_clock::now();
  Compiled compiled = nvrtc_->compile(source, target);
  log(3, "compiled \"{}\" for {} in {:.0f} ms: {} registers, {} bytes spilled", source.label,
      target,
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(),
      compiled.report.registers, compiled.report.spilled_bytes);
  if (keeps(recipe)) {
    runtime::CompiledCode code{source, compiled.report, target, compiled.code};
    code.source.text.clear();
    options_.cache->keep(cache_key(recipe, target), code);
  }
  return std::make_shared<Program>(unit(device).gpu, std::move(source), compiled.report,
                                   std::move(compiled.code));
}

void CudaRuntime::launch(int device, const runtime::Program& compiled, runtime::Grid grid,
                         std::span<const uint64_t> arguments) {
  Gpu& gpu = *unit(device).gpu;
  const Program& program = static_cast<const Program&>(compiled);
  const runtime::Source& source = program.source;
  FORNAX_CHECK(program.gpu().get() == &gpu);
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  if (under_way && under_way->gpu().get() == &gpu) {
    const uint32_t last = uint32_t(under_way->size()) - 1;
    return record(device, compiled, grid, arguments, {&last, under_way->size() > 0 ? 1u : 0u});
  }
  gpu.enter();
  const Function function = program.function();
  const Ranges::Range range(ranges_, source.label);
  Parameters parameters(source.parameters, arguments);
  static constexpr LaunchAttribute kEarly = LaunchAttribute::early();
  const LaunchConfig config{{grid[0], grid[1], grid[2]},
                            {unsigned(source.threads), 1, 1},
                            unsigned(source.shared_bytes),
                            gpu.stream(),
                            &kEarly,
                            source.waits};
  const Result result = gpu.driver().launch(&config, function, parameters.get(), nullptr);
  if (result != Result::success) [[unlikely]] {
    gpu.failed(result, fmt::format("launching \"{}\" with {} x {} x {} blocks of {} threads and {} "
                                   "bytes of shared memory",
                                   source.label, grid[0], grid[1], grid[2], source.threads,
                                   source.shared_bytes));
  }
  gpu.note_launch(program.label());
}

runtime::TensorMap CudaRuntime::tensor_map(int device, const runtime::TensorMapRequest& r) {
  Gpu& gpu = *unit(device).gpu;
  FORNAX_CHECK(r.rank >= 2 && r.rank <= 4);
  FORNAX_CHECK(r.base % 16 == 0);
  FORNAX_CHECK(!r.swizzle || r.box[0] * unsigned(r.element_bytes) <= 128);
  for (int i = 0; i < r.rank; i++) FORNAX_CHECK(r.box[size_t(i)] > 0 && r.box[size_t(i)] <= 256);
  for (int i = 0; i + 1 < r.rank; i++) FORNAX_CHECK(r.pitches[size_t(i)] % 16 == 0);
  const TensorMapType type = r.element_bytes == 1   ? TensorMapType::u8
                             : r.element_bytes == 2 ? TensorMapType::u16
                             : r.element_bytes == 8 ? TensorMapType::f64
                             : r.tf32               ? TensorMapType::tf32
                                                    : TensorMapType::f32;
  const std::array<uint32_t, 4> steps = {1, 1, 1, 1};
  gpu.enter();
  runtime::TensorMap map;
  gpu.check(gpu.driver().encode_tensor_map(
                &map, type, uint32_t(r.rank), reinterpret_cast<void*>(r.base), r.extents.data(),
                r.pitches.data(), r.box.data(), steps.data(), 0,
                r.swizzle ? TensorMapSwizzle::bytes128 : TensorMapSwizzle::none,
                kTensorMapPromotion256, 0),
            "describing a matrix to the copy engine");
  return map;
}

void CudaRuntime::synchronize(int device) { waiting(device).gpu->wait(); }

std::unique_ptr<runtime::Mark> CudaRuntime::mark(int device) {
  Unit& u = unit(device);
  u.gpu->enter();
  return std::make_unique<Mark>(u.gpu);
}

double CudaRuntime::milliseconds(const runtime::Mark& from, const runtime::Mark& to) {
  const Mark& begin = static_cast<const Mark&>(from);
  const Mark& end = static_cast<const Mark&>(to);
  Gpu& gpu = *end.gpu;
  FORNAX_CHECK(begin.gpu == end.gpu);
  check_not_recording(gpu);
  gpu.enter();
  gpu.check(gpu.driver().wait_for_event(begin.event), "waiting for a mark");
  gpu.check(gpu.driver().wait_for_event(end.event), "waiting for a mark");
  float milliseconds = 0;
  gpu.check(gpu.driver().elapsed(&milliseconds, begin.event, end.event), "taking a time");
  return double(milliseconds);
}

void CudaRuntime::begin_recording(int device) {
  Unit& u = unit(device);
  FORNAX_CHECK(!under_way);
  u.gpu->enter();
  under_way = std::make_unique<Recording>(u.gpu);
}

void CudaRuntime::record(int device, const runtime::Program& compiled, runtime::Grid grid,
                         std::span<const uint64_t> arguments, std::span<const uint32_t> after) {
  Gpu& gpu = *unit(device).gpu;
  const Program& program = static_cast<const Program&>(compiled);
  FORNAX_CHECK(under_way && under_way->gpu().get() == &gpu);
  FORNAX_CHECK(program.gpu().get() == &gpu);
  gpu.enter();
  Parameters parameters(program.source.parameters, arguments);
  under_way->add(program,
                 {.function = program.function(),
                  .grid = {grid[0], grid[1], grid[2]},
                  .block = {unsigned(program.source.threads), 1, 1},
                  .shared_bytes = unsigned(program.source.shared_bytes),
                  .parameters = parameters.get()},
                 after);
}

std::unique_ptr<runtime::Recording> CudaRuntime::end_recording(int device) {
  Unit& u = unit(device);
  FORNAX_CHECK(under_way && under_way->gpu() == u.gpu);
  std::unique_ptr<Recording> recording = std::move(under_way);
  u.gpu->enter();
  recording->finish();
  return recording;
}

void CudaRuntime::run(int device, const runtime::Recording& recorded) {
  Gpu& gpu = *unit(device).gpu;
  const Recording& recording = static_cast<const Recording&>(recorded);
  FORNAX_CHECK(recording.gpu().get() == &gpu);
  gpu.enter();
  const Ranges::Range range(ranges_, *recording.label());
  gpu.check(gpu.driver().launch_graph(recording.exec(), gpu.stream()), "running a recording");
  gpu.note_launch(recording.label());
}

void CudaRuntime::change(int device, runtime::Recording& recorded, size_t launch,
                         std::span<const uint64_t> arguments) {
  unit(device).gpu->enter();
  static_cast<Recording&>(recorded).change(launch, arguments);
}

}  // namespace fornax::cuda
