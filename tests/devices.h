// A body run on each device, for tests of several folders.
#pragma once
#include <fornax/device.h>
#include <gtest/gtest.h>

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

}  // namespace fornax
