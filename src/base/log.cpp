#include "base/log.h"

#include <cstdio>
#include <string>

#include "base/settings.h"

namespace fornax {

bool logs(int level) { return settings().log >= level; }

void log_line(std::string_view line) {
  const std::string text = fmt::format("fornax: {}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);  // one call: stdio locks the stream around it
}

}  // namespace fornax
