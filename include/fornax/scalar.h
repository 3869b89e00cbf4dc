// Scalar: one number of any dtype, exact for 64-bit integers, doubles and bools.  A plain value.
#pragma once
#include <concepts>
#include <cstdint>

namespace fornax {

class Scalar {
 public:
  enum class Kind : uint8_t { boolean, integer, unsigned_integer, floating };

  Scalar() : Scalar(0) {}
  Scalar(std::same_as<bool> auto value) : integer_(value), kind_(Kind::boolean) {}  // NOLINT
  Scalar(std::signed_integral auto value)
      : integer_(int64_t(value)), kind_(Kind::integer) {}  // NOLINT
  Scalar(std::unsigned_integral auto value)                // NOLINT: implicit on purpose
      requires(!std::same_as<decltype(value), bool>)
      : integer_(int64_t(value)), kind_(Kind::unsigned_integer) {}
  Scalar(std::floating_point auto value)
      : floating_(double(value)), kind_(Kind::floating) {}  // NOLINT

  Kind kind() const { return kind_; }
  double as_double() const {
    if (kind_ == Kind::floating) return floating_;
    return kind_ == Kind::unsigned_integer ? double(uint64_t(integer_)) : double(integer_);
  }
  // Floats are cut toward zero; out-of-range values saturate and NaN gives 0 (docs/semantics.md).
  int64_t as_int64() const;
  uint64_t as_uint64() const;
  bool operator==(const Scalar& other) const {
    return kind_ == other.kind_ && integer_ == other.integer_;
  }

 private:
  union {
    int64_t integer_;
    double floating_;
  };
  Kind kind_;
};

}  // namespace fornax
