// A device that is described as one of compute 90 and runs nothing: what would be compiled and
// launched there can be looked at, and is compiled where NVIDIA's compiler is found.  For tests.
#pragma once
#include <map>
#include <mutex>

#include "base/settings.h"
#include "runtimes/cuda/nvrtc.h"
#include "tests/cube/run.h"

namespace fornax::cube {

class Compute90 : public Watched {
 public:
  static constexpr int kProcessors = 132;

  // By the program's source.
  struct Compiled {
    runtime::Source source;
    runtime::Report report;  // -1 where there is no compiler
  };
  std::vector<Compiled> programs() {
    std::lock_guard lock(mutex_);
    return programs_;
  }
  std::vector<std::vector<uint64_t>> arguments;  // of the launches

  static runtime::RuntimeDevice described() {
    runtime::RuntimeDevice device;
    device.name = device.description = "compute 90";
    runtime::Capabilities& can = device.capabilities;
    can.language = runtime::Language::cuda;
    can.target = "sm_90a", can.compute = 90;
    can.processors = kProcessors, can.shared_bytes = 227 << 10;
    return device;
  }
  std::shared_ptr<runtime::Program> find(int, const runtime::Recipe&) override { return nullptr; }
  std::shared_ptr<runtime::Program> compile(int, const runtime::Recipe& recipe) override {
    const auto program = std::make_shared<runtime::Program>();
    program->source = recipe.make();
    if (nvrtc_) program->report = nvrtc_->compile(program->source, "sm_90a").report;
    std::lock_guard lock(mutex_);
    programs_.push_back({program->source, program->report});
    return program;
  }
  void launch(int, const runtime::Program&, runtime::Grid grid,
              std::span<const uint64_t> words) override {
    grids.push_back(grid);
    arguments.emplace_back(words.begin(), words.end());
  }
  runtime::TensorMap tensor_map(int, const runtime::TensorMapRequest&) override { return {}; }

 private:
  static constexpr int kDriver = 13000;
  std::string absence_;
  const std::shared_ptr<const cuda::Nvrtc> nvrtc_ =
      cuda::Nvrtc::load(settings().nvrtc, kDriver, absence_);
  std::mutex mutex_;
  std::vector<Compiled> programs_;
};

}  // namespace fornax::cube
