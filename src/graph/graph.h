// Graph: a flat list of steps, the form in which computations are planned, cached, sent to a
// backend, written as text or bytes and interpreted.  A plain value; steps only read earlier steps.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/type.h"

namespace fornax {

struct Step {
  Op op = Op::leaf;
  Type type;
  std::vector<int> inputs;  // numbers of earlier steps
  Attributes attributes;    // graph/attributes.h
  Scalar scalar;            // full: the number
  bool operator==(const Step&) const = default;
};

struct Graph {
  std::vector<Step> steps;
  std::vector<int> outputs;  // numbers of the steps whose values are wanted
  bool operator==(const Graph&) const = default;

  // Appends a step whose type is inferred, and returns its number.  Error: as infer().
  int add(Op op, std::vector<int> inputs, Attributes attributes = {}, Scalar scalar = {});
};

// Checks every step against its type rule, the order of inputs and the outputs.
// Error(internal): the first step that breaks one, in words.
void verify(const Graph& graph);

// One line per step and one for the outputs:
//   %0 = leaf : f32[4,3]
//   %1 = full 2.0 : f32[]
//   %2 = sum %0 {1} : f32[4,1]
//   return %2
// parse_graph(text_of(g)) == g for every valid graph.  Error(value): line and what is wrong there.
std::string text_of(const Graph& graph);
Graph parse_graph(std::string_view text);

// The binary form: little-endian, versioned, ops and dtypes by name, so that it outlives
// renumbering.  Error(io): bytes that encode() cannot have written.
std::vector<std::byte> encode(const Graph& graph);
Graph decode(std::span<const std::byte> bytes);

// The same values with fewer steps, by the rules of graph/algebra.cpp.
Graph simplify(const Graph& graph);

}  // namespace fornax
