#include "tensor/autocast.h"

#include <utility>

#include "base/error.h"

namespace fornax {
namespace {

constinit thread_local std::optional<DType> products;

constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

std::optional<DType> autocast() { return products; }
std::optional<DType> set_autocast(std::optional<DType> dtype) {
  return std::exchange(products, dtype);
}

DType taken_dtype(Op op, DType dtype) {
  if (!products || (dtype != DType::f32 && !is_half(dtype))) return dtype;
  switch (info(op).precision) {
    case Precision::narrow:
      return *products;
    case Precision::wide:
      return DType::f32;
    default:
      return dtype;
  }
}

Autocast::Autocast(DType dtype, Site site) : before_(products) {
  Call call("Autocast", site);
  if (!is_half(dtype)) {
    fail(ErrorKind::dtype,
         "autocast: products can be of f16 or bf16, got {}; NoAutocast switches it off",
         name_of(dtype));
  }
  products = dtype;
}
Autocast::~Autocast() { products = before_; }

NoAutocast::NoAutocast() : before_(set_autocast({})) {}
NoAutocast::~NoAutocast() { products = before_; }

}  // namespace fornax
