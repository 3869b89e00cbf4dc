#include "runtimes/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace fornax::cuda {
namespace {

constexpr size_t kSlotBytes = 4 << 20;
constexpr size_t kAlignment = 64;

}  // namespace

Staging::~Staging() {
  for (Slot& slot : writes_) free(slot);
  for (Slot& slot : reads_) free(slot);
}

void Staging::free(Slot& slot) noexcept {
  if (!slot.memory) return;
  gpu_.quietly([&](const Driver& driver) {
    driver.wait_for_stream(gpu_.stream());
    driver.destroy_event(slot.done);
    driver.free_host(slot.memory);
  });
}

void Staging::prepare(Slot& slot) {
  if (slot.memory) return;
  const Driver& driver = gpu_.driver();
  if (!slot.done) gpu_.check(driver.create_event(&slot.done, kEventWithoutTime), "making an event");
  void* memory = nullptr;
  gpu_.check(driver.allocate_host(&memory, kSlotBytes, kHostPortable), "pinning host memory");
  slot.memory = static_cast<char*>(memory);
}

void Staging::record(Slot& slot) {
  gpu_.check(gpu_.driver().record_event(slot.done, gpu_.stream()), "recording an event");
  slot.pending = true;
}

void Staging::await(Slot& slot) {
  if (!slot.pending) return;
  gpu_.check(gpu_.driver().wait_for_event(slot.done), "waiting for a copy");
  slot.pending = false;
}

void Staging::write(Address to, const void* from, size_t bytes) {
  const std::lock_guard lock(writing_);
  const char* rest = static_cast<const char*>(from);
  while (bytes > 0) {
    if (used_ == kSlotBytes) {
      record(writes_[slot_]);
      slot_ = (slot_ + 1) % writes_.size();
      used_ = 0;
    }
    Slot& slot = writes_[slot_];
    prepare(slot);
    await(slot);
    const size_t piece = std::min(bytes, kSlotBytes - used_);
    char* staged = slot.memory + used_;
    std::memcpy(staged, rest, piece);
    gpu_.check(gpu_.driver().write(to, staged, piece, gpu_.stream()), "writing");
    used_ += (piece + kAlignment - 1) / kAlignment * kAlignment;
    to += piece;
    rest += piece;
    bytes -= piece;
  }
}

void Staging::read(void* to, Address from, size_t bytes) {
  const std::lock_guard lock(reading_);
  const size_t pieces = (bytes + kSlotBytes - 1) / kSlotBytes;
  const auto size_of = [&](size_t piece) {
    return std::min(kSlotBytes, bytes - piece * kSlotBytes);
  };
  const auto start = [&](size_t piece) {
    Slot& slot = reads_[piece % reads_.size()];
    prepare(slot);
    gpu_.check(
        gpu_.driver().read(slot.memory, from + piece * kSlotBytes, size_of(piece), gpu_.stream()),
        "reading");
    record(slot);
  };
  if (pieces > 0) start(0);
  for (size_t piece = 0; piece < pieces; piece++) {
    if (piece + 1 < pieces) start(piece + 1);
    Slot& slot = reads_[piece % reads_.size()];
    await(slot);
    std::memcpy(static_cast<char*>(to) + piece * kSlotBytes, slot.memory, size_of(piece));
  }
}

}  // namespace fornax::cuda
