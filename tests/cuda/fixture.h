// What the tests of the CUDA runtime share: the stand-ins, programs, and a body run on both a
// stand-in and, where there is one, a real device.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtimes/cuda/runtime.h"
#include "tests/cuda/fake/fake.h"
#include "tests/errors.h"

namespace fornax::cuda {

std::string driver_path();
std::string nvrtc_path();
// The stand-ins' numbers; the driver's were set back when reset() was called.
FakeDriver& driver();
FakeNvrtc& nvrtc();
void reset();
std::unique_ptr<CudaRuntime> make_fake(runtime::CodeCache* cache = nullptr);

// Runs a program of kText.
struct Text final : runtime::Recipe {
  Text(std::string entry, std::vector<runtime::ParameterKind> parameters, std::string key = {});
  runtime::Source make() const override;
  runtime::Source source;
  mutable int made = 0;
};
Text fill_text(const std::string& key = {});
Text add_text();

// A runtime and a program of it to write numbers with, on device 0.
struct Bench {
  explicit Bench(runtime::Runtime& runtime);
  void fill(Address to, uint32_t count, uint32_t value);
  void add(Address to, Address from, uint32_t count);
  std::vector<uint32_t> read(Address from, size_t count, int device = 0);
  runtime::Runtime& runtime;
  std::shared_ptr<runtime::Program> fill_program, add_program;
};

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// body(Runtime&) on the stand-in, then on the machine's own devices.
void on_runtimes(const std::function<void(runtime::Runtime&)>& body);

}  // namespace fornax::cuda
