// A runtime whose device is described as one of compute 90 and runs nothing: what would be compiled
// and launched there can be looked at, and is compiled where NVIDIA's compiler is found.  For
// tests.
#pragma once
#include <mutex>
#include <vector>

#include "base/settings.h"
#include "runtime/runtime.h"
#include "runtimes/cuda/nvrtc.h"

namespace fornax::test {

class Compute90 : public runtime::Runtime {
 public:
  static constexpr int kProcessors = 132;

  // What was compiled, on whatever thread; a report has -1 where there is no compiler.
  std::vector<runtime::Program> programs() {
    std::lock_guard lock(mutex_);
    return programs_;
  }
  std::vector<runtime::Grid> grids;  // of the launches

  static runtime::RuntimeDevice described() {
    runtime::RuntimeDevice device;
    device.name = device.description = "compute 90";
    runtime::Capabilities& can = device.capabilities;
    can.language = runtime::Language::cuda;
    can.target = kTarget, can.compute = 90;
    can.processors = kProcessors, can.shared_bytes = 227 << 10;
    return device;
  }

  std::string_view name() const override { return "compute 90"; }
  const std::vector<runtime::RuntimeDevice>& devices(std::string&) override { return devices_; }
  std::shared_ptr<runtime::Program> find(int, const runtime::Recipe&) override { return nullptr; }
  std::shared_ptr<runtime::Program> compile(int, const runtime::Recipe& recipe) override {
    const auto program = std::make_shared<runtime::Program>();
    program->source = recipe.make();
    if (nvrtc_) program->report = nvrtc_->compile(program->source, kTarget).report;
    std::lock_guard lock(mutex_);
    programs_.push_back(*program);
    return program;
  }
  void launch(int, const runtime::Program&, runtime::Grid grid,
              std::span<const uint64_t>) override {
    grids.push_back(grid);
  }
  runtime::TensorMap tensor_map(int, const runtime::TensorMapRequest&) override { return {}; }

  // Addresses that nobody touches.
  runtime::Address allocate(int, size_t bytes) override {
    constexpr size_t kAlignment = 256;
    const runtime::Address made = next_;
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return made;
  }
  void release(int, runtime::Address) noexcept override {}
  runtime::MemoryUse memory(int) override { return {}; }
  void trim(int) override {}
  void write(int, runtime::Address, const void*, size_t) override {}
  void read(int, void*, runtime::Address, size_t) override {}
  void copy(int, runtime::Address, int, runtime::Address, size_t) override {}
  void synchronize(int) override {}
  std::unique_ptr<runtime::Mark> mark(int) override { return nullptr; }
  double milliseconds(const runtime::Mark&, const runtime::Mark&) override { return 0; }
  void begin_recording(int) override {}
  void record(int, const runtime::Program&, runtime::Grid, std::span<const uint64_t>,
              std::span<const uint32_t>) override {}
  std::unique_ptr<runtime::Recording> end_recording(int) override { return nullptr; }
  void run(int, const runtime::Recording&) override {}
  void change(int, runtime::Recording&, size_t, std::span<const uint64_t>) override {}

 private:
  static constexpr const char* kTarget = "sm_90a";
  static constexpr int kDriver = 13000;  // newer than the target

  const std::vector<runtime::RuntimeDevice> devices_{described()};
  std::string absence_;
  const std::shared_ptr<const cuda::Nvrtc> nvrtc_ =
      cuda::Nvrtc::load(settings().nvrtc, kDriver, absence_);
  runtime::Address next_ = uint64_t(1) << 32;
  std::mutex mutex_;
  std::vector<runtime::Program> programs_;
};

}  // namespace fornax::test
