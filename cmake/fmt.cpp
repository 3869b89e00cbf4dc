// fmt, compiled once.  Everybody else includes <fmt/core.h>, whose functions only call vformat; to
// compile all of fmt in every file that formats something would double the time of a build.  Debian
// and Ubuntu have libfmt only as a shared library, which a shipped program must not need.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

// An inline function is written out where somebody takes its address.
[[gnu::used]] static std::string (*const kept)(fmt::string_view, fmt::format_args) = fmt::vformat;
