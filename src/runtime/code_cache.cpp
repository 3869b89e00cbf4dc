#include "runtime/code_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "runtime/sqlite.h"

namespace fornax::runtime {
namespace {

// The number belongs to the columns: other versions of this library may use the same file.  The
// code comes last, so that reading the other columns does not read it.
#define FORNAX_TABLE "code_3"
#define FORNAX_COLUMNS                                                                  \
  "key, size, used, created, label, target, entry, threads, shared_bytes, parameters, " \
  "waits, registers, spilled_bytes, static_bytes, checksum, code"
constexpr const char* kCreate = "CREATE TABLE IF NOT EXISTS " FORNAX_TABLE
                                "(key BLOB PRIMARY KEY, size, used, created, label, target, entry, "
                                "threads, shared_bytes, parameters, waits, registers, "
                                "spilled_bytes, static_bytes, checksum, code)";
constexpr const char* kCreateIndex =
    "CREATE INDEX IF NOT EXISTS " FORNAX_TABLE "_used ON " FORNAX_TABLE "(used, size)";
constexpr const char* kInsert = " INTO " FORNAX_TABLE "(" FORNAX_COLUMNS
                                ") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)";
constexpr int kColumns = 16;

int64_t milliseconds_since_1970() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string bytes_of(const Hash128& key) {
  std::string bytes(sizeof key, '\0');
  std::memcpy(bytes.data(), &key, sizeof key);
  return bytes;
}

std::string text_of(const std::vector<ParameterKind>& kinds) {
  std::string text;
  for (const ParameterKind kind : kinds) text += char('0' + int(kind));
  return text;
}

int64_t checksum(const CompiledCode& c) {
  return int64_t(hash128(c.source.entry, text_of(c.source.parameters), c.code).low);
}

// What takes room beside the code.
int64_t size_of(const CompiledCode& c) {
  return int64_t(c.code.size() + c.source.label.size() + c.source.entry.size()) + 256;
}

CompiledCode read_row(const Statement& row) {
  CompiledCode found;
  found.source.label = row.bytes(4);
  found.target = row.bytes(5);
  found.source.entry = row.bytes(6);
  found.source.threads = int(row.integer(7));
  found.source.shared_bytes = size_t(row.integer(8));
  for (const char kind : row.bytes(9)) found.source.parameters.push_back(ParameterKind(kind - '0'));
  found.source.waits = row.integer(10) != 0;
  found.report = {int(row.integer(11)), int(row.integer(12)), int(row.integer(13))};
  found.code = row.bytes(15);
  return found;
}

void insert(Database& database, const std::string& key, const CompiledCode& c, int64_t now) {
  const std::string parameters = text_of(c.source.parameters);
  Statement statement(database, (std::string("INSERT OR REPLACE") + kInsert).c_str());
  statement.bind_blob(1, key).bind(2, size_of(c)).bind(3, now).bind(4, now);
  statement.bind(5, c.source.label).bind(6, c.target).bind(7, c.source.entry);
  statement.bind(8, int64_t(c.source.threads)).bind(9, int64_t(c.source.shared_bytes));
  statement.bind(10, parameters).bind(11, int64_t(c.source.waits));
  statement.bind(12, int64_t(c.report.registers)).bind(13, int64_t(c.report.spilled_bytes));
  statement.bind(14, int64_t(c.report.shared_bytes)).bind(15, checksum(c)).bind_blob(16, c.code);
  statement.step();
}

int64_t count_of(Database& database) {
  Statement statement(database, "SELECT count(*) FROM " FORNAX_TABLE);
  statement.step();
  return statement.integer(0);
}

// Write-ahead logging lets readers and a writer work at once.  The switch to it, once in the life
// of the file, needs the file alone and does not wait for that by itself.
void use_write_ahead_log(Database& database) {
  for (int attempt = 0;; attempt++) {
    try {
      return database.run("PRAGMA journal_mode = WAL");
    } catch (const DatabaseError& error) {
      if (!error.busy() || attempt == 200) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace

CodeCache::CodeCache(CodeCacheOptions options)
    : options_(std::move(options)),
      path_(options_.folder.empty() ? "" : options_.folder + "/code.db"),
      process_(getpid()) {}

CodeCache::~CodeCache() { note_uses(); }

void CodeCache::open() {
  std::error_code ignored;  // opening says it better
  std::filesystem::create_directories(options_.folder, ignored);
  database_ = std::make_unique<Database>(path_, Database::Mode::write);
  use_write_ahead_log(*database_);
  // Safe when a process is killed; when the machine is, the last rows may be lost.
  database_->run("PRAGMA synchronous = NORMAL");
  database_->run("PRAGMA journal_size_limit = 16777216");
  database_->run(kCreate);
  database_->run(kCreateIndex);
  state_ = State::open;
}

bool CodeCache::usable() {
  if (path_.empty()) return false;
  if (state_ == State::unopened) open();
  return state_ != State::unusable;
}

void CodeCache::go_without(State state, const std::string& why) {
  if (state_ >= state) return;
  state_ = state;
  log(1, "{}: {}; going on without {}", path_, why,
      state == State::read_only ? "writing to it" : "it (fornax cache clear makes it anew)");
}

// For what programs do by the way: an error costs the store, not the program.
template <class Work>
void CodeCache::quietly(Work work) noexcept {
  if (getpid() != process_) return;  // before the lock, which another thread may have held
  try {
    const std::lock_guard lock(mutex_);
    try {
      if (usable()) work();
    } catch (const DatabaseError& error) {
      if (error.busy()) return;
      const int code = error.code & 0xff;
      const bool writing = code == SQLITE_READONLY || code == SQLITE_FULL;
      go_without(writing && state_ != State::unopened ? State::read_only : State::unusable,
                 error.message);
    }
  } catch (const std::exception&) {  // no memory: the program is about to notice by itself
  }
}

// For what a person asked for.
template <class Work>
auto CodeCache::loudly(const std::string& what, Work work) {
  if (getpid() != process_) {
    fail(ErrorKind::io, "cache: {} is not usable in a child of fork(); start it with exec", path_);
  }
  if (path_.empty()) fail(ErrorKind::io, "cache: nothing is kept, as the setting cache is off");
  const std::lock_guard lock(mutex_);
  try {
    return work();
  } catch (const DatabaseError& error) {
    fail(ErrorKind::io, "cache: {} {}: {}", what, path_, error.message);
  }
}

std::optional<CompiledCode> CodeCache::find(const Hash128& key) noexcept {
  std::optional<CompiledCode> found;
  quietly([&] {
    const std::string bytes = bytes_of(key);
    Statement row(*database_, "SELECT " FORNAX_COLUMNS " FROM " FORNAX_TABLE " WHERE key = ?1");
    if (!row.bind_blob(1, bytes).step()) return;
    CompiledCode code = read_row(row);
    if (checksum(code) != row.integer(14)) return;
    const int64_t now = milliseconds_since_1970();
    if (now - row.integer(2) >= options_.note_use_after) uses_[bytes] = now;
    found = std::move(code);
  });
  return found;
}

void CodeCache::keep(const Hash128& key, const CompiledCode& code) noexcept {
  if (size_of(code) > options_.most_bytes) return;
  quietly([&] {
    if (state_ != State::open) return;
    const int64_t now = milliseconds_since_1970();
    Transaction transaction(*database_);
    write_uses(now);
    insert(*database_, bytes_of(key), code, now);
    evict();
    transaction.commit();
    uses_.clear();
  });
}

void CodeCache::note_uses() noexcept {
  quietly([&] {
    if (state_ != State::open || uses_.empty()) return;
    Transaction transaction(*database_);
    write_uses(milliseconds_since_1970());
    transaction.commit();
    uses_.clear();
  });
}

void CodeCache::write_uses(int64_t now) {
  Statement update(*database_, "UPDATE " FORNAX_TABLE " SET used = ?2 WHERE key = ?1");
  for (const auto& [key, used] : uses_) {
    update.bind_blob(1, key).bind(2, std::min(used, now)).step();
    update.again();
  }
}

// Down to 7/8 of what is allowed, so that not every row that comes pushes one out.
void CodeCache::evict() {
  Statement sum(*database_, "SELECT sum(size) FROM " FORNAX_TABLE);
  sum.step();
  int64_t bytes = sum.integer(0);
  if (bytes <= options_.most_bytes) return;
  Statement oldest(*database_, "SELECT rowid, size FROM " FORNAX_TABLE " ORDER BY used, rowid");
  std::vector<int64_t> rows;
  while (bytes > options_.most_bytes / 8 * 7 && oldest.step()) {
    rows.push_back(oldest.integer(0));
    bytes -= oldest.integer(1);
  }
  Statement remove(*database_, "DELETE FROM " FORNAX_TABLE " WHERE rowid = ?1");
  for (const int64_t row : rows) {
    remove.bind(1, row).step();
    remove.again();
  }
  log(5, "{}: {} programs made room", path_, rows.size());
}

std::vector<cache::Entry> CodeCache::list() {
  if (path_.empty()) return {};
  return loudly("reading", [&] {
    std::vector<cache::Entry> entries;
    if (!usable()) open();
    Statement row(*database_, "SELECT label, target, size, created, used FROM " FORNAX_TABLE
                              " ORDER BY used DESC, rowid DESC");
    while (row.step()) {
      entries.push_back({row.bytes(0), row.bytes(1), row.integer(2), row.integer(3) / 1000,
                         row.integer(4) / 1000});
    }
    return entries;
  });
}

int64_t CodeCache::clear() {
  if (path_.empty()) return 0;
  return loudly("clearing", [&]() -> int64_t {
    try {
      if (!usable()) open();
      const int64_t count = count_of(*database_);
      database_->run("DELETE FROM " FORNAX_TABLE);
      uses_.clear();
      sqlite3_exec(database_->handle(), "VACUUM", nullptr, nullptr, nullptr);  // best effort
      return count;
    } catch (const DatabaseError& error) {
      if (error.busy()) throw;
      database_.reset();
      for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path_ + suffix).c_str());
      open();
      return 0;
    }
  });
}

int64_t CodeCache::export_to(const std::string& path) {
  return loudly("exporting", [&] {
    if (!usable()) open();
    const std::string part = fmt::format("{}.{}", path, process_);  // renamed when it is whole
    std::remove(part.c_str());
    try {
      Statement statement(*database_, "VACUUM INTO ?1");
      statement.bind(1, std::string_view(part)).step();
      Database copy(part, Database::Mode::read);
      const int64_t count = count_of(copy);
      if (std::rename(part.c_str(), path.c_str()) != 0) {
        throw DatabaseError{SQLITE_CANTOPEN, fmt::format("{}: {}", path, std::strerror(errno))};
      }
      return count;
    } catch (const DatabaseError&) {
      std::remove(part.c_str());
      throw;
    }
  });
}

int64_t CodeCache::import_from(const std::string& path) {
  return loudly(fmt::format("importing {} into", path), [&] {
    if (!usable()) open();
    Database other(path, Database::Mode::read);
    Statement row(other, "SELECT " FORNAX_COLUMNS " FROM " FORNAX_TABLE);
    Transaction transaction(*database_);
    Statement statement(*database_, (std::string("INSERT OR IGNORE") + kInsert).c_str());
    int64_t count = 0;
    while (row.step()) {
      for (int i = 0; i < kColumns; i++) statement.bind_column(i + 1, row, i);
      statement.step();
      count += sqlite3_changes(database_->handle());
      statement.again();
    }
    evict();
    transaction.commit();
    return count;
  });
}

CodeCache& code_cache() {
  // Never destroyed: compiling threads may outlive static objects.
  static CodeCache* cache = [] {
    std::atexit([] { code_cache().note_uses(); });
    return new CodeCache({.folder = cache_folder(), .most_bytes = settings().cache_bytes});
  }();
  return *cache;
}

}  // namespace fornax::runtime

namespace fornax::cache {

std::vector<Entry> list(Site site) {
  const Call call("cache", site);
  return runtime::code_cache().list();
}
int64_t clear(Site site) {
  const Call call("cache", site);
  return runtime::code_cache().clear();
}
int64_t export_to(const std::string& path, Site site) {
  const Call call("cache", site);
  return runtime::code_cache().export_to(path);
}
int64_t import_from(const std::string& path, Site site) {
  const Call call("cache", site);
  return runtime::code_cache().import_from(path);
}
std::string path() { return runtime::code_cache().path(); }

}  // namespace fornax::cache
