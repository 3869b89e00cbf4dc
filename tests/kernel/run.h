// Kernels built in a few lines, and run by the interpreter on vectors.  For tests alone.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/build.h"
#include "kernel/check.h"
#include "kernel/interpret.h"
#include "kernel/number.h"

namespace fornax::kernel::testing {

// The arguments of a launch: vectors become buffers, numbers their bits.
class Arguments {
 public:
  explicit Arguments(std::array<int, 3> grid = {1, 1, 1}) { launch_.grid = grid; }

  template <class T>
  Arguments& add(std::vector<T>& memory) {
    extents_.push_back({memory.data(), int64_t(memory.size() * sizeof(T))});
    counts_.push_back(memory.size());
    launch_.arguments.push_back(uint64_t(reinterpret_cast<uintptr_t>(memory.data())));
    return *this;
  }
  template <class T>
  requires std::is_arithmetic_v<T> Arguments& add(T number) {
    uint64_t word = 0;
    std::memcpy(&word, &number, sizeof number);
    launch_.arguments.push_back(word);
    return *this;
  }

  Launch& launch() { return launch_; }
  const Status& status() const { return status_; }

  // Once; the counts and the status are added as the kernel wants them.
  void run(const Kernel& kernel) {
    launch_.memory = [this](const void* address) { return extent(address); };
    if (launch_.checked) {
      launch_.arguments.insert(launch_.arguments.end(), counts_.begin(), counts_.end());
    }
    if (reports(kernel, launch_.checked)) {
      launch_.arguments.push_back(uint64_t(reinterpret_cast<uintptr_t>(&status_)));
    }
    interpret(kernel, launch_);
  }

 private:
  MemoryExtent extent(const void* address) const {
    for (const MemoryExtent& extent : extents_) {
      const auto* begin = static_cast<const char*>(extent.begin);
      if (address >= begin && address < begin + extent.bytes) return extent;
    }
    return {};
  }

  Launch launch_;
  Status status_{};
  std::vector<MemoryExtent> extents_;
  std::vector<uint64_t> counts_;
};

// What `body` throws, or "" where it throws nothing of this kind.
template <class Body>
std::string error_of(ErrorKind kind, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.kind() == kind ? error.what() : fmt::format("another kind: {}", error.what());
  }
  return "";
}
#define FORNAX_EXPECT_WORDS(text, words) \
  EXPECT_NE((text).find(words), std::string::npos) << "in: " << (text)

}  // namespace fornax::kernel::testing
