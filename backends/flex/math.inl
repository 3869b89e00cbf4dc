// The functions of Num<float> and Num<double> that take many instructions, at most 2 ulp from the
// true value everywhere.  Every lane is computed alike whatever its neighbours are; the rare ones
// that the quick way does not serve are selected afterwards.  Included as number.inl is.
#if defined(FORNAX_FLEX_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_INL
#undef FORNAX_FLEX_MATH_INL
#else
#define FORNAX_FLEX_MATH_INL
#endif

#include "backends/flex/math_divide.inl"
#include "backends/flex/math_erf.inl"
#include "backends/flex/math_exp.inl"
#include "backends/flex/math_inverse.inl"
#include "backends/flex/math_log.inl"
#include "backends/flex/math_power.inl"
#include "backends/flex/math_trig.inl"

#endif
