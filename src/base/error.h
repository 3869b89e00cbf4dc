// Throwing errors from inside the library, and the public call that is under way.
//
// Call marks the outermost public function on this thread: composed ops call other ops, and an
// error in any of them names the op and the line that the user wrote.  Thread-local, no locks.
#pragma once
#include <fmt/core.h>
#include <fornax/error.h>

#include <utility>

namespace fornax {

class Call {
 public:
  Call(const char* name, Site site) : outer_(current_) {
    if (!current_) {
      name_ = name;
      site_ = site;
      current_ = this;
    }
  }
  ~Call() { current_ = outer_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The site of the outermost call, or `otherwise` when no call is under way.
  // By its parts: a copy of what was just written in parts stalls.
  static Site site_or(const Site& otherwise) {
    const Site& site = current_ ? current_->site_ : otherwise;
    return Site(site.file, site.line);
  }
  static const char* name_or(const char* otherwise) {
    return current_ ? current_->name_ : otherwise;
  }

  // While one lives, a function of the user runs within a call, and the calls in it are his own.
  class Pause {
   public:
    Pause() : outer_(std::exchange(current_, nullptr)) {}
    ~Pause() { current_ = outer_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Call* outer_;
  };

 private:
  static constinit thread_local Call* current_;
  Call* outer_;
  const char* name_ = "";
  Site site_;
};

// An error's message without the place that it ends with.
std::string words_of(const Error& error);

// Throws Error with "<message> (at file:line)"; file:line of the call under way, else of `site`.
[[noreturn]] void throw_error(ErrorKind kind, std::string message, Site site = {});

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// For our own mistakes: an internal error, never an abort.
#define FORNAX_CHECK(condition)                                                                \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::fornax::fail(::fornax::ErrorKind::internal,                                            \
                     "internal: {} is false in {}:{}; please report it", #condition, __FILE__, \
                     __LINE__);                                                                \
  } while (false)

}  // namespace fornax
