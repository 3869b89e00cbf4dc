// The report of fornax doctor.  Reads; changes nothing.
#include <fornax/device.h>
#include <fornax/fornax.h>
#include <fornax/train.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/join.h"
#include "base/limits.h"
#include "base/settings.h"

namespace fornax::train {
namespace {

constexpr bool kOptimized =
#ifdef __OPTIMIZE__
    true;
#else
    false;
#endif

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string features() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define FORNAX_FEATURE(name) \
  if (__builtin_cpu_supports(name)) found.push_back(name);
  FORNAX_FEATURE("sse4.2")
  FORNAX_FEATURE("avx")
  FORNAX_FEATURE("avx2")
  FORNAX_FEATURE("fma")
  FORNAX_FEATURE("avx512f")
  FORNAX_FEATURE("avx512bw")
  FORNAX_FEATURE("avx512vnni")
#undef FORNAX_FEATURE
#endif
  return join(found, " ");
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "an unknown compiler";
#endif
}

std::string cache_size(const std::string& folder) {
  if (folder.empty()) return "nothing is kept";
  std::error_code error;
  uintmax_t bytes = 0, files = 0;
  for (std::filesystem::recursive_directory_iterator item(folder, error), end;
       !error && item != end; item.increment(error)) {
    if (item->is_regular_file(error)) {
      const uintmax_t size = item->file_size(error);
      bytes += error ? 0 : size;
      files++;
    }
  }
  if (files == 0) return "nothing in it";
  return fmt::format("{} files, {:.1f} MiB", files, double(bytes) / (1 << 20));
}

std::string device_lines() {
  std::string text = "devices\n";
  for (const DeviceListing& listing : devices()) {
    if (!listing.usable) {
      text += fmt::format("  {:<12} absent: {}\n", listing.name, listing.description);
      continue;
    }
    const Device device(listing.name);
    text += fmt::format("  {:<12} {}\n", listing.name, device.describe());
    text += fmt::format("  {:<12} {} when training\n", "", device.autodiff().describe());
  }
  return text;
}

std::string setting_lines() {
  std::string text = "settings\n";
  for (const SettingRow& row : setting_rows()) {
    const std::string value = row.value.empty() ? "\"\"" : row.value;
    text += fmt::format(
        "  {:<14} {:<12} {}{}\n", row.name, value, row.documentation,
        row.value == row.fallback ? "" : fmt::format(" [set, by default {}]", row.fallback));
  }
  return text;
}

std::string warnings() {
  std::string text;
  const auto warn = [&](std::string_view words) { text += fmt::format("warning: {}\n", words); };
  if (!kOptimized) warn("this library was built without optimization; use the release preset");
  if (granted_threads() == 1) warn("this process may use one thread only");
  if (settings().threads == 1) warn("threads = 1: one thread computes");
  if (settings().eager) warn("eager = true: nothing is fused");
  if (settings().verify) warn("verify = true: every graph is checked");
  return text.empty() ? "no warnings\n" : text;
}

}  // namespace

std::string doctor() {
  const std::string folder = cache_folder();
  return fmt::format("fornax {}, {} build by {}\n", kVersion, kOptimized ? "optimized" : "debug",
                     compiler()) +
         fmt::format("processor    {}; {}\n", processor(), features()) +
         fmt::format("threads      {} usable of {}\n", granted_threads(),
                     std::thread::hardware_concurrency()) +
         fmt::format("cache        {}: {}\n", folder.empty() ? "off" : folder, cache_size(folder)) +
         device_lines() + setting_lines() + warnings();
}

}  // namespace fornax::train
