#include "base/error.h"

namespace fornax {

constinit thread_local Call* Call::current_ = nullptr;

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::shape:
      return "shape";
    case ErrorKind::dtype:
      return "dtype";
    case ErrorKind::device:
      return "device";
    case ErrorKind::index:
      return "index";
    case ErrorKind::value:
      return "value";
    case ErrorKind::io:
      return "io";
    case ErrorKind::out_of_memory:
      return "out of memory";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message, Site site)
    : kind_(kind), message_(std::move(message)), site_(site) {}

std::string words_of(const Error& error) {
  const std::string message = error.what();
  return error.site().line > 0 ? message.substr(0, message.rfind(" (at ")) : message;
}

void throw_error(ErrorKind kind, std::string message, Site site) {
  site = Call::site_or(site);
  if (site.line > 0) message += fmt::format(" (at {}:{})", site.file, site.line);
  throw Error(kind, std::move(message), site);
}

}  // namespace fornax
