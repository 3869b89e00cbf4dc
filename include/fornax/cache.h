// Compiled code that is kept on disk for the next process: looking at it, and moving it.
// Part of fornax::gpu, which a program must link for this.
//
//   cache::export_to("warm.db");    on the machine that compiled
//   cache::import_from("warm.db");  on another one with the same kind of device
//
// Errors: Error(io) where the store cannot be read or written.  Safe from any thread and beside
// other processes.
#pragma once
#include <fornax/error.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fornax::cache {

struct Entry {
  std::string label;   // the program as errors and logs name it
  std::string target;  // what it was compiled for, "sm_90a" for one
  int64_t bytes = 0;
  int64_t created = 0, used = 0;  // seconds since 1970; `used` is noted once in a while
};

// The most recently used first.
std::vector<Entry> list(Site site = Site::here());

// Each returns how many entries it dealt with.
int64_t clear(Site site = Site::here());  // also makes a broken store usable again
int64_t export_to(const std::string& path, Site site = Site::here());
// What is here already stays.
int64_t import_from(const std::string& path, Site site = Site::here());

// The file; empty where nothing is kept (setting `cache`).
std::string path();

}  // namespace fornax::cache
