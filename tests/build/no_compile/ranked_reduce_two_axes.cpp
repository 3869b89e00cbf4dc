// expect: Site
#include <fornax/ranked.h>

using namespace fornax;

// Two axes at once would leave a rank that the type does not say.
Tensor total(const Ranked<3>& x) { return x.sum({0, 1}).tensor(); }
