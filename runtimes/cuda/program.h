// What lives on a GPU beside memory: programs, marks and recordings.  Each keeps its GPU.
//
// Thread-safety: a program may be launched from several threads at once; marks and recordings are
// not changed after they were made.
#pragma once
#include <memory>
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

struct Recording final : runtime::Recording {
  Recording(std::shared_ptr<Gpu> owner, GraphExec graph) : gpu(std::move(owner)), exec(graph) {}
  ~Recording() override;
  const std::shared_ptr<Gpu> gpu;
  const GraphExec exec;
  std::vector<std::shared_ptr<LoadedModule>> modules;
  const std::string* label = nullptr;
};

// A recording under way, on a stream of its own: other threads' launches run meanwhile.
class Capture {
 public:
  explicit Capture(std::shared_ptr<Gpu> gpu);  // the GPU is entered
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void note(const Program& program);
  std::unique_ptr<Recording> end();
  Stream stream() const { return stream_; }
  const std::shared_ptr<Gpu>& gpu() const { return gpu_; }

 private:
  GraphExec instantiate(Graph graph);

  const std::shared_ptr<Gpu> gpu_;
  Stream stream_ = nullptr;
  bool open_ = false;
  size_t launches_ = 0;
  std::string first_;
  std::vector<std::shared_ptr<LoadedModule>> modules_;
};

}  // namespace fornax::cuda
