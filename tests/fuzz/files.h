// Files for targets whose parser takes a path: one per process, overwritten by each input.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.h"

namespace fornax::testing {

inline std::string file_with(std::string_view bytes) {
  static const std::string path = [] {
    const char* folder = std::getenv("TMPDIR");
    return std::string(folder ? folder : "/tmp") + "/fornax-fuzz-" + std::to_string(getpid());
  }();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  FORNAX_FUZZ_EXPECT(file);
  FORNAX_FUZZ_EXPECT(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  return path;
}

}  // namespace fornax::testing
