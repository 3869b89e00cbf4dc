// Files written so that nobody ever sees half of one, and checkpoints on top.
#include <fcntl.h>
#include <fornax/io.h>
#include <fornax/ops.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace fornax::io {
namespace {

// A new file beside its place, removed unless it gets there.
class Draft {
 public:
  explicit Draft(const std::string& path) : path_(path), draft_(path + ".XXXXXX") {
    descriptor_ = mkostemp(draft_.data(), O_CLOEXEC);
    if (descriptor_ < 0) refuse("create a file beside");
    fchmod(descriptor_, 0644);
  }
  ~Draft() {
    if (descriptor_ >= 0) {
      close(descriptor_);
      unlink(draft_.c_str());
    }
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) refuse("write");
      bytes.remove_prefix(size_t(count));
    }
  }

  void put_in_place() {
    if (fsync(descriptor_) != 0) refuse("put on the disk");
    if (rename(draft_.c_str(), path_.c_str()) != 0) refuse("replace");
    close(std::exchange(descriptor_, -1));
    // The new name is on the disk when its folder is.
    const size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
      fsync(directory);
      close(directory);
    }
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorKind::io, "write_file: cannot {} {}: {}", what, path_, std::strerror(errno));
  }

  std::string path_, draft_;
  int descriptor_ = -1;
};

constexpr std::string_view kModel = "model.", kOptimizer = "optimizer.";
constexpr const char* kKind = "fornax-checkpoint-1";

uint64_t number(const Safetensors& file, const std::string& path, const char* key) {
  const std::string text = file.metadata(key).value_or("");
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    fail(ErrorKind::io, "checkpoint: {} has the {} \"{}\", which is not a number", path, key, text);
  }
  return value;
}

}  // namespace

void write_file(const std::string& path, const std::vector<std::string_view>& parts) {
  Draft draft(path);
  for (const std::string_view part : parts) draft.write(part);
  draft.put_in_place();
}

void write_checkpoint(const std::string& path, const State& model, const State& optimizer,
                      const RunState& run) {
  State all;
  for (const NamedTensor& item : model) {
    all.push_back({std::string(kModel) + item.path, item.value});
  }
  for (const NamedTensor& item : optimizer) {
    all.push_back({std::string(kOptimizer) + item.path, item.value});
  }
  write_safetensors(path, all,
                    {{"format", kKind},
                     {"epoch", std::to_string(run.epoch)},
                     {"step", std::to_string(run.step)},
                     {"seed", std::to_string(run.seed)}});
}

CheckpointParts read_checkpoint(const std::string& path) {
  const Safetensors file(path);
  if (file.metadata("format") != kKind) {
    fail(ErrorKind::io, "checkpoint: {} holds tensors but is not a checkpoint; load() reads it",
         path);
  }
  const Device cpu("cpu");
  return {file.state(kModel, cpu),
          file.state(kOptimizer, cpu),
          {int64_t(number(file, path, "epoch")), int64_t(number(file, path, "step")),
           number(file, path, "seed")}};
}

}  // namespace fornax::io
