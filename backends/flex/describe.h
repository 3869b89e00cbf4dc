// What the CPU device tells people about itself.
#pragma once
#include <string>

namespace fornax::flex {

std::string describe_cpu();  // "AMD EPYC 7763, avx2, 2 threads"

}  // namespace fornax::flex
