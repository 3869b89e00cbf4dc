// Files of tensors: safetensors, modules saved and loaded by path, and checkpoints.
//
// Reading trusts nothing: every number in a file is checked before memory is taken or touched, and
// all errors are Error(io) that name the file and, where one is to blame, the tensor.  Writing is
// atomic: readers see the old file or the new one, also after a crash.
#pragma once
#include <fornax/module.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fornax::io {

using Metadata = std::vector<std::pair<std::string, std::string>>;  // in the order of the file

struct SafetensorsOptions {
  size_t header_limit = 100'000'000;  // bytes of the header that are read at the most
  bool allow_trailing = false;        // ignore bytes after the last tensor
};

// One tensor of a file.
struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // of its bytes, from the start of the data
};

// An open file, mapped to memory; only tensors that are asked for are read.  Safe from any thread.
class Safetensors {
 public:
  explicit Safetensors(const std::string& path, SafetensorsOptions o = {});
  Safetensors(Safetensors&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  Safetensors& operator=(Safetensors&&) = delete;
  ~Safetensors();

  const std::vector<Entry>& entries() const;  // in the order of their bytes
  const Metadata& metadata() const;
  std::optional<std::string> metadata(std::string_view key) const;
  bool contains(std::string_view name) const;
  // Error(io): no such tensor; names some that there are.
  Tensor read(std::string_view name, Device device = {}) const;
  // All tensors whose names start with `prefix`, without it.
  State state(std::string_view prefix = "", Device device = {}) const;

 private:
  struct File;
  File* file_;
};

State read_safetensors(const std::string& path, Device device = {}, SafetensorsOptions o = {});
// Error(value): two tensors of one name.
void write_safetensors(const std::string& path, const State& state, const Metadata& metadata = {});

// Writes `bytes` to a new file beside `path`, puts it on the disk and renames it to `path`.
void write_file(const std::string& path, const std::vector<std::string_view>& parts);

// ── Modules ──────────────────────────────────────────────────────────────────────────────────────
template <Module M>
void save(const M& module, const std::string& path, const Metadata& metadata = {}) {
  write_safetensors(path, state_of(module), metadata);
}
// Error(value): the file's tensors are not exactly the module's; all differences are named.
template <Module M>
LoadReport load(M& module, const std::string& path, LoadOptions o = {}) {
  return load_state(module, read_safetensors(path, Device("cpu")), o);
}

// ── Checkpoints: a model, its optimizer and where the run stands, in one file ────────────────────
struct RunState {
  int64_t epoch = 0, step = 0;  // done so far
  uint64_t seed = 0;
};
void write_checkpoint(const std::string& path, const State& model, const State& optimizer,
                      const RunState& run);
struct CheckpointParts {
  State model, optimizer;
  RunState run;
};
CheckpointParts read_checkpoint(const std::string& path);

template <Module M, class Optimizer>
void save_checkpoint(const std::string& path, const M& module, const Optimizer& optimizer,
                     const RunState& run) {
  write_checkpoint(path, state_of(module), optimizer.state(), run);
}
template <Module M, class Optimizer>
RunState load_checkpoint(const std::string& path, M& module, Optimizer& optimizer) {
  const CheckpointParts parts = read_checkpoint(path);
  load_state(module, parts.model);
  optimizer.load_state(parts.optimizer);
  return parts.run;
}

}  // namespace fornax::io
