// What lessons check themselves with.
#pragma once
#include <fornax/error.h>

#include <cstdio>
#include <cstdlib>

inline void claim(bool holds, fornax::Site site = fornax::Site::here()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: this does not hold\n", site.file, site.line);
  std::exit(1);
}
