// Gradient rules: what each op adds to its operands' gradients, as tensor expressions.
#pragma once
#include <fornax/ops.h>

#include "base/few.h"
#include "grad/parts.h"
#include "graph/attributes.h"
#include "graph/tape.h"

namespace fornax {

// No gradient flows to this operand.
struct None {};

// What a rule sees of one step of the backward pass and what it leaves.
class Backward {
 public:
  Backward(const Tape& tape, Tensor result, Tensor gradient)
      : y(std::move(result)), dy(std::move(gradient)), tape_(tape) {
    for (size_t i = 0; i < tape.edges.size(); i++) gradients_.emplace_back();
  }
  // The operands as far as the gradient reads them, in order.
  void read(Tensor input) { inputs_.push_back(std::move(input)); }

  const Attributes& attributes() const { return tape_.attributes; }
  const Type& type() const { return tape_.type; }
  const Type& input_type(int i) const { return tape_.input_types[size_t(i)]; }
  // Operand i, where the `saved` column of ops.def or the gradient column names it.
  const Tensor& input(int i) const { return inputs_[size_t(i)]; }
  // Whether operand i's gradient is wanted; others need not be computed.
  bool wants(int i) const { return bool(tape_.edges[size_t(i)]); }

  void set(int i, const Tensor& gradient) { gradients_[size_t(i)] = gradient; }
  void set(int, None) {}
  // Of the only operand, given for a part of it.
  void set_part(Part part) { part_ = std::move(part); }
  Few<Tensor>& gradients() { return gradients_; }  // one an operand; undefined: none flows
  Part& part() { return part_; }                   // undefined: there is none

 private:
  Few<Tensor> inputs_;

 public:
  const Tensor y, dy;  // the result where it is saved, and its gradient

 private:
  const Tape& tape_;
  Few<Tensor> gradients_;
  Part part_;
};

using GradientRule = void (*)(Backward&);
GradientRule gradient_rule(Op op);

#define OPX(name, ...) void grad_##name(Backward& b);
#include <fornax/ops.def>

// Expressions of the gradient column (ops.def) that need more than one op.
// d pow(a, b) / da = b * a^(b - 1), 0 where b is 0; d / db = y * log(a), 0 where a is 0.
Tensor pow_gradient_base(const Tensor& a, const Tensor& b);
Tensor pow_gradient_exponent(const Tensor& a, const Tensor& y);
// 1 where a is larger than b, 1/2 in a tie, else 0.
Tensor share_of_larger(const Tensor& a, const Tensor& b);

}  // namespace fornax
