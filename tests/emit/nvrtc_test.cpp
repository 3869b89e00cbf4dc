// Emitted text compiles: every kernel of the corpus, by NVIDIA's run-time compiler where there is
// one, for the oldest, a middle and the newest target.
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "base/settings.h"
#include "corpus.h"
#include "runtimes/cuda/nvrtc.h"

namespace fornax::test {
namespace {

constexpr int kDriver = 13000;  // newer than any target here

void compile_all(const char* target, int compute) {
  std::string absence;
  const auto nvrtc = cuda::Nvrtc::load(settings().nvrtc, kDriver, absence);
  if (!nvrtc) GTEST_SKIP() << absence;
  runtime::Capabilities capabilities;
  capabilities.language = runtime::Language::cuda;
  capabilities.target = target;
  capabilities.compute = compute;
  for (const Case& test : corpus()) {
    if (test.compute > compute) continue;
    const runtime::Source source = emit(test.kernel, capabilities, {.checked = test.checked});
    const auto start = std::chrono::steady_clock::now();
    try {
      const cuda::Compiled compiled = nvrtc->compile(source, target);
      EXPECT_FALSE(compiled.code.empty()) << source.label;
      EXPECT_EQ(compiled.report.spilled_bytes, 0) << source.label << "\n" << source.text;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what() << "\n" << source.text;
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    ::testing::Test::RecordProperty(source.label, std::to_string(time.count()));
  }
}

TEST(Nvrtc, CompilesTheCorpusForCompute80) { compile_all("sm_80", 80); }
TEST(Nvrtc, CompilesTheCorpusForCompute90) { compile_all("sm_90a", 90); }
TEST(Nvrtc, CompilesTheCorpusForCompute100) { compile_all("sm_100", 100); }

}  // namespace
}  // namespace fornax::test
