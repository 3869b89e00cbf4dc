// expect: Ranked: matmul needs at least 2 axes
#include <fornax/ranked.h>

using namespace fornax;

Tensor product(const Ranked<1>& a, const Ranked<1>& b) { return a.matmul(b).tensor(); }
