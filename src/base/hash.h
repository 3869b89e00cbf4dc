// A 128-bit hash (FNV-1a) for keys on disk: the same on every machine and in every version, and
// wide enough that unequal texts do not meet.  No protection against somebody who wants them to.
#pragma once
#include <cstdint>
#include <string_view>

namespace fornax {

struct Hash128 {
  uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// Parts are told apart: ("ab", "c") and ("a", "bc") differ.
template <class... Parts>
Hash128 hash128(const Parts&... parts) {
  using Wide = unsigned __int128;
  constexpr Wide kPrime = (Wide{1} << 88) + 0x13b;
  Wide state = (Wide{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
  const auto add = [&](unsigned char byte) { state = (state ^ byte) * kPrime; };
  const auto add_part = [&](std::string_view part) {
    for (int shift = 0; shift < 64; shift += 8)
      add(static_cast<unsigned char>(part.size() >> shift));
    for (const char c : part) add(static_cast<unsigned char>(c));
  };
  (add_part(parts), ...);
  return {uint64_t(state >> 64), uint64_t(state)};
}

}  // namespace fornax
