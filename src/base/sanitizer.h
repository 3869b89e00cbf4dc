// What the library tells the sanitizers that it is compiled with, if any.
//
// An allocator that keeps freed memory hides from the address sanitizer what others do to that
// memory, so it says itself which bytes may be touched.  Elsewhere all of this compiles to nothing.
#pragma once
#include <cstddef>

// g++ defines macros, clang answers questions.
#if defined(__SANITIZE_ADDRESS__)
#define FORNAX_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define FORNAX_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORNAX_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define FORNAX_THREAD_SANITIZER
#endif
#endif

#ifdef FORNAX_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace fornax {

#ifdef FORNAX_THREAD_SANITIZER
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#ifdef FORNAX_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitizer = true;
// Touching these bytes is an error from here on.  The end must be a multiple of 8.
inline void forbid_bytes(const void* first, size_t bytes) {
  __asan_poison_memory_region(first, bytes);
}
inline void allow_bytes(const void* first, size_t bytes) {
  __asan_unpoison_memory_region(first, bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void forbid_bytes(const void*, size_t) {}
inline void allow_bytes(const void*, size_t) {}
#endif

}  // namespace fornax
