// The setting memory_limit, in a process of its own since settings are read once.
#include <fornax/ops.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/errors.h"

namespace fornax {
namespace {

constexpr int64_t kMebi = 1 << 18;  // elements of f32 in a MiB

// Of 64 MiB; ends the process, with 0 where all is as it should be.
[[noreturn]] void reach_limit() {
  const Device cpu("cpu");
  const Tensor kept = full({16 * kMebi}, 0.5, {.device = cpu}).exp();
  const auto run = [&](int64_t mebibytes) {
    const Tensor held = full({mebibytes * kMebi}, 0.5, {.device = cpu}).sin();
    cpu.sync();
  };
  cpu.sync();
  run(24);
  run(40);  // fits only where the 24 that were freed are given back
  const std::string message = message_of(ErrorKind::out_of_memory, [&] { run(50); });
  for (const char* words :
       {"no memory for 52428800 bytes", "16777216 are in use and the limit is 67108864",
        "most is held by results of exp (16777216 bytes)", "limit.cpp:"}) {
    expect_words(message, words);
  }
  EXPECT_FLOAT_EQ(kept.max().item<float>(), std::exp(0.5f));
  run(40);
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(MemoryLimit, is_an_error_that_names_the_holders_and_is_met_after_caches_are_given_back) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("FORNAX_MEMORY_LIMIT", "67108864", 1);
  EXPECT_EXIT(reach_limit(), testing::ExitedWithCode(0), "");
  unsetenv("FORNAX_MEMORY_LIMIT");
}

}  // namespace
}  // namespace fornax
