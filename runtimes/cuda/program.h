// What lives on a GPU beside memory: programs, marks and recordings.  Each keeps its GPU.
//
// Thread-safety: a program may be launched from several threads at once; marks and recordings are
// not changed after they were made.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtimes/cuda/gpu.h"

namespace fornax::cuda {

// Machine code on the device.
struct LoadedModule {
  LoadedModule(std::shared_ptr<Gpu> gpu, Module module) : gpu(std::move(gpu)), module(module) {}
  ~LoadedModule() { gpu->retire(module); }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  const std::shared_ptr<Gpu> gpu;
  const Module module;
};

// Loaded by the first launch: until then nothing needs a context.
class Program final : public runtime::Program {
 public:
  Program(std::shared_ptr<Gpu> gpu, runtime::Source source, runtime::Report report,
          std::string code);
  Function function() const;  // the GPU is entered

  const std::shared_ptr<Gpu>& gpu() const { return gpu_; }
  const std::shared_ptr<LoadedModule>& module() const { return module_; }  // after function()
  const std::string* label() const { return label_; }

 private:
  void load() const;

  const std::shared_ptr<Gpu> gpu_;
  const std::string* const label_;
  mutable Once load_once_;
  mutable std::string code_;  // until it is loaded
  mutable std::shared_ptr<LoadedModule> module_;
  mutable Function function_ = nullptr;
};

struct Mark final : runtime::Mark {
  explicit Mark(std::shared_ptr<Gpu> owner);  // the GPU is entered
  ~Mark() override;
  const std::shared_ptr<Gpu> gpu;
  Event event = nullptr;
};

// Launches as nodes of a graph: made launch by launch, finished, then run and changed.
class Recording final : public runtime::Recording {
 public:
  explicit Recording(std::shared_ptr<Gpu> gpu);  // the GPU is entered
  ~Recording() override;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void add(const Program& program, LaunchNode launch, std::span<const uint32_t> after);
  size_t size() const { return parts_.size(); }
  void finish();
  void change(size_t launch, std::span<const uint64_t> arguments);

  const std::shared_ptr<Gpu>& gpu() const { return gpu_; }
  GraphExec exec() const { return exec_; }             // when finished
  const std::string* label() const { return label_; }  // when finished

 private:
  struct Part {
    GraphNode node;
    LaunchNode launch;
    std::vector<runtime::ParameterKind> parameters;
    std::shared_ptr<LoadedModule> module;
  };

  const std::shared_ptr<Gpu> gpu_;
  Graph graph_ = nullptr;
  GraphExec exec_ = nullptr;
  std::vector<Part> parts_;
  std::string first_;
  const std::string* label_ = nullptr;
};

constexpr size_t kMostParameters = 1024;  // 4 KiB of words, which every device takes

// Arguments as the driver takes them.
class Parameters {
 public:
  Parameters(std::span<const runtime::ParameterKind> kinds, std::span<const uint64_t> arguments);
  void** get() { return pointers_; }

 private:
  void* pointers_[kMostParameters];  // of a number, the address of its low bytes
};

}  // namespace fornax::cuda
