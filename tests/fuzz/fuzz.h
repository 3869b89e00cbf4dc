// One fuzz target per file.  Compiled with FORNAX_FUZZ and -fsanitize=fuzzer the file is a fuzzer;
// otherwise it is a test that feeds the target its seeds and what a few random changes make of
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace fornax::testing {

// Changes a few bytes, and at times the length.
inline std::string changed(std::string input, std::mt19937_64& random) {
  for (uint64_t edits = random() % 4; edits > 0 && !input.empty(); edits--) {
    const size_t at = random() % input.size();
    switch (random() % 4) {
      case 0:
        input[at] = char(random());
        break;
      case 1:
        input[at] = input[random() % input.size()];
        break;
      case 2:
        input.insert(at, input.substr(at, random() % 16));
        break;
      default:
        input.erase(at, random() % 8);
    }
  }
  return input;
}

}  // namespace fornax::testing

// `target` takes a std::string_view and aborts, by FORNAX_FUZZ_EXPECT, where a promise is broken.
#define FORNAX_FUZZ_EXPECT(condition) \
  do {                                \
    if (!(condition)) std::abort();   \
  } while (false)

#ifdef FORNAX_FUZZ
#define FORNAX_FUZZ_TARGET(name, target, seeds)                             \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    target(std::string_view(reinterpret_cast<const char*>(data), size));    \
    return 0;                                                               \
  }
#else
#include <gtest/gtest.h>
#define FORNAX_FUZZ_TARGET(name, target, seeds)                                       \
  TEST(fuzz, name) {                                                                  \
    std::mt19937_64 random(1);                                                        \
    for (const std::string& seed : seeds) {                                           \
      target(seed);                                                                   \
      for (int i = 0; i < 500; i++) target(::fornax::testing::changed(seed, random)); \
    }                                                                                 \
  }
#endif
