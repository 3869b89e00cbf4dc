// The functions of graph/number.h on Values, so that the value column of ops.def builds kernels,
// and operators for kernels written by hand.  Operands of a small dtype are computed in f32 or 32
// bits and brought back.
#pragma once
#include "graph/op.h"
#include "kernel/build.h"

namespace fornax::kernel {

// Of bools, + is or and * is and.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);  // of whole numbers without the fraction; b is not 0
Value operator%(Value a, Value b);  // of whole numbers, with the sign of a; b is not 0
Value operator-(Value x);
Value operator==(Value a, Value b);
Value operator!=(Value a, Value b);
Value operator<(Value a, Value b);
Value operator<=(Value a, Value b);
inline Value operator>(Value a, Value b) { return b < a; }
inline Value operator>=(Value a, Value b) { return b <= a; }
// Of bools and whole numbers.
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator<<(Value a, Value b);
Value operator>>(Value a, Value b);
Value operator!(Value x);

// One instruction each.
#define FORNAX_UNARY(name) Value name(Value x);
#define FORNAX_BINARY(name) Value name(Value a, Value b);
#define FORNAX_NUMBER_CODES                                                                      \
  FORNAX_UNARY(sqrt)                                                                             \
  FORNAX_UNARY(rsqrt) FORNAX_UNARY(exp) FORNAX_UNARY(exp2) FORNAX_UNARY(expm1) FORNAX_UNARY(log) \
      FORNAX_UNARY(log2) FORNAX_UNARY(log10) FORNAX_UNARY(log1p) FORNAX_UNARY(sin)               \
          FORNAX_UNARY(cos) FORNAX_UNARY(tan) FORNAX_UNARY(asin) FORNAX_UNARY(acos)              \
              FORNAX_UNARY(atan) FORNAX_UNARY(sinh) FORNAX_UNARY(cosh) FORNAX_UNARY(tanh)        \
                  FORNAX_UNARY(asinh) FORNAX_UNARY(acosh) FORNAX_UNARY(atanh) FORNAX_UNARY(erf)  \
                      FORNAX_BINARY(atan2) FORNAX_BINARY(min) FORNAX_BINARY(max)                 \
                          FORNAX_BINARY(mul_high) FORNAX_BINARY(copy_sign)                       \
                              FORNAX_BINARY(next_after)
FORNAX_NUMBER_CODES
#undef FORNAX_UNARY
#undef FORNAX_BINARY
Value fma(Value a, Value b, Value c);

Value is_nan(Value x);
Value is_inf(Value x);
Value is_finite(Value x);
Value abs(Value x);
Value sign(Value x);
Value sigmoid(Value x);
Value floor(Value x);
Value ceil(Value x);
Value round(Value x);
Value trunc(Value x);
Value fmod(Value a, Value b);
Value remainder(Value a, Value b);
Value trunc_divide(Value a, Value b);
Value floor_divide(Value a, Value b);
Value pow(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value bitwise_not(Value x);
Value bitwise_and(Value a, Value b);
Value bitwise_or(Value a, Value b);
Value bitwise_xor(Value a, Value b);
Value shift_left(Value a, Value b);
Value shift_right(Value a, Value b);
Value select(Value condition, Value yes, Value no);

// The value column of a pointwise op.  Operands share a dtype, save the condition of `where`.
Value evaluate(Builder& builder, Op op, std::span<const Value> operands);

}  // namespace fornax::kernel
