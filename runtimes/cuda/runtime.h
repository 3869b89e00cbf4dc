// The runtime of NVIDIA's GPUs, over the CUDA driver and NVRTC, both opened when devices are first
// asked for.  One stream per device carries all of its work, so whatever is called later happens
// later.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/code_cache.h"
#include "runtimes/cuda/nvrtc.h"
#include "runtimes/cuda/program.h"
#include "runtimes/cuda/ranges.h"
#include "runtimes/cuda/staging.h"

namespace fornax::cuda {

struct RuntimeOptions {
  std::string driver, nvrtc;            // paths; empty: where they always are
  runtime::CodeCache* cache = nullptr;  // outlives the runtime; nullptr: code is not kept
  std::string nvtx = {};                // as the other paths
};

class CudaRuntime final : public runtime::Runtime {
 public:
  explicit CudaRuntime(RuntimeOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "cuda"; }
  const std::vector<runtime::RuntimeDevice>& devices(std::string& absence) override;

  Address allocate(int device, size_t bytes) override;
  void release(int device, Address memory) noexcept override;
  runtime::MemoryUse memory(int device) override;
  void trim(int device) override;
  void write(int device, Address to, const void* from, size_t bytes) override;
  void read(int device, void* to, Address from, size_t bytes) override;
  void copy(int to_device, Address to, int from_device, Address from, size_t bytes) override;

  std::shared_ptr<runtime::Program> find(int device, const runtime::Recipe& recipe) override;
  std::shared_ptr<runtime::Program> compile(int device, const runtime::Recipe& recipe) override;
  void launch(int device, const runtime::Program& program, runtime::Grid grid,
              std::span<const uint64_t> arguments) override;
  runtime::TensorMap tensor_map(int device, const runtime::TensorMapRequest& request) override;
  void synchronize(int device) override;

  std::unique_ptr<runtime::Mark> mark(int device) override;
  double milliseconds(const runtime::Mark& from, const runtime::Mark& to) override;
  void begin_recording(int device) override;
  void record(int device, const runtime::Program& program, runtime::Grid grid,
              std::span<const uint64_t> arguments, std::span<const uint32_t> after) override;
  std::unique_ptr<runtime::Recording> end_recording(int device) override;
  void run(int device, const runtime::Recording& recording) override;
  void change(int device, runtime::Recording& recording, size_t launch,
              std::span<const uint64_t> arguments) override;

 private:
  struct Unit {
    explicit Unit(std::shared_ptr<Gpu> owner) : gpu(std::move(owner)), staging(*gpu) {}
    std::shared_ptr<Gpu> gpu;
    Staging staging;
  };

  void find();
  bool open_libraries();
  void add_device(int ordinal);
  Unit& unit(int device);
  Unit& waiting(int device);
  bool keeps(const runtime::Recipe& recipe) const { return options_.cache && !recipe.key.empty(); }
  Hash128 cache_key(const runtime::Recipe& recipe, const std::string& target) const {
    return hash128(recipe.key, target, nvrtc_->version());
  }

  const RuntimeOptions options_;
  Once find_once_;  // what follows does not change afterwards
  std::shared_ptr<const Driver> driver_;
  std::shared_ptr<const Nvrtc> nvrtc_;
  Ranges ranges_;
  std::vector<runtime::RuntimeDevice> devices_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::string absence_;
};

}  // namespace fornax::cuda
