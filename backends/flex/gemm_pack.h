// Bringing operands into the form that the tiles read, and memory for it.
// Free functions over the caller's memory; safe from any thread.
#pragma once
#include <fornax/dtype.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fornax::flex {

// Scratch memory for one call, 64-byte aligned, uninitialised.  Each thread keeps a few blocks, so
// that a kernel does not fault in fresh pages every time.  Error(out_of_memory).
class Workspace {
 public:
  explicit Workspace(size_t bytes);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  size_t bytes_;
};

// An element in the type that products are summed in.  The half conversions are written out here,
// because a packing loop with a call per element does not become vector code.
template <class T, class S>
inline T widen(S value) {
  if constexpr (std::is_same_v<S, BFloat16>) {
    return T(std::bit_cast<float>(uint32_t(value.bits) << 16));
  } else if constexpr (std::is_same_v<S, Float16>) {
    // The exponent is rebased by an exact product, which normalises subnormal numbers too.
    const uint32_t magnitude = uint32_t(value.bits & 0x7fff) << 13;
    uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    bits |= (value.bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    return T(std::bit_cast<float>(bits | uint32_t(value.bits & 0x8000) << 16));
  } else if constexpr (std::is_class_v<S>) {
    return T(float(value));
  } else {
    return T(value);
  }
}

// A sum as an element of the result, rounded once.
template <class S, class T>
inline S narrow(T value) {
  if constexpr (std::is_class_v<S>) {
    return S(float(value));
  } else {
    return S(value);
  }
}

// A packed panel: to[p * width + i] = from[i * across + p * along] for i < valid, 0 up to width.
template <class T, class S>
void pack_panel(const S* from, int64_t across, int64_t along, int width, int valid, int64_t depth,
                T* to) {
  int i = 0;
  if (across == 1) {
    for (int64_t p = 0; p < depth; p++) {
      const S* line = from + p * along;
      T* out = to + p * width;
      for (i = 0; i < valid; i++) out[i] = widen<T>(line[i]);
    }
  }
  for (; i < valid; i++) {
    const S* line = from + i * across;
    for (int64_t p = 0; p < depth; p++) to[p * width + i] = widen<T>(line[p * along]);
  }
  for (; i < width; i++) {
    for (int64_t p = 0; p < depth; p++) to[p * width + i] = 0;
  }
}
// By four or sixteen at a time.
template <>
void pack_panel(const float* from, int64_t across, int64_t along, int width, int valid,
                int64_t depth, float* to);

// Panels of `count` lines in all, `step` elements apart; the last may be filled up with 0.
template <class T, class S>
void pack_panels(const S* from, int64_t across, int64_t along, int width, int64_t count,
                 int64_t depth, int64_t step, T* to) {
  for (int64_t i = 0; i < count; i += width, to += step) {
    const int valid = int(count - i < width ? count - i : width);
    pack_panel(from + i * across, across, along, width, valid, depth, to);
  }
}
// Reads rows that lie in the order of `to` through all panels before the next.
template <>
void pack_panels(const float* from, int64_t across, int64_t along, int width, int64_t count,
                 int64_t depth, int64_t step, float* to);

// Calls body with a null pointer to the element type of a floating `dtype`.
template <class Body>
void with_float_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f8e4m3:
      return body(static_cast<const Float8E4M3*>(nullptr));
    case DType::f8e5m2:
      return body(static_cast<const Float8E5M2*>(nullptr));
    case DType::f16:
      return body(static_cast<const Float16*>(nullptr));
    case DType::bf16:
      return body(static_cast<const BFloat16*>(nullptr));
    case DType::f64:
      return body(static_cast<const double*>(nullptr));
    default:
      return body(static_cast<const float*>(nullptr));
  }
}

}  // namespace fornax::flex
