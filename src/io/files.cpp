// Files written so that nobody ever sees half of one, and checkpoints on top.
#include <fcntl.h>
#include <fornax/io.h>
#include <fornax/ops.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace fornax::io {
namespace {

// The file that is to be replaced: `path`, or what it names by symbolic links.
std::string target_of(std::string path) {
  constexpr int kMostLinks = 40;  // as the system follows
  for (int i = 0; i < kMostLinks; i++) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) return path;
    path = std::filesystem::path(path).parent_path() / next;
  }
  fail(ErrorKind::io, "write_file: {} names itself by symbolic links", path);
}

// A new file beside its place, removed unless it gets there.
class Draft {
 public:
  explicit Draft(const std::string& path) : path_(target_of(path)) {
    struct stat status;
    const bool exists = stat(path_.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
      fail(ErrorKind::io, "write_file: {} is not a file that could be replaced; name another path",
           path);
    }
    create();
    if (exists) fchmod(descriptor_, status.st_mode & 0777);
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
  // Not by mkstemp(), whose files ignore the user's umask.
  void create() {
    static std::atomic<unsigned> made = 0;
    do {
      draft_ = fmt::format("{}.{}-{}", path_, getpid(), made++);
      descriptor_ = open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) refuse("create a file beside");
  }
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

int64_t count(const Safetensors& file, const std::string& path, const char* key) {
  const uint64_t value = number(file, path, key);
  if (value > uint64_t(INT64_MAX)) {
    fail(ErrorKind::io, "checkpoint: {} has the {} {}, which is too large", path, key, value);
  }
  return int64_t(value);
}

// What the program's own options are called among the metadata.
constexpr std::string_view kOption = "option.";

Metadata options_of(const Safetensors& file) {
  Metadata options;
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(kOption)) options.emplace_back(key.substr(kOption.size()), value);
  }
  return options;
}

}  // namespace

void write_file(const std::string& path, const std::vector<std::string_view>& parts, Site site) {
  const Call call("write_file", site);
  Draft draft(path);
  for (const std::string_view part : parts) draft.write(part);
  draft.put_in_place();
}

void check_writable(const std::string& path, Site site) {
  const Call call("check_writable", site);
  const Draft draft(path);
}

Device device_of(const Leaves& leaves) {
  for (const Leaf& leaf : leaves) {
    if (leaf.tensor) return leaf.tensor->device();
  }
  return {};
}

void write_checkpoint(const std::string& path, const CheckpointParts& parts, Site site) {
  const Call call("write_checkpoint", site);
  const RunState& run = parts.run;
  if (run.epoch < 0 || run.step < 0) {
    fail(ErrorKind::value, "checkpoint: epoch is {} and step {}; they must not be negative",
         run.epoch, run.step);
  }
  State all;
  for (const NamedTensor& item : parts.model) {
    all.push_back({std::string(kModel) + item.path, item.value});
  }
  for (const NamedTensor& item : parts.optimizer) {
    all.push_back({std::string(kOptimizer) + item.path, item.value});
  }
  Metadata metadata = {{"format", kKind},
                       {"epoch", std::to_string(run.epoch)},
                       {"step", std::to_string(run.step)},
                       {"seed", std::to_string(run.seed)},
                       {"random_seed", std::to_string(parts.random.seed)},
                       {"random_counter", std::to_string(parts.random.counter)}};
  for (const auto& [key, value] : run.options) {
    metadata.emplace_back(std::string(kOption) + key, value);
  }
  write_safetensors(path, all, metadata);
}

CheckpointParts read_checkpoint(const std::string& path, Site site) {
  const Call call("read_checkpoint", site);
  const Safetensors file(path);
  if (file.metadata("format") != kKind) {
    fail(ErrorKind::io, "checkpoint: {} holds tensors but is not a checkpoint; load() reads it",
         path);
  }
  const Device cpu("cpu");
  return {file.state(kModel, cpu),
          file.state(kOptimizer, cpu),
          {count(file, path, "epoch"), count(file, path, "step"), number(file, path, "seed"),
           options_of(file)},
          {number(file, path, "random_seed"), number(file, path, "random_counter")}};
}

}  // namespace fornax::io
