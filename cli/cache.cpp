// fornax cache list|clear|export|import
#include <fornax/cache.h>

#include <cstdio>
#include <ctime>

#include "cli/commands.h"

namespace cli {
namespace {

std::string day(int64_t seconds) {
  const std::time_t time = std::time_t(seconds);
  std::tm parts = {};
  char text[32] = "";
  if (localtime_r(&time, &parts)) std::strftime(text, sizeof text, "%F %R", &parts);
  return text;
}

// "3 programs"
std::string programs(int64_t count) {
  return std::to_string(count) + (count == 1 ? " program" : " programs");
}

}  // namespace

int list_cache() {
  int64_t bytes = 0, count = 0;
  for (const fornax::cache::Entry& entry : fornax::cache::list()) {
    if (count++ == 0)
      std::printf("%-16s  %-16s  %9s  %-8s  %s\n", "used", "created", "bytes", "target", "program");
    std::printf("%-16s  %-16s  %9ld  %-8s  %s\n", day(entry.used).c_str(),
                day(entry.created).c_str(), long(entry.bytes), entry.target.c_str(),
                entry.label.c_str());
    bytes += entry.bytes;
  }
  const std::string path = fornax::cache::path();
  std::printf("%s, %.1f MB, in %s\n", programs(count).c_str(), double(bytes) / 1e6,
              path.empty() ? "no file (the setting cache is off)" : path.c_str());
  return 0;
}

int clear_cache() {
  std::printf("cleared %s\n", programs(fornax::cache::clear()).c_str());
  return 0;
}

int export_cache(const std::string& path) {
  std::printf("exported %s to %s\n", programs(fornax::cache::export_to(path)).c_str(),
              path.c_str());
  return 0;
}

int import_cache(const std::string& path) {
  std::printf("imported %s\n", programs(fornax::cache::import_from(path)).c_str());
  return 0;
}

}  // namespace cli
