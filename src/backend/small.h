// Loops that a backend has for pointwise ops on so few elements that a group does not pay.
#pragma once
#include <fornax/dtype.h>

#include <array>

namespace fornax {

// Computes a pointwise op of at most kSmallElements elements at once: operands are contiguous with
// the result's shape or single elements.  The results are bit for bit those of a group.
inline constexpr int64_t kSmallElements = 512;
using SmallLoop = void (*)(int64_t count, void* result, const void* const* operands,
                           const bool* single);
// By the operands' dtype (of where, that of its last two) and op; null where there is none.
using SmallLoops = std::array<std::array<SmallLoop, 256>, kDTypeCount>;

}  // namespace fornax
