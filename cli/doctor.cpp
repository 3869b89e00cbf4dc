// fornax doctor
#include <fornax/train.h>

#include <cstdio>

#include "cli/commands.h"

int cli::doctor() {
  std::fputs(fornax::train::doctor().c_str(), stdout);
  return 0;
}
