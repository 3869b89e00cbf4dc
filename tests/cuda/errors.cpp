// What goes wrong, and what is said of it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/registry.h"
#include "tests/cuda/fixture.h"

namespace fornax::cuda {
namespace {

// Why a runtime over these files has no devices.
std::string absence(const std::string& driver_file, const std::string& nvrtc_file) {
  CudaRuntime r({driver_file, nvrtc_file, nullptr});
  std::string why;
  EXPECT_TRUE(r.devices(why).empty());
  EXPECT_NE(message_of([&] { r.allocate(0, 4); }), "");
  return why;
}

TEST(CudaErrors, AbsenceIsExplained) {
  reset();
  expect_part(absence("/nowhere/libcuda.so.1", nvrtc_path()), "cuda_driver");
  expect_part(absence(nvrtc_path(), nvrtc_path()), "is no CUDA driver");
  expect_part(absence(driver_path(), "/nowhere/libnvrtc.so"), "/nowhere/libnvrtc");
  expect_part(absence(driver_path(), driver_path()), "is no NVRTC");
  driver().version = 11040;
  expect_part(absence(driver_path(), nvrtc_path()), "supports CUDA 11.4 and 12.0 is needed");
  driver().version = 12040;
  expect_part(absence(driver_path(), nvrtc_path()),
              "makes code for CUDA 13, and the driver runs CUDA 12");
  reset();
  driver().devices = 0;
  expect_part(absence(driver_path(), nvrtc_path()), "CUDA_VISIBLE_DEVICES");
  reset();
  driver().init = 100;
  expect_part(absence(driver_path(), nvrtc_path()), "CUDA_ERROR_NO_DEVICE");
}

TEST(CudaErrors, TheRuntimeIsRegistered) {
  const auto& all = runtime::runtimes();
  const auto found =
      std::find_if(all.begin(), all.end(), [](runtime::Runtime* r) { return r->name() == "cuda"; });
  ASSERT_NE(found, all.end());
  std::string why;
  const bool absent = (*found)->devices(why).empty();
  EXPECT_EQ(absent, !why.empty());
}

TEST(CudaErrors, DevicesAreNamedByWhatTheyAre) {
  reset();
  const auto r = make_fake();
  std::string why;
  const auto& devices = r->devices(why);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(why, "");
  EXPECT_EQ(devices[1].name, "cuda");
  EXPECT_EQ(devices[1].identity, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
  EXPECT_EQ(devices[0].description, "Fake Accelerator (0.1 GiB, sm_90a)");
  EXPECT_EQ(devices[0].capabilities.target, "sm_90a");
  EXPECT_EQ(devices[0].capabilities.processors, 132);
  EXPECT_EQ(driver().contexts, 0);  // finding devices opens none
  EXPECT_NE(message_of([&] { r->allocate(2, 4); }), "");
}

TEST(CudaErrors, ABrokenDeviceSaysWhatRanLast) {
  reset();
  const auto r = make_fake();
  Bench bench(*r);
  const Address a = r->allocate(0, 4000);
  bench.fill(a, 1000, 1);
  const auto fault = r->compile(0, Text("fault", {runtime::ParameterKind::word64}));
  const std::array<uint64_t, 1> arguments = {a};
  r->launch(0, *fault, {1, 1, 1}, arguments);
  const std::string first = message_of([&] { r->synchronize(0); });
  expect_part(first, "CUDA_ERROR_ILLEGAL_ADDRESS");
  expect_part(first, "\"fault of the tests\", \"fill of the tests\"");
  expect_part(first, "started again");
  EXPECT_EQ(message_of([&] { bench.fill(a, 1000, 1); }), first);
  EXPECT_EQ(message_of([&] { r->allocate(0, 4); }), first);
  const Address other = r->allocate(1, 4);  // the other device is well
  r->release(1, other);
  r->release(0, a);
}

TEST(CudaErrors, ALaunchThatCannotBeSaysWithWhat) {
  reset();
  const auto r = make_fake();
  Text text = fill_text();
  text.source.threads = 2000;
  const auto program = r->compile(0, text);
  const std::array<uint64_t, 3> arguments = {0, 0, 0};
  const std::string message = message_of([&] { r->launch(0, *program, {7, 1, 1}, arguments); });
  expect_part(message, "\"fill of the tests\" with 7 x 1 x 1 blocks of 2000 threads");
  expect_part(message, "CUDA_ERROR_INVALID_VALUE");
  r->synchronize(0);  // it is no fault of the device
}

TEST(CudaErrors, MemoryRunsOutWithNumbers) {
  reset();
  const auto r = make_fake();
  const Address a = r->allocate(0, 40 << 20);
  try {
    r->allocate(0, 40 << 20);
    FAIL() << "there is room for one only";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    expect_part(error.what(), "0.039 GiB wanted; 0.039 GiB in use");
    expect_part(error.what(), "0.062 GiB free");
  }
  Bench bench(*r);
  bench.fill(a, 1000, 1);
  r->release(0, a);
  r->release(0, r->allocate(0, 60 << 20));  // needs what is cached, and still to be filled
  EXPECT_EQ(driver().frees, 1);
  EXPECT_EQ(driver().early_frees, 0);
  r->trim(0);
  EXPECT_EQ(r->memory(0).reserved, 0u);
  EXPECT_EQ(r->memory(0).peak, size_t{60} << 20);
}

TEST(CudaErrors, ADeviceThatSomebodyElseHasIsNotBroken) {
  reset();
  const auto r = make_fake();
  driver().retain = 46;
  expect_part(message_of([&] { r->allocate(0, 4); }), "another process");
  driver().retain = 0;
  EXPECT_NE(r->allocate(0, 4), 0u);
}

TEST(CudaErrors, AChildOfForkIsTold) {
  reset();
  const auto r = make_fake();
  Bench bench(*r);
  const Address a = r->allocate(0, 4000);
  const pid_t child = fork();
  if (child == 0) {
    bool told = true;
    const auto tells = [&](auto work) {
      told = told && message_of(work).find("does not survive fork") != std::string::npos;
    };
    tells([&] { r->allocate(0, 4); });
    tells([&] { bench.fill(a, 1000, 1); });
    tells([&] { r->synchronize(0); });
    tells([&] { r->memory(0); });
    tells([&] { r->compile(0, fill_text()); });
    r->release(0, a);
    _exit(told ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  bench.fill(a, 1000, 4);  // the parent goes on
  EXPECT_EQ(bench.read(a, 1), std::vector<uint32_t>{4});
}

}  // namespace
}  // namespace fornax::cuda
