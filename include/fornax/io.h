// Files of tensors: safetensors, modules saved and loaded by path, and checkpoints.
//
// Reading trusts nothing: every number in a file is checked before memory is taken or touched, and
// all errors are Error(io) that name the file and, where one is to blame, the tensor.  Writing is
// atomic: readers see the old file or the new one, also after a crash.
#pragma once
#include <fornax/module.h>
#include <fornax/random.h>

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
  explicit Safetensors(const std::string& path, SafetensorsOptions o = {},
                       Site site = Site::here());
  Safetensors(Safetensors&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  Safetensors& operator=(Safetensors&&) = delete;
  ~Safetensors();

  const std::vector<Entry>& entries() const;  // in the order of their bytes
  const Metadata& metadata() const;
  std::optional<std::string> metadata(std::string_view key) const;
  bool contains(std::string_view name) const;
  // Error(io): no such tensor; names some that there are.
  Tensor read(std::string_view name, Device device = {}, Site site = Site::here()) const;
  // All tensors whose names start with `prefix`, without it.
  State state(std::string_view prefix = "", Device device = {}, Site site = Site::here()) const;

 private:
  struct File;
  File* file_;
};

State read_safetensors(const std::string& path, Device device = {}, SafetensorsOptions o = {},
                       Site site = Site::here());
// Error(value): two tensors of one name, one that is undefined, two metadata of one key.
void write_safetensors(const std::string& path, const State& state, const Metadata& metadata = {},
                       Site site = Site::here());

// Writes `parts` to a new file beside `path`, puts it on the disk and renames it to `path`.  What a
// symbolic link names is replaced, not the link; a file that is replaced keeps its permissions.
// Error(io): it cannot be written; `path` is something else than a file.
void write_file(const std::string& path, const std::vector<std::string_view>& parts,
                Site site = Site::here());
// What write_file() would refuse before its first byte, to be told before work begins.
void check_writable(const std::string& path, Site site = Site::here());

// ── Modules ──────────────────────────────────────────────────────────────────────────────────────
template <Module M>
void save(const M& module, const std::string& path, const Metadata& metadata = {},
          Site site = Site::here()) {
  write_safetensors(path, state_of(module), metadata, site);
}
// Error(value): the file's tensors are not exactly the module's; all differences are named.
template <Module M>
LoadReport load(M& module, const std::string& path, LoadOptions o = {}, Site site = Site::here()) {
  return load_state(module, read_safetensors(path, Device("cpu"), {}, site), o, site);
}

// ── Checkpoints: a model, its optimizer and where the run stands, in one file ────────────────────
struct RunState {
  int64_t epoch = 0, step = 0;  // done so far; not negative
  uint64_t seed = 0;
  Metadata options = {};  // what else the run depends on, for the program to compare
};
struct CheckpointParts {
  State model, optimizer;
  RunState run;
  RandomState random;  // of the model's device
};
void write_checkpoint(const std::string& path, const CheckpointParts& parts,
                      Site site = Site::here());
CheckpointParts read_checkpoint(const std::string& path, Site site = Site::here());

// Where the leaves are; the default device where there are none.
Device device_of(const Leaves& leaves);

// The random numbers of the module's device are part of a checkpoint: loading it makes dropout and
// the like go on as they would have.
template <Module M, class Optimizer>
void save_checkpoint(const std::string& path, const M& module, const Optimizer& optimizer,
                     const RunState& run, Site site = Site::here()) {
  write_checkpoint(
      path, {state_of(module), optimizer.state(), run, random_state(device_of(leaves(module)))},
      site);
}
template <Module M, class Optimizer>
RunState load_checkpoint(const std::string& path, M& module, Optimizer& optimizer,
                         Site site = Site::here()) {
  const CheckpointParts parts = read_checkpoint(path, site);
  load_state(module, parts.model, {}, site);
  if constexpr (requires { optimizer.load_state(parts.optimizer, site); }) {
    optimizer.load_state(parts.optimizer, site);
  } else {
    optimizer.load_state(parts.optimizer);
  }
  set_random_state(device_of(leaves(module)), parts.random);
  return parts.run;
}

}  // namespace fornax::io
