// Element types: the enum, what is known of each, and the storage types that C++ lacks.
// Everything here is a value and safe to use from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fornax {

// A float stored in fewer bits.  Converting from float rounds to nearest, ties to even; converting
// to float is exact.  Out-of-range values become infinity, or NaN for e4m3, which has no infinity.
#define FORNAX_SMALL_FLOAT(name, storage)                                             \
  struct name {                                                                       \
    storage bits = 0;                                                                 \
    name() = default;                                                                 \
    explicit name(float value);                                                       \
    explicit operator float() const;                                                  \
    bool operator==(const name& other) const { return float(*this) == float(other); } \
  };
FORNAX_SMALL_FLOAT(Float16, uint16_t)
FORNAX_SMALL_FLOAT(BFloat16, uint16_t)
FORNAX_SMALL_FLOAT(Float8E4M3, uint8_t)
FORNAX_SMALL_FLOAT(Float8E5M2, uint8_t)
#undef FORNAX_SMALL_FLOAT

enum class DType : uint8_t {
#define FORNAX_DTYPE(name, ...) name,
#include <fornax/dtypes.def>
};

enum class Kind : uint8_t { boolean, unsigned_integer, signed_integer, floating };

struct DTypeInfo {
  std::string_view name;  // "f32"; bool_ prints as "bool"
  Kind kind;
  uint8_t size;  // bytes per element
  std::string_view documentation;
};

inline constexpr DTypeInfo kDTypes[] = {
#define FORNAX_DTYPE(name, type, kind, compute, documentation) \
  {#name, Kind::kind, uint8_t(sizeof(type)), documentation},
#include <fornax/dtypes.def>
};
inline constexpr int kDTypeCount = int(sizeof(kDTypes) / sizeof(kDTypes[0]));

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[size_t(dtype)]; }
constexpr size_t size_of(DType dtype) { return info(dtype).size; }
constexpr std::string_view name_of(DType dtype) {
  return dtype == DType::bool_ ? std::string_view("bool") : info(dtype).name;
}
constexpr bool is_floating(DType dtype) { return info(dtype).kind == Kind::floating; }
constexpr bool is_boolean(DType dtype) { return dtype == DType::bool_; }
constexpr bool is_integer(DType dtype) { return !is_floating(dtype) && !is_boolean(dtype); }
constexpr bool is_signed(DType dtype) {
  return info(dtype).kind == Kind::signed_integer || is_floating(dtype);
}

// The dtype named `name` ("f32", "bool"); false where there is none.
bool parse_dtype(std::string_view name, DType& out);

// DType of a C++ type: dtype_of<float> == DType::f32.
template <class T>
struct DTypeOf;
#define FORNAX_DTYPE(name, type, ...)           \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
#include <fornax/dtypes.def>
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// The dtype both operands of an arithmetic op are brought to (docs/semantics.md has the table):
// bool < unsigned < signed < floating, the wider of one kind; unsigned with signed gives a signed
// type that holds both (u64 with any signed gives i64); f16 with bf16 gives f32; f8 types give f16.
DType promote(DType a, DType b);

}  // namespace fornax
