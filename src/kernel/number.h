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
Value operator~(Value x);
// Would be taken for a question whether there is a value: say `~` or Value::none().
Value operator!(Value x) = delete;

// One instruction each (kernel/codes.def).
Value sqrt(Value x);
Value rsqrt(Value x);
Value exp(Value x);
Value exp2(Value x);
Value expm1(Value x);
Value log(Value x);
Value log2(Value x);
Value log10(Value x);
Value log1p(Value x);
Value sin(Value x);
Value cos(Value x);
Value tan(Value x);
Value asin(Value x);
Value acos(Value x);
Value atan(Value x);
Value sinh(Value x);
Value cosh(Value x);
Value tanh(Value x);
Value asinh(Value x);
Value acosh(Value x);
Value atanh(Value x);
Value erf(Value x);
Value atan2(Value a, Value b);
Value min(Value a, Value b);
Value max(Value a, Value b);
Value mul_high(Value a, Value b);
Value copy_sign(Value a, Value b);
Value next_after(Value a, Value b);
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
