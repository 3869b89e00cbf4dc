// parse_kernel() on any text: Error(value) or a verified kernel, which reads back from its text.
#include <fornax/error.h>

#include <vector>

#include "kernel/ir.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fornax;

void target(std::string_view text) {
  kernel::Kernel kernel;
  try {
    kernel = kernel::parse_kernel(text);
  } catch (const Error& error) {
    FORNAX_FUZZ_EXPECT(error.kind() == ErrorKind::value);
    return;
  }
  kernel::verify(kernel);
  const std::string again = kernel::text_of(kernel);
  FORNAX_FUZZ_EXPECT(kernel::text_of(kernel::parse_kernel(again)) == again);
  (void)kernel::plan_shared(kernel);
}

[[maybe_unused]] const std::vector<std::string> kSeeds = {
    "",
    "kernel \"k\" simt threads 32 {\n}\n",
    "kernel \"sums\" simt threads 64 {\n  param %0 y : global i32 write align 16\n"
    "  param %1 n : i32 multiple 4 most 4096\n  %2 = thread : i32 @ \"a.cpp\":3\n"
    "  %3 = constant 0 : i32\n  %4 = constant 1 : i32\n"
    "  %8 = loop %3 %2 %4 %3 (%5 : i32, %6 : i32) {\n    %7 = add %5 %6 : i32\n    yield %7\n"
    "  } : i32\n  %9 = less %2 %1 : bool\n  if %9 {\n    store %0 %2 %8\n  } else {\n  }\n}\n",
    "kernel \"t\" tile threads 128 share {4,32,4} share {128,1,1} {\n"
    "  param %0 x : global f32 write\n  %1 = iota {0} : i32[128,1]@1\n"
    "  %2 = load %0 %1 : f32[128,1]@1\n  %3 = shared {64,16} : shared f16\n"
    "  %7 = reduce {0} %2 (%4 : f32, %5 : f32) {\n    %6 = max %4 %5 : f32\n    yield %6\n"
    "  } : f32[1,1]@1\n  store %0 %1 %7\n  print %7 \"is {}\\x0a\"\n}\n",
};

}  // namespace

FORNAX_FUZZ_TARGET(parse_kernel, target, kSeeds)
