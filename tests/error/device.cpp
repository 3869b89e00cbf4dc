// What is said of devices that are not here.
#include <fornax/fornax.h>

#include "tests/errors.h"

namespace fornax {
namespace {

TEST(Devices, one_that_does_not_exist_lists_those_that_do) {
  const std::string message = message_of(ErrorKind::device, [] { Device("tpu:0"); });
  expect_words(message, "device: there is no \"tpu:0\"; usable here: ");
  expect_words(message, "cpu:0, reference:0");
}

TEST(Devices, an_absent_one_says_why) {
  for (const DeviceListing& listing : devices()) {
    if (listing.usable) continue;
    const size_t open = listing.name.find('<');
    const std::string kind = listing.name.substr(open + 1, listing.name.size() - open - 2);
    const std::string message = message_of(ErrorKind::device, [&] { Device(kind + ":0"); });
    expect_words(message, "there is no \"" + kind + ":0\" (" + listing.description + "); usable");
  }
}

}  // namespace
}  // namespace fornax
