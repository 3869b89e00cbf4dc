// Reduction of angles that are too large for the vector functions of math_trig.inl.
#pragma once

namespace fornax::flex {

// An angle is high + low, good to one part in 2^70, after so many quarter turns.
struct Angle {
  double high, low;
  int quarters;  // without multiples of 4
};

// At most an eighth of a turn remains.  Requires: x is finite and |x| >= 1.  Safe from any thread.
Angle reduce_angle(double x);

}  // namespace fornax::flex
