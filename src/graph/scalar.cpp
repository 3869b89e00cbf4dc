#include <fornax/scalar.h>

#include <limits>

namespace fornax {

int64_t Scalar::as_int64() const {
  if (kind_ != Kind::floating) return integer_;
  if (floating_ != floating_) return 0;
  if (floating_ >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (floating_ < -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return int64_t(floating_);
}

uint64_t Scalar::as_uint64() const {
  if (kind_ != Kind::floating) return uint64_t(integer_);
  if (!(floating_ > 0)) return 0;
  if (floating_ >= 18446744073709551616.0) return std::numeric_limits<uint64_t>::max();
  return uint64_t(floating_);
}

}  // namespace fornax
