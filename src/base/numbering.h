// Numbering: numbers objects in the order in which they are first named, for walks over graphs.
// Keeps its memory when cleared.  Not safe for several threads at once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace fornax {

class Numbering {
 public:
  // The object's number; a new one gets the next.
  int number(const void* object) {
    if (objects_.size() * 2 >= slots_.size()) grow();
    int& slot = slots_[place(object)];
    if (slot == 0) {
      objects_.push_back(object);
      slot = int(objects_.size());
    }
    return slot - 1;
  }
  void clear() {
    objects_.clear();
    std::fill(slots_.begin(), slots_.end(), 0);
  }

 private:
  void grow() {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), 0);
    for (size_t i = 0; i < objects_.size(); i++) slots_[place(objects_[i])] = int(i) + 1;
  }
  // The object's slot, or the free one for it.  Objects are hundreds of bytes, so the low bits of
  // an address say little.
  size_t place(const void* object) const {
    const size_t mask = slots_.size() - 1;
    size_t at = size_t(reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[at] != 0 && objects_[size_t(slots_[at] - 1)] != object) at = (at + 1) & mask;
    return at;
  }

  std::vector<int> slots_;  // number + 1, or 0; a power of two, at most half full
  std::vector<const void*> objects_;
};

}  // namespace fornax
