// Compiled code on disk, for all processes of a user: one SQLite file with a row per program.
//
// A cache never makes a program fail.  A store that is broken, full or cannot be written is logged
// once, and the process goes on without it; only those calls that a person asks for throw.  What
// was killed in the middle leaves the store as it was before, and damaged code is not found.
//
// Thread-safety: every function may be called from several threads at once, and beside other
// processes.  A child of fork() goes without.
#pragma once
#include <fornax/cache.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "runtime/runtime.h"

namespace fornax::runtime {

class Database;

struct CompiledCode {
  Source source;  // without its text
  Report report;
  std::string target, code;
};

struct CodeCacheOptions {
  std::string folder;                // made where it is missing; empty: nothing is kept
  int64_t most_bytes = 512 << 20;    // of code; the least recently used goes first
  int64_t note_use_after = 3600000;  // a use is worth a write when the last is so many ms ago
};

class CodeCache {
 public:
  explicit CodeCache(CodeCacheOptions options);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // Reads only: uses are noted with the next keep, or by note_uses.
  std::optional<CompiledCode> find(const Hash128& key) noexcept;
  void keep(const Hash128& key, const CompiledCode& code) noexcept;
  void note_uses() noexcept;

  // As in fornax/cache.h.
  std::vector<cache::Entry> list();
  int64_t clear();
  int64_t export_to(const std::string& path);
  int64_t import_from(const std::string& path);
  const std::string& path() const { return path_; }

 private:
  enum class State { unopened, open, read_only, unusable };

  bool usable();  // opens the database where it is not yet
  void open();
  template <class Work>
  void quietly(Work work) noexcept;
  template <class Work>
  auto loudly(const std::string& what, Work work);
  void go_without(State state, const std::string& why);
  void write_uses(int64_t now);
  void evict();

  const CodeCacheOptions options_;
  const std::string path_;
  const pid_t process_;
  std::mutex mutex_;  // of what follows
  State state_ = State::unopened;
  std::unique_ptr<Database> database_;
  std::map<std::string, int64_t> uses_;  // by key
};

// The one of this process, by the settings `cache` and `cache_bytes`.
CodeCache& code_cache();

}  // namespace fornax::runtime
