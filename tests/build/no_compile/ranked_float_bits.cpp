// expect: Ranked: a Float has no bits to combine
#include <fornax/ranked.h>

using namespace fornax;

Tensor both(const Ranked<1>& a, const Ranked<1>& b) { return (a & b).tensor(); }
