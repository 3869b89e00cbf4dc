// What is known of whole numbers while a kernel is built: their divisors and their differences.
// Holds as long as index arithmetic does not overflow, which the facts of the parameters ensure.
#pragma once
#include <map>

#include "kernel/state.h"

namespace fornax::kernel {

// constant + the sum of coefficient times value.
struct Affine {
  std::map<ValueId, int64_t> terms;
  int64_t constant = 0;
};
Affine affine_of(const Builder::State& state, ValueId value);

// A number that divides the value, as large as is known; 0 for the constant 0, which all divide.
int64_t divisor_of(const Builder::State& state, ValueId value);

// Whether later - earlier is exactly `difference`.
bool differs_by(const Builder::State& state, ValueId later, ValueId earlier, int64_t difference);

// Whether all of these bools are equal: the same value, or comparisons of consecutive numbers with
// a bound that no multiple of their count crosses.
bool all_equal(const Builder::State& state, std::span<const ValueId> masks);

}  // namespace fornax::kernel
