// The conformance program: every op of ops.def on every device of this process.
//
//   ops                 values and gradients of every op, random graphs, equal bits
//   ops --speed         a table of nanoseconds per element
//   ops --support       a Markdown table of which op takes which dtype where
//
// GoogleTest's options choose tests: --gtest_filter='values/cpu.exp*'.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/ops/modes.h"

namespace fornax::conformance {
namespace {

class Generated : public ::testing::Test {
 public:
  explicit Generated(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override {
    body_();
    // A test makes thousands of programs, which nobody runs again.
    for (const DeviceListing& listing : devices()) {
      if (listing.usable) Device(listing.name).trim();
    }
  }

 private:
  std::function<void()> body_;
};

}  // namespace

void add_test(const std::string& suite, const std::string& name, std::function<void()> body) {
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [body]() -> ::testing::Test* { return new Generated(body); });
}

std::string short_name(Device device) {
  const std::string name = device.name();
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

}  // namespace fornax::conformance

int main(int count, char** arguments) {
  using namespace fornax::conformance;
  setenv("FORNAX_INTERPRETER", "1", 0);  // kernels of devices are tried without one, too
  ::testing::InitGoogleTest(&count, arguments);
  for (int i = 1; i < count; i++) {
    if (std::strcmp(arguments[i], "--speed") == 0) return print_speed(), 0;
    if (std::strcmp(arguments[i], "--support") == 0) return print_support(), 0;
    std::fprintf(stderr, "ops: unknown option %s; there are --speed and --support\n", arguments[i]);
    return 2;
  }
  for (const fornax::DeviceListing& listing : fornax::devices()) {
    if (!listing.usable) continue;
    register_values(fornax::Device(listing.name));
    register_gradients(fornax::Device(listing.name));
    register_graphs(fornax::Device(listing.name));
    register_repeats(fornax::Device(listing.name));
  }
  return RUN_ALL_TESTS();
}
