// Compiling, and finding compiled code again.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/settings.h"
#include "tests/cuda/fixture.h"

namespace fornax::cuda {
namespace {

// A folder of the test's own.
struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() / ("fornax" + std::to_string(getpid()));
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

TEST(CudaCompile, NeedsNoContext) {
  reset();
  const auto r = make_fake();
  const auto program = r->compile(0, fill_text());
  EXPECT_EQ(driver().contexts, 0);
  EXPECT_EQ(program->report.registers, 40);
  EXPECT_EQ(program->report.spilled_bytes, 12);
  EXPECT_EQ(program->report.shared_bytes, 400);
}

TEST(CudaCompile, ErrorsHaveTheLog) {
  reset();
  const auto r = make_fake();
  Text text = fill_text();
  text.source.text = "#error";
  expect_part(message_of([&] { r->compile(0, text); }), "a.cu(1): error");
  expect_part(message_of([&] { r->compile(0, text); }), "\"fill of the tests\"");
}

TEST(CudaCompile, AnOlderCompilerDoesWithoutTheNewerOption) {
  reset();
  nvrtc().knows_no_cache = false;
  const auto r = make_fake();
  EXPECT_NE(r->compile(0, fill_text()), nullptr);
}

TEST(CudaCompile, TheRealCompilerAgrees) {
  std::string absence;
  const auto real = Nvrtc::load(settings().nvrtc, 99000, absence);
  if (!real) GTEST_SKIP() << absence;
  Text text = fill_text();
  for (const char* target : {"sm_80", "sm_90a"}) {
    const Compiled compiled = real->compile(text.source, target);
    EXPECT_EQ(compiled.code.substr(1, 3), "ELF");
    EXPECT_GT(compiled.report.registers, 1);
    EXPECT_EQ(compiled.report.spilled_bytes, 0);
    EXPECT_EQ(compiled.report.shared_bytes, 0);
    EXPECT_EQ(real->compile(text.source, target).code, compiled.code);
  }
  expect_part(message_of([&] { real->compile(text.source, "sm_31"); }), "sm_31");
  text.source.text = "__device__ int f() { return undeclared; }";
  expect_part(message_of([&] { real->compile(text.source, "sm_90a"); }), "undeclared");
}

TEST(CudaCompile, RunsOnSeveralThreadsAtOnce) {
  on_runtimes([](runtime::Runtime& r) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
      threads.emplace_back([&] {
        Bench bench(r);
        const Address a = r.allocate(0, 4000);
        bench.fill(a, 1000, 8);
        EXPECT_EQ(bench.read(a, 1000), std::vector<uint32_t>(1000, 8));
        r.release(0, a);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(CudaCompile, WhatIsKeptIsNotCompiledAgain) {
  reset();
  const Folder folder;
  const int before = nvrtc().compilations;
  {
    runtime::CodeCache cache({.folder = folder.path});
    const auto r = make_fake(&cache);
    const Text text = fill_text("fill, first version");
    (void)r->compile(0, text);
    EXPECT_EQ(text.made, 1);
    const auto again = r->compile(1, text);  // the same kind of device
    EXPECT_EQ(text.made, 1);
    EXPECT_EQ(again->source.label, "fill of the tests");
    EXPECT_EQ(again->report.registers, 40);
    const Text other = fill_text("fill, second version");
    (void)r->compile(0, other);
    EXPECT_EQ(other.made, 1);
    const Text unkept = fill_text();
    (void)r->compile(0, unkept);
    (void)r->compile(0, unkept);
    EXPECT_EQ(unkept.made, 2);
  }
  EXPECT_EQ(nvrtc().compilations, before + 4);
}

TEST(CudaCompile, ASecondProcessCompilesNothing) {
  reset();
  const Folder folder;
  const auto work = [&] {
    runtime::CodeCache cache({.folder = folder.path});
    const auto r = make_fake(&cache);
    const Text text = fill_text("fill");
    Bench bench(*r);
    bench.fill_program = r->compile(0, text);
    const Address a = r->allocate(0, 4000);
    bench.fill(a, 1000, 6);
    return bench.read(a, 1000) == std::vector<uint32_t>(1000, 6) ? text.made : -1;
  };
  for (const int wanted : {1, 0}) {
    const pid_t child = fork();
    if (child == 0) _exit(work() == wanted ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << wanted;
  }
}

}  // namespace
}  // namespace fornax::cuda
