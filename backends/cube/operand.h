// How a kernel sees what a launch gives it: operands with strides, extents that positions are
// divided by, and numbers.  Each comes as a pair: declare_x() inside the kernel, which reads a
// class alone, and pass_x() beside the launch, which adds the actual numbers.  Calls on both sides
// must come in one order.
//
//   struct: nest of rank 2, x walked with strides {s, 1}
//   kernel                                             launch
//   View x = declare_view(k, "x", c, false, i32);      pass_view(arguments, Place::input(0), c,
//                                                                nest.extents, nest.strides[0],
//                                                                i32);
//   auto divisors = declare_extents(k, 2, i32);        pass_extents(arguments, nest.extents, i32);
//   Position p = position_of(k, divisors, element);
//   Value v = k.load(x.memory, x.index(k, p));
//
// Indices are of dtype `index`, i32 or i64 (index_dtype()).
#pragma once
#include <string>
#include <vector>

#include "backends/cube/launch.h"
#include "backends/cube/shape_class.h"
#include "kernel/number.h"

namespace fornax::cube {

using kernel::Builder;
using kernel::Value;
using Position = std::vector<Value>;  // per axis

// A tensor inside a kernel; of one that is a number, only `number` is there.
struct View {
  ViewClass known;
  Value number;
  Value memory;
  Value first;                 // where position 0 lies; none: at 0
  std::vector<Value> strides;  // per axis, without sign

  // The element at `position`, counted in `memory`.
  Value index(Builder& k, const Position& position) const;
  Value load(Builder& k, const Position& position) const;
  // `otherwise` where `mask` is false, and no access then.
  Value load(Builder& k, const Position& position, Value mask, Value otherwise) const;
  Value load_vector(Builder& k, const Position& position, int lanes) const;
  void store(Builder& k, const Position& position, Value value) const;
};
View declare_view(Builder& k, const std::string& name, const ViewClass& known, bool written,
                  DType index);
// Position 0 is element `first` of the place.
void pass_view(Arguments& arguments, Place place, const ViewClass& known,
               const std::vector<int64_t>& extents, const Strides& strides, DType index,
               int64_t first = 0);

// An extent, and how an i32 is divided by it without a division: by a multiplication whose upper
// half is kept (Granlund, Montgomery: Division by Invariant Integers using Multiplication; 1994).
struct Extent {
  Value size, multiplier, shift;
};
// Requires: the number is not negative.
Value divide(Builder& k, const Extent& extent, Value number);
Extent declare_extent(Builder& k, const std::string& name, DType index);
void pass_extent(Arguments& arguments, int64_t extent, DType index);
std::vector<Extent> declare_extents(Builder& k, int rank, DType index);
void pass_extents(Arguments& arguments, const std::vector<int64_t>& extents, DType index);
// The position of row-major element number `element` among `extents`.
Position position_of(Builder& k, const std::vector<Extent>& extents, Value element);

// A number of an op full; Arguments::scalar() is the other side.
Value declare_scalar(Builder& k, const std::string& name, DType dtype);

// The number of this thread among all, in dtype `index`.
Value thread_number(Builder& k, DType index);

// Work on row-major elements 0 ... count - 1, in vectors: thread i has those from i * lanes on;
// with `turns` above 1 a block has so many times its threads' vectors, and a thread those that are
// its block's threads apart.  Unless the count is a promised multiple of `lanes`, what is left over
// has a thread per element, and the body is built a second time, for one lane.
struct Vectors {
  DType index = DType::i32;
  int lanes = 1;
  bool whole = true;  // the count is a multiple of `lanes`
  int turns = 1;
};
std::string key_of(const Vectors& vectors);  // "i32 v4 tail"
// `body` computes the vectors that begin at some elements; all turns at once where none is outside.
void for_vectors(Builder& k, const Vectors& vectors,
                 FunctionRef<void(std::span<const Value> elements, int lanes)> body);
// The count, and how many blocks of `threads` threads are needed.
void pass_vectors(Arguments& arguments, const Vectors& vectors, int64_t count);
runtime::Grid grid_of(const Vectors& vectors, int64_t count, int threads);

// A pointwise step or a cast, on what it reads.
Value run_step(Builder& k, const Step& step, std::span<const Value> operands);

// `value` as a vector of so many lanes.
Value widen(Builder& k, Value value, int lanes);

}  // namespace fornax::cube
