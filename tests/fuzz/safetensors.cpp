// Safetensors on any bytes: Error(io), or tensors that can all be read.
#include <fornax/io.h>

#include <vector>

#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fornax;

void target(std::string_view input) {
  try {
    const io::Safetensors file(::fornax::testing::file_with(input));
    for (const io::Entry& entry : file.entries()) {
      const Tensor tensor = file.read(entry.name);
      FORNAX_FUZZ_EXPECT(tensor.shape() == entry.shape && tensor.dtype() == entry.dtype);
    }
  } catch (const Error& error) {
    FORNAX_FUZZ_EXPECT(error.kind() == ErrorKind::io);
  }
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; i++) bytes[i] = char(header.size() >> (8 * i));
  return bytes + header + data;
}

[[maybe_unused]] const std::vector<std::string> kSeeds = {
    "",
    file_of("{}", ""),
    file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"),
    file_of(R"({"__metadata__":{"k":"v"},"e":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
            R"("s":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
            "x"),
};

}  // namespace

FORNAX_FUZZ_TARGET(safetensors, target, kSeeds)
