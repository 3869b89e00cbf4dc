// What we need of SQLite: a database, a statement, a transaction.  Failures are DatabaseError.
//
// Thread-safety: none; the holder locks.  A database does not survive fork().
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace fornax::runtime {

struct DatabaseError {
  int code = 0;
  std::string message;
  // Somebody else was at it for longer than we wait.
  bool busy() const { return (code & 0xff) == SQLITE_BUSY; }
};

class Database {
 public:
  enum class Mode { read, write };
  Database(const std::string& path, Mode mode);
  ~Database() { sqlite3_close_v2(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql);
  sqlite3* handle() { return handle_; }
  [[noreturn]] void fail(int code);

 private:
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Parameters from 1 on.  Texts and blobs must live until the last step.
  Statement& bind(int parameter, int64_t value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind_blob(int parameter, std::string_view bytes);
  Statement& bind_column(int parameter, const Statement& row, int column);
  bool step();  // whether there is a row
  void again();

  // Of the row, columns from 0 on.
  int64_t integer(int column) const { return sqlite3_column_int64(handle_, column); }
  std::string bytes(int column) const;

 private:
  Statement& checked(int code);
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

// Undone unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {
    database.run("BEGIN IMMEDIATE");
  }
  ~Transaction() {
    if (!committed_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    database_.run("COMMIT");
    committed_ = true;
  }

 private:
  Database& database_;
  bool committed_ = false;
};

}  // namespace fornax::runtime
