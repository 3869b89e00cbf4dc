// The JSON header of a safetensors file: one object per tensor, and "__metadata__".
// Nothing of a header is trusted.  Depth is bounded by the form, so nesting cannot exhaust a stack.
#pragma once
#include <fornax/io.h>

#include <string>
#include <string_view>
#include <vector>

namespace fornax::io {

struct Header {
  std::vector<Entry> entries;  // by begin, then end
  Metadata metadata;
};

// Error(io): not the JSON that is expected, a name twice, an unknown dtype, sizes that do not fit.
// `path` is for errors.
Header parse_header(std::string_view json, const std::string& path);
// Error(io): an entry's bytes overlap another's, leave a hole, or are not within `data_size` bytes;
// bytes are left over, unless that is allowed.
void check_layout(const std::vector<Entry>& entries, uint64_t data_size, bool allow_trailing,
                  const std::string& path);
// Without the padding that aligns the data.
std::string write_header(const std::vector<Entry>& entries, const Metadata& metadata);

}  // namespace fornax::io
