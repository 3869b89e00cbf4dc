// M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983: of the product of x and
// 2 / pi in fixed point, only the digits around the point are computed.
#include "backends/flex/angle.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace fornax::flex {
namespace {

using Wide = unsigned __int128;

// 1 / pi, from 64 binary digits before the point on.
constexpr uint64_t kInversePi[] = {0,
                                   0x517cc1b727220a94,
                                   0xfe13abe8fa9a6ee0,
                                   0x6db14acc9e21c820,
                                   0xff28b1d5ef5de2b0,
                                   0xdb92371d2126e970,
                                   0x0324977504e8c90e,
                                   0x7f0ef58e5894d39f,
                                   0x74411afa975da242,
                                   0x74ce38135a2fbf20,
                                   0x9cc8eb1cc1a99cfa,
                                   0x4e422fc5defc941d,
                                   0x8ffc4bffef02cc07,
                                   0xf79788c5ad05368f,
                                   0xb69b3f6793e584db,
                                   0xa7a31fb34f2ff516,
                                   0xba93dd63f5f2f8bd,
                                   0x9e839cfbc5294975,
                                   0x35fdafd88fc6ae84,
                                   0x2b0198237e3db5d5,
                                   0xf867de104d7a1b0e};

uint64_t digits_from(int position) {
  const int word = position / 64, shift = position % 64;
  const uint64_t upper = kInversePi[word] << shift;
  return shift == 0 ? upper : upper | kInversePi[word + 1] >> (64 - shift);
}

// A number below 4, of 192 binary digits; the first two are before the point.
struct Fixed {
  uint64_t top, middle, low;
};

// mantissa * 2^exponent * 2 / pi, without what is a multiple of 4.
Fixed quarters_of(uint64_t mantissa, int exponent) {
  const int first = 63 + exponent;
  const Wide low = Wide(mantissa) * digits_from(first + 128);
  const Wide middle = Wide(mantissa) * digits_from(first + 64) + uint64_t(low >> 64);
  const uint64_t top = mantissa * digits_from(first) + uint64_t(middle >> 64);
  return {top, uint64_t(middle), uint64_t(low)};
}

Fixed negative(Fixed x) {
  const bool carry_low = x.low == 0, carry = carry_low && x.middle == 0;
  return {~x.top + carry, ~x.middle + carry_low, ~x.low + 1};
}

// x > 0 as two doubles.
Angle normalized(Fixed x) {
  int exponent = 62;
  while (x.top == 0) {
    x = {x.middle, x.low, 0};
    exponent += 64;
  }
  if (const int zeros = std::countl_zero(x.top); zeros > 0) {
    x.top = x.top << zeros | x.middle >> (64 - zeros);
    x.middle = x.middle << zeros | x.low >> (64 - zeros);
    exponent += zeros;
  }
  constexpr uint64_t kRest = 0x7ff;  // beyond the digits of a double
  const double low = double(x.top & kRest) + std::ldexp(double(x.middle), -64);
  return {std::ldexp(double(x.top & ~kRest), -exponent), std::ldexp(low, -exponent), 0};
}

}  // namespace

Angle reduce_angle(double x) {
  const int exponent = std::ilogb(x) - 52;
  const auto mantissa = uint64_t(std::ldexp(std::fabs(x), -exponent));
  Fixed rest = quarters_of(mantissa, exponent);
  constexpr uint64_t kHalf = uint64_t(1) << 61, kWhole = 2 * kHalf;
  rest.top += kHalf;
  const int quarters = int(rest.top / kWhole);
  rest.top = rest.top % kWhole - kHalf;
  const bool below = rest.top >> 63;
  const Angle part = normalized(below ? negative(rest) : rest);

  const double quarter = 1.5707963267948966, quarter_low = 6.123233995736766e-17;
  const double sign = below == (x < 0) ? 1 : -1;
  const double high = part.high * quarter, error = std::fma(part.high, quarter, -high);
  const double low = error + (part.high * quarter_low + part.low * quarter);
  return {sign * high, sign * low, x < 0 ? -quarters & 3 : quarters};
}

}  // namespace fornax::flex
