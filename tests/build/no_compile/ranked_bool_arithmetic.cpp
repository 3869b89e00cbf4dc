// expect: Ranked: a Bool has no arithmetic
#include <fornax/ranked.h>

using namespace fornax;

Tensor count(const Ranked<2>& x) { return ((x > 0.0) * x).tensor(); }
