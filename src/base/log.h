// Logging to stderr by level: log(2, "...") prints where FORNAX_LOG is 2 or more.
// settings.def says what each level is for.  Lines from several threads do not mix.
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace fornax {

bool logs(int level);
void log_line(std::string_view line);

template <class... Args>
void log(int level, fmt::format_string<Args...> format, Args&&... args) {
  if (logs(level)) log_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fornax
