// Errors: one exception type with a kind, and the call site that every public function notes.
//
// A message is one line, lower case:
//   op: what rule is broken, with operand types and numbers; what to do (at file.cpp:12)
#pragma once
#include <exception>
#include <string>
#include <string_view>

namespace fornax {

enum class ErrorKind { shape, dtype, device, index, value, io, out_of_memory, internal };
std::string_view name_of(ErrorKind kind);

// Where the user called us.  std::source_location is missing from clang 14 with libstdc++.
struct Site {
  constexpr Site() = default;
  // Explicit: two numbers in braces, meant as axes, are no place in a file.
  explicit constexpr Site(const char* file, int line) : file(file), line(line) {}
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Site(file, line);
  }

  const char* file = "";
  int line = 0;
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, Site site = {});
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  Site site() const { return site_; }  // line 0 where no user call is known

 private:
  ErrorKind kind_;
  std::string message_;
  Site site_;
};

}  // namespace fornax
