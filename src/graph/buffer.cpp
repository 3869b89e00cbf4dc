#include "graph/buffer.h"

namespace fornax {
namespace {

constexpr int kDevices = 64;
std::atomic<int64_t> live[kDevices][256];

std::atomic<int64_t>& counter_of(const Buffer& buffer) {
  return live[size_t(buffer.device) % kDevices][size_t(buffer.made_by)];
}

}  // namespace

void mark_made_by(Buffer& buffer, Op op) {
  if (buffer.counted) {
    counter_of(buffer).fetch_sub(int64_t(buffer.bytes), std::memory_order_relaxed);
  }
  buffer.made_by = op;
  if (buffer.bytes < kCountedBytes) return;
  buffer.counted = true;
  counter_of(buffer).fetch_add(int64_t(buffer.bytes), std::memory_order_relaxed);
}

void destroy(Buffer* buffer) {
  if (buffer->counted) {
    counter_of(*buffer).fetch_sub(int64_t(buffer->bytes), std::memory_order_relaxed);
  }
  buffer->release(buffer);
}

std::array<int64_t, 256> live_bytes(int device) {
  std::array<int64_t, 256> bytes;
  for (size_t op = 0; op < bytes.size(); op++) {
    bytes[op] = live[size_t(device) % kDevices][op].load(std::memory_order_relaxed);
  }
  return bytes;
}

}  // namespace fornax
