// What tests set and see of the stand-ins for libcuda, in which NVTX is, too, and libnvrtc.
//
// The driver's devices are host memory.  Work is queued and runs as late as the order of streams
// and events allows: when somebody waits.  Programs are known by name:
//   fill(u32* to, u32 count, u32 value)   add(u32* to, const u32* from, u32 count)
//   fault(u32*)  breaks the device        all others do nothing
#pragma once
#include <cstddef>

struct FakeDriver {
  // To be set.
  int version = 13000;
  int init = 0;  // what cuInit returns
  int devices = 2;
  size_t memory = size_t{64} << 20;  // of each device
  int retain = 0;                    // what making a context returns
  // To be seen.
  int contexts = 0, streams = 0, events = 0, modules = 0, graphs = 0;  // that exist
  int allocations = 0, frees = 0, pinned = 0, launches = 0;            // that happened
  int graph_launches = 0, changes = 0;                                 // of graphs; that happened
  int early_frees = 0;  // of memory while work was queued
  int ranges = 0, open_ranges = 0;
};

struct FakeNvrtc {
  int version = 13000;
  bool knows_no_cache = true;  // the option
  int compilations = 0;
};

extern "C" {
FakeDriver* fake_driver();
void fake_driver_reset();  // forgets devices, memory and numbers
FakeNvrtc* fake_nvrtc();
}
