#include "kernel/races.h"

#include <algorithm>

namespace fornax::kernel {

Races::Memory Races::watch(const void* begin, int64_t bytes, int64_t granule) {
  auto& [known, elements] = shadows_[begin];
  if (known == 0) known = granule;
  // Watched before with another granule: only bytes that both can tell apart are told apart, and
  // the first watch of a memory takes the finest one that its launch has.
  elements.resize(std::max(elements.size(), size_t((bytes + known - 1) / known)));
  return {&elements, 0, known};
}

Races::Element& Races::element(const Memory& memory, int64_t byte) {
  Element& found = (*memory.elements)[size_t((memory.first_byte + byte) / memory.granule)];
  if (found.epoch != epoch_) {
    found = {};
    found.epoch = epoch_;
  }
  return found;
}

bool Races::touch(const Memory& memory, int64_t byte, int32_t warp, InstructionId at, Touch how,
                  InstructionId& other) {
  Element& e = element(memory, byte);
  if (e.writer >= 0 && e.writer != warp) {
    other = e.written_at;
    return true;
  }
  for (int i = 0; i < 2; i++) {
    if (how != Touch::write || e.warps[i] < 0 || e.warps[i] == warp) continue;
    other = e.at[i];
    return true;
  }
  if (how == Touch::write) {
    e.writer = warp;
    e.written_at = at;
  }
  const int slot = e.warps[0] < 0 || e.warps[0] == warp ? 0 : 1;
  e.warps[slot] = warp;
  e.at[slot] = at;
  return false;
}

bool Races::stored_twice(const Memory& memory, int64_t byte) {
  Element& e = element(memory, byte);
  const bool twice = e.store == store_;
  e.store = store_;
  return twice;
}

}  // namespace fornax::kernel
