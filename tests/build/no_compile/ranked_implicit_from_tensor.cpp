// expect: Ranked<2
#include <fornax/ranked.h>

using namespace fornax;

Ranked<2> checked_nowhere(const Tensor& x) { return x; }
