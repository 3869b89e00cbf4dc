#include "runtime/sqlite.h"

namespace fornax::runtime {
namespace {

constexpr int kWaitMilliseconds = 2000;  // for other processes' transactions, which are short

}  // namespace

Database::Database(const std::string& path, Mode mode) {
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    const DatabaseError error{code, handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code)};
    sqlite3_close_v2(handle_);
    throw error;
  }
  sqlite3_busy_timeout(handle_, kWaitMilliseconds);
}

void Database::fail(int code) { throw DatabaseError{code, sqlite3_errmsg(handle_)}; }

void Database::run(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  checked(sqlite3_prepare_v2(database.handle(), sql, -1, &handle_, nullptr));
}

Statement& Statement::checked(int code) {
  if (code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind(int parameter, int64_t value) {
  return checked(sqlite3_bind_int64(handle_, parameter, value));
}
Statement& Statement::bind(int parameter, std::string_view text) {
  return checked(
      sqlite3_bind_text(handle_, parameter, text.data(), int(text.size()), SQLITE_STATIC));
}
Statement& Statement::bind_blob(int parameter, std::string_view bytes) {
  return checked(
      sqlite3_bind_blob64(handle_, parameter, bytes.data(), bytes.size(), SQLITE_STATIC));
}
Statement& Statement::bind_column(int parameter, const Statement& row, int column) {
  return checked(sqlite3_bind_value(handle_, parameter, sqlite3_column_value(row.handle_, column)));
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail(code);
  return code == SQLITE_ROW;
}

void Statement::again() { checked(sqlite3_reset(handle_)); }

std::string Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);
  return {static_cast<const char*>(data), size_t(sqlite3_column_bytes(handle_, column))};
}

}  // namespace fornax::runtime
