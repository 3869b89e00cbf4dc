// Samples: operands and attributes to try an op on.  Elementwise ops get theirs from their row of
// ops.def; an op that moves data has a function samples_<name> in samples_*.cpp, and one without it
// is a link error that names it.  Nothing else lists ops.
//
// A sample is data: the same one is made on every device, in every form.  All pure functions.
#pragma once
#include <fornax/tensor.h>

#include <string>
#include <vector>

#include "graph/type.h"

namespace fornax::conformance {

// The numbers of an operand.
enum class Fill {
  tame,      // floats in [-2, 2], integers in [-9, 9] or [0, 9]
  special,   // NaN, infinities, signed zeros, extremes, and tame ones between
  ties,      // few different numbers, so that many are equal
  unit,      // near 1 and -1: products stay finite
  position,  // integers from 0 below `limit`
};

struct Input {
  Type type;
  Fill fill = Fill::tame;
  int64_t limit = 0;
};

struct Sample {
  std::vector<Input> inputs;
  Attributes attributes;
};
using Samples = std::vector<Sample>;
std::string text_of(const Sample& sample);  // "f32[2,3] f32[3] {1}"

// How an operand's elements lie in memory.
enum class Form { contiguous, shifted, transposed, stepped, reversed, repeated, number };
inline constexpr Form kForms[] = {Form::contiguous, Form::shifted,  Form::transposed, Form::stepped,
                                  Form::reversed,   Form::repeated, Form::number};
std::string_view name_of(Form form);

// What `op` is tried on with operands of `dtype`; empty where that makes no sense.
Samples samples_of(Op op, DType dtype);
// Few and small ones, without special numbers, for gradients.
Samples gradient_samples_of(Op op);
// One large one for timing; no inputs where there is none.
Sample speed_sample_of(Op op, DType dtype);

// One sample function per op that moves data.
#define OPX(name, ...) Samples samples_##name(DType dtype);
#include <fornax/ops.def>

// Row-major elements of operand number `operand`, equal for equal arguments.
std::vector<std::byte> elements_of(const Input& input, int operand, uint64_t seed);
Tensor make(const Input& input, int operand, Form form, uint64_t seed, Device device);
std::vector<Tensor> make_all(const Sample& sample, Form form, uint64_t seed, Device device);

Tensor apply(Op op, const std::vector<Tensor>& inputs, const Attributes& attributes);
// Whether the type rule of `op` takes operands of `dtype`.
bool takes(Op op, DType dtype);

}  // namespace fornax::conformance
