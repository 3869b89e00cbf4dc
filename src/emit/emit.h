// Kernels as text for a device.  emit() turns a finished simt kernel into a program in the language
// that the device takes; nothing is compiled here.
//
// The text is meant to be read: values are named by their numbers in the kernel, expressions stand
// where they are used once, regions stay loops and conditions, and lines of the kernel's source are
// noted beside what they became.  It includes nothing: what it needs stands in it.
//
// The arguments of a launch follow kernel/check.h.  A number of fewer than 32 bits is passed as
// 32 bits.  What the compiler is told must keep every operation as written: no contraction, no
// flushing of denormals, no approximations (nvrtc: -fmad=false and its defaults).
//
// Pure functions, safe from any thread.
#pragma once
#include "kernel/ir.h"
#include "runtime/runtime.h"

namespace fornax {

struct EmitSettings {
  bool checked = false;  // every access is tested against the end of its memory (kernel/check.h)
  bool waits = false;    // the program waits for the launch before it by itself (cuda, compute 90)
};

// Error(internal): a tile kernel, which kernel/lower.h must make a simt kernel first; an
// instruction that the language does not have for the dtype.
runtime::Source emit(const kernel::Kernel& kernel, const runtime::Capabilities& capabilities,
                     EmitSettings settings = {});

}  // namespace fornax
