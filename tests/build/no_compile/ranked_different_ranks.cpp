// expect: Ranked: operands have different ranks
#include <fornax/ranked.h>

using namespace fornax;

Tensor add_row(const Ranked<2>& matrix, const Ranked<1>& row) { return (matrix + row).tensor(); }
