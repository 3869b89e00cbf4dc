#include "runtimes/cuda/program.h"

#include <fmt/core.h>

#include "base/error.h"

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

Parameters::Parameters(std::span<const runtime::ParameterKind> kinds,
                       std::span<const uint64_t> arguments) {
  FORNAX_CHECK(arguments.size() == kinds.size());
  FORNAX_CHECK(arguments.size() <= kMostParameters);
  for (size_t i = 0; i < arguments.size(); i++) {
    pointers_[i] = kinds[i] == runtime::ParameterKind::tensor_map
                       ? reinterpret_cast<void*>(arguments[i])
                       : const_cast<uint64_t*>(&arguments[i]);
  }
}

Recording::Recording(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  gpu_->check(gpu_->driver().create_graph(&graph_, 0), "beginning a recording");
}

Recording::~Recording() {
  gpu_->quietly([&](const Driver& driver) {
    if (exec_) driver.destroy_graph_exec(exec_);
    if (graph_) driver.destroy_graph(graph_);
  });
}

void Recording::add(const Program& program, LaunchNode launch, std::span<const uint32_t> after) {
  const Driver& driver = gpu_->driver();
  const bool early = program.source.waits && driver.add_dependency;
  std::vector<GraphNode> before;
  for (const uint32_t number : after) before.push_back(parts_[number].node);
  GraphNode node = nullptr;
  gpu_->check(driver.add_launch(&node, graph_, before.data(), early ? 0 : before.size(), &launch),
              "recording a launch");
  if (early && !before.empty()) {
    const std::vector<GraphNode> to(before.size(), node);
    const std::vector<Dependency> how(before.size(), Dependency::early());
    gpu_->check(driver.add_dependency(graph_, before.data(), to.data(), how.data(), before.size()),
                "ordering a launch");
  }
  launch.parameters = nullptr;
  if (parts_.empty()) first_ = program.source.label;
  parts_.push_back({node, launch, program.source.parameters, program.module()});
}

void Recording::finish() {
  gpu_->check(gpu_->driver().instantiate(&exec_, graph_, 0), "making a recording ready");
  label_ =
      gpu_->label(fmt::format("a recording of {} launches, the first {}", parts_.size(), first_));
}

void Recording::change(size_t number, std::span<const uint64_t> arguments) {
  const Part& part = parts_[number];
  Parameters parameters(part.parameters, arguments);
  LaunchNode launch = part.launch;
  launch.parameters = parameters.get();
  gpu_->check(gpu_->driver().change_launch(exec_, part.node, &launch), "changing a recording");
}

}  // namespace fornax::cuda
