// What tests of several folders share: a body run on each device, and the words of an error.
#pragma once
#include <fornax/device.h>
#include <gtest/gtest.h>

#include <string>

namespace fornax {

// Each usable device in turn.
template <class Work>
void on_devices(Work work) {
  for (const DeviceListing& listing : devices()) {
    if (!listing.usable) continue;
    SCOPED_TRACE(listing.name);
    work(Device(listing.name));
  }
}

// The message of the error that `work` throws; empty where there is none.
template <class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace fornax
