// The meaning of pointwise ops and of conversions between dtypes, number by number: what reference,
// constant folding and conversions on the host share.  Pure functions, safe from any thread.
//
// Rounding.  An op computes its result in the number type of its operands (graph/number.h) and
// brings it to the result's dtype once: floats round to nearest, ties to even; integers wrap.
//
// Conversion (the op cast, and numbers given to ops).
//   to bool              whether it is not 0, so NaN is true
//   float to integer     without the fraction, saturating; NaN gives 0
//   integer to integer   the low bits, as in C++
//   to float             rounded once, ties to even; too large gives infinity (NaN for f8e4m3)
#pragma once
#include <fornax/dtype.h>
#include <fornax/scalar.h>

#include <bit>
#include <span>

#include "graph/number.h"
#include "graph/op.h"

namespace fornax {

// One element in the number type of its dtype, as 64 bits; of a Boolean, 0 or 1.
struct Word {
  uint64_t bits = 0;
  bool operator==(const Word&) const = default;
};

inline Word word_of(double x) { return {std::bit_cast<uint64_t>(x)}; }
inline Word word_of(numbers::Signed x) { return {x.bits()}; }
inline Word word_of(uint64_t x) { return {x}; }
inline Word word_of(numbers::Boolean x) { return {x.value}; }

template <class N>
N as(Word word) {
  if constexpr (std::same_as<N, double>) {
    return std::bit_cast<double>(word.bits);
  } else if constexpr (std::same_as<N, numbers::Signed>) {
    return numbers::Signed::wrap(word.bits);
  } else {
    return N(word.bits);
  }
}

// body(N()) with the number type N of `dtype`.
template <class Body>
decltype(auto) with_number_type(DType dtype, Body&& body) {
  switch (info(dtype).kind) {
    case Kind::boolean:
      return body(numbers::Boolean());
    case Kind::unsigned_integer:
      return body(uint64_t());
    case Kind::signed_integer:
      return body(numbers::Signed());
    default:
      return body(double());
  }
}

// Element `index` of memory that holds elements of `dtype`.
Word load(DType dtype, const void* memory, int64_t index);
// Requires: word is a number of `dtype` (the result of load, convert, round_to or evaluate).
void store(DType dtype, void* memory, int64_t index, Word word);

void convert(DType from, DType to, std::span<Word> words);
// Words that hold results of arithmetic in the number type of `dtype`, brought to `dtype`.
inline void round_to(DType dtype, std::span<Word> words) { convert(dtype, dtype, words); }

// `scalar` converted to `dtype`, and a number of `dtype` as a scalar.
Word word_of(DType dtype, const Scalar& scalar);
Scalar scalar_of(DType dtype, Word word);
inline Scalar round_to(DType dtype, const Scalar& scalar) {
  return scalar_of(dtype, word_of(dtype, scalar));
}

// result[i] = op(operands[0][i], operands[1][i], ...).  `dtype` is that of the operands; for
// `where`, of the last two, while the first is bool.  A result may be one of the operands.
// Requires: op is pointwise, and its type rule takes `dtype`.
void evaluate(Op op, DType dtype, std::span<const Word* const> operands, std::span<Word> result);
// The same for one element, operands converted to `dtype` first.
Scalar evaluate(Op op, DType dtype, std::span<const Scalar> operands);

// The dtype of the result of a pointwise op on operands of `dtype`.
DType result_dtype(Op op, DType dtype);

}  // namespace fornax
