// The loops of reductions, per instruction set.  Their order of operations depends on counts alone,
// so that a result does not depend on threads, strides or fusion.  Pure, any thread.
#pragma once
#include <cstdint>

#include "backends/flex/stages.h"

namespace fornax::flex {

enum class Fold : uint8_t { sum, prod, max, min };

// T is float, double, int64_t or uint64_t.
template <class T>
struct Folds {
  // All of x[0, count); the fold's identity where count is 0.
  T (*block)(const T* x, int64_t count);
  // The same, but what lies in a vector's lanes at `into` comes first, and the lanes stay apart.
  void (*to_vector)(const T* x, int64_t count, T* into);
  // Of a vector's lanes.
  T (*vector)(const T* x);
  // result[r] of x[r * length] ... x[r * length + length - 1], length from 1 to kShortRow.
  void (*short_rows)(const T* x, int64_t rows, int64_t length, T* result);
  // Of two numbers.
  T (*pair)(T a, T b);
  // Where in x[0, count) `value`, which may be NaN, stands first.  Requires: it does.
  int64_t (*find)(const T* x, int64_t count, T value);
  // result[k] of rows[0][k] ... rows[n - 1][k], n from 1 to 8; result may be one of the rows.
  void (*rows)(const T* const* rows, int n, int64_t width, T* result);
  T neutral;  // what folds with anything to the same bits
};
template <class T>
Folds<T> folds(Fold fold);
// The stage that folds registers of `lane` into memory x: each element into its own place, or all
// of them into one vector.
AnyStage fold_stage(Fold fold, DType lane, bool to_vector);

inline constexpr int kRowsAtOnce = 8;
inline constexpr int64_t kShortRow = 32;

}  // namespace fornax::flex
