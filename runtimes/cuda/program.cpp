#include "runtimes/cuda/program.h"

#include <fmt/format.h>

namespace fornax::cuda {

Program::Program(std::shared_ptr<Gpu> gpu, runtime::Source from, runtime::Report said,
                 std::string code)
    : gpu_(std::move(gpu)), label_(gpu_->label(from.label)), code_(std::move(code)) {
  source = std::move(from);
  report = said;
}

Function Program::function() const {
  load_once_([this] { load(); });
  return function_;
}

void Program::load() const {
  const Driver& driver = gpu_->driver();
  const auto check = [&](Result result, const char* what) {
    if (result == Result::success) return;
    gpu_->failed(result, fmt::format("{} \"{}\"{}", what, source.label,
                                     result == Result::invalid_image
                                         ? " (fornax cache clear has it compiled anew)"
                                         : ""));
  };
  Module module = nullptr;
  check(driver.load_module(&module, code_.data()), "loading");
  auto loaded = std::make_shared<LoadedModule>(gpu_, module);
  Function function = nullptr;
  check(driver.find_function(&function, module, source.entry.c_str()), "finding the entry of");
  if (source.shared_bytes > 0) {
    check(driver.set_function_attribute(function, FunctionAttribute::shared_bytes,
                                        int(source.shared_bytes)),
          "giving shared memory to");
  }
  function_ = function;
  module_ = std::move(loaded);
  code_ = {};
}

Mark::Mark(std::shared_ptr<Gpu> owner) : gpu(std::move(owner)) {
  gpu->check(gpu->driver().create_event(&event, 0), "making an event");
  const Result result = gpu->driver().record_event(event, gpu->stream());
  if (result == Result::success) return;
  gpu->quietly([&](const Driver& driver) { driver.destroy_event(event); });
  gpu->failed(result, "recording an event");
}

Mark::~Mark() {
  gpu->quietly([&](const Driver& driver) { driver.destroy_event(event); });
}

Recording::~Recording() {
  gpu->quietly([&](const Driver& driver) { driver.destroy_graph_exec(exec); });
}

Capture::Capture(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  const Driver& driver = gpu_->driver();
  gpu_->check(driver.create_stream(&stream_, kStreamNonBlocking), "making a stream");
  const Result result = driver.begin_capture(stream_, CaptureMode::relaxed);
  open_ = result == Result::success;
  if (open_) return;
  gpu_->quietly([&](const Driver& d) { d.destroy_stream(stream_); });
  gpu_->failed(result, "beginning a recording");
}

Capture::~Capture() {
  gpu_->quietly([&](const Driver& driver) {
    Graph graph = nullptr;
    if (open_ && driver.end_capture(stream_, &graph) == Result::success && graph) {
      driver.destroy_graph(graph);
    }
    driver.destroy_stream(stream_);
  });
}

void Capture::note(const Program& program) {
  modules_.push_back(program.module());
  if (launches_++ == 0) first_ = program.source.label;
}

std::unique_ptr<Recording> Capture::end() {
  Graph graph = nullptr;
  open_ = false;
  gpu_->check(gpu_->driver().end_capture(stream_, &graph), "ending a recording");
  auto recording = std::make_unique<Recording>(gpu_, instantiate(graph));
  recording->modules = std::move(modules_);
  recording->label =
      gpu_->label(fmt::format("a recording of {} launches, the first {}", launches_, first_));
  return recording;
}

GraphExec Capture::instantiate(Graph graph) {
  GraphExec exec = nullptr;
  const Result result = gpu_->driver().instantiate(&exec, graph, 0);
  gpu_->quietly([&](const Driver& driver) { driver.destroy_graph(graph); });
  gpu_->check(result, "making a recording ready");
  return exec;
}

}  // namespace fornax::cuda
