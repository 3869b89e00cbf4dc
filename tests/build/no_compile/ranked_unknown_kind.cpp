// expect: Ranked: a kind must be Float, Int or Bool
#include <fornax/ranked.h>

fornax::Tensor value(const fornax::Ranked<1, double>& x) { return x.tensor(); }
