// The gradient column of ops.def, compiled, and the table of all rules.
#include "grad/rules.h"

namespace fornax {

Tensor pow_gradient_base(const Tensor& a, const Tensor& b) {
  return where(b == 0, 0, b * pow(a, b - 1));
}

Tensor pow_gradient_exponent(const Tensor& a, const Tensor& y) {
  return where(a == 0, 0, y * log(a));
}

Tensor share_of_larger(const Tensor& a, const Tensor& b) {
  return where(a == b, 0.5, (a > b).cast(a.dtype()));
}

namespace {

[[maybe_unused]] constexpr None none{};  // the gradient column's word; hides the index's

#define OP1(name, rule, value, dx, doc)                                  \
  void grad_##name(Backward& b) {                                        \
    [[maybe_unused]] const Tensor &x = b.input(0), &y = b.y, &dy = b.dy; \
    if (b.wants(0)) b.set(0, dx);                                        \
  }
#define OP2(name, rule, value, da, db, doc)                               \
  void grad_##name(Backward& back) {                                      \
    [[maybe_unused]] const Tensor &a = back.input(0), &b = back.input(1); \
    [[maybe_unused]] const Tensor &y = back.y, &dy = back.dy;             \
    if (back.wants(0)) back.set(0, da);                                   \
    if (back.wants(1)) back.set(1, db);                                   \
  }
#define OP3(name, rule, value, da, db, dc, doc)                           \
  void grad_##name(Backward& back) {                                      \
    [[maybe_unused]] const Tensor &a = back.input(0), &b = back.input(1); \
    [[maybe_unused]] const Tensor& c = back.input(2);                     \
    [[maybe_unused]] const Tensor &y = back.y, &dy = back.dy;             \
    if (back.wants(0)) back.set(0, da);                                   \
    if (back.wants(1)) back.set(1, db);                                   \
    if (back.wants(2)) back.set(2, dc);                                   \
  }
#include <fornax/ops.def>

constexpr GradientRule kRules[] = {
#define OP1(name, ...) grad_##name,
#define OP2(name, ...) grad_##name,
#define OP3(name, ...) grad_##name,
#define OPX(name, ...) fornax::grad_##name,
#include <fornax/ops.def>
};

}  // namespace

GradientRule gradient_rule(Op op) { return kRules[size_t(op)]; }

}  // namespace fornax
