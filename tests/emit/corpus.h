// Kernels that together hold every instruction on every dtype, each with the arguments of a launch:
// what the tests of emitted text compile, run and compare with the interpreter.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "kernel/ir.h"

namespace fornax::test {

// An argument: the bytes of a buffer, or a number in the low bytes of a word.
struct Argument {
  std::vector<unsigned char> bytes;
  int64_t count = 0;  // elements of the buffer
  uint64_t word = 0;
};

struct Case {
  kernel::Kernel kernel;
  uint32_t blocks = 1;
  std::vector<Argument> arguments;  // one per parameter
  bool checked = false;
  double ulps = 0;   // by which floats may differ
  bool runs = true;  // false: it is compiled alone
  int compute = 0;   // the least that it can be compiled for
};

std::vector<Case> corpus();

inline constexpr DType kComputed[] = {DType::f32, DType::f64, DType::i32,
                                      DType::u32, DType::i64, DType::u64};

}  // namespace fornax::test
