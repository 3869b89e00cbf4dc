// read_idx() on any bytes: Error(io), or an array whose bytes are what its shape says.
#include <fornax/data.h>

#include <vector>

#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fornax;

void target(std::string_view input) {
  data::IdxArray array;
  try {
    array = data::read_idx(::fornax::testing::file_with(input));
  } catch (const Error& error) {
    FORNAX_FUZZ_EXPECT(error.kind() == ErrorKind::io);
    return;
  }
  const size_t count = size_t(array.shape.element_count());
  FORNAX_FUZZ_EXPECT(array.bytes.size() == count * size_of(array.dtype));
}

[[maybe_unused]] const std::vector<std::string> kSeeds = {
    "",
    std::string("\0\0\x08\x01\0\0\0\x03"
                "abc",
                11),
    std::string("\0\0\x0d\x02\0\0\0\x01\0\0\0\x02"
                "\x3f\x80\0\0\x40\0\0\0",
                20),
    std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10),
};

}  // namespace

FORNAX_FUZZ_TARGET(idx, target, kSeeds)
