#include "backend/allocate.h"

#include <algorithm>

#include "backend/registry.h"
#include "base/error.h"
#include "base/join.h"

namespace fornax {
namespace {

// "; most is held by results of matmul (4096 bytes), exp (1024 bytes)"; empty where nothing is.
std::string largest_holders(int device) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> named;
  for (const MemoryReport::Share& share : memory_by_op(device)) {
    if (named.size() < kNamed) named.push_back(fmt::format("{} ({} bytes)", share.op, share.bytes));
  }
  return named.empty() ? "" : "; most is held by results of " + join(named, ", ");
}

}  // namespace

Ref<Buffer> allocate(int device, size_t bytes) {
  const PhysicalDevice& physical = physical_device(device);
  Ref<Buffer> buffer;
  try {
    buffer = physical.backend->allocate(physical.ordinal, std::max<size_t>(bytes, 1));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    throw_error(error.kind(), words_of(error) + largest_holders(device), error.site());
  }
  buffer->device = device;
  return buffer;
}

std::vector<MemoryReport::Share> memory_by_op(int device) {
  const auto bytes = live_bytes(device);
  std::vector<MemoryReport::Share> shares;
  for (int op = 0; op < op_count(); op++) {
    if (bytes[size_t(op)] <= 0) continue;
    shares.push_back({std::string(info(Op(op)).name), size_t(bytes[size_t(op)])});
  }
  std::sort(shares.begin(), shares.end(),
            [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return shares;
}

}  // namespace fornax
