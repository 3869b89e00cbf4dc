// Comparing results: bit by bit, or within the tolerance that an op and a dtype have.
//
// Tolerances, once:
//   whole numbers and bool     equal
//   ops rounded once by IEEE   equal: + - * / sqrt, comparisons, moves, divisions with remainder
//   f8, f16, bf16              1 unit in the last place: computed in f32, the reference in f64
//   other functions, f32       5 units: 4 of a device's functions and 1 of the reference's libm
//   other functions, f64       5 units likewise
//   sums                       1 unit for rounding the result, and (4 + sqrt(terms)) roundings of
//   the
//                              accumulator (f32, or f64 for f64) of the sum of magnitudes: errors
//                              of any order of summation are random and grow like the root
//   products                   1 unit, and a rounding per factor: equal factors round alike
// NaN equals NaN whatever its bits.  Where one result overflows and the other nearly does, infinity
// counts as the next power of two.
#pragma once
#include <fornax/tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/ops/sample.h"

namespace fornax::conformance {

// A result on the host.
struct Host {
  Type type;
  std::vector<std::byte> bytes;
};
Host read(const Tensor& tensor);

struct Tolerance {
  double units = 0;              // of the last place of the wanted number
  std::vector<double> absolute;  // per element; empty: none
};
// What `op` may differ by from the reference, which computes the magnitudes of sums for it.
Tolerance tolerance_of(Op op, const Sample& sample, const std::vector<Tensor>& reference_inputs);

// Whether IEEE 754 gives one right answer.
bool is_exact(Op op);

// What is wrong with `got`, or nothing.
std::optional<std::string> difference(const Host& got, const Host& want,
                                      const Tolerance& tolerance = {});

}  // namespace fornax::conformance
