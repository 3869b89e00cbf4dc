// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; 2011):
// a block of four random words is a pure function of a key and a counter, so any thread of any
// device can make any part of a sequence.
#pragma once
#include <array>
#include <cstdint>

namespace fornax {

// Block number `counter` (its upper half in `counter_high`) of the sequence named `key`.
constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter,
                                         uint64_t counter_high = 0) {
  uint32_t key0 = uint32_t(key), key1 = uint32_t(key >> 32);
  uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32);
  uint32_t c2 = uint32_t(counter_high), c3 = uint32_t(counter_high >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t product0 = uint64_t(0xD2511F53) * c0, product1 = uint64_t(0xCD9E8D57) * c2;
    c0 = uint32_t(product1 >> 32) ^ c1 ^ key0;
    c1 = uint32_t(product1);
    c2 = uint32_t(product0 >> 32) ^ c3 ^ key1;
    c3 = uint32_t(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

// Word number `i` of what op random_bits gives for `key` and `counter`.
constexpr uint32_t random_word(uint64_t key, uint64_t counter, uint64_t i) {
  return philox(key, counter + i / 4)[i % 4];
}

}  // namespace fornax
