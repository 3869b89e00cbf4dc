// simplify(): a graph is built anew from its steps, with the rules applied, equal steps merged and
// what no output reads left out.
#include <algorithm>

#include "graph/algebra.h"

namespace fornax {
namespace {

// A leaf is a buffer of its own, whatever its type; random numbers stay where they were asked for.
bool is_mergeable(Op op) { return op != Op::leaf && op != Op::random_bits; }

void mix(size_t& hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
}

size_t hash_of(const Step& step) {
  size_t hash = size_t(step.op);
  mix(hash, uint64_t(step.type.dtype));
  for (int input : step.inputs) mix(hash, uint64_t(input));
  for (int64_t number : step.attributes) mix(hash, uint64_t(number));
  mix(hash, uint64_t(step.scalar.as_int64()));
  return hash;
}

// The steps that outputs read, and all leaves: they are the graph's parameters, told by position.
Graph without_dead_steps(const Graph& graph) {
  std::vector<char> alive(graph.steps.size(), 0);
  for (int output : graph.outputs) alive[size_t(output)] = 1;
  for (size_t number = graph.steps.size(); number-- > 0;) {
    if (graph.steps[number].op == Op::leaf) alive[number] = 1;
    if (!alive[number]) continue;
    for (int input : graph.steps[number].inputs) alive[size_t(input)] = 1;
  }
  Graph result;
  std::vector<int> moved(graph.steps.size(), -1);
  for (size_t number = 0; number < graph.steps.size(); number++) {
    if (!alive[number]) continue;
    Step step = graph.steps[number];
    for (int& input : step.inputs) input = moved[size_t(input)];
    moved[number] = int(result.steps.size());
    result.steps.push_back(std::move(step));
  }
  for (int output : graph.outputs) result.outputs.push_back(moved[size_t(output)]);
  return result;
}

}  // namespace

// An earlier step equal to the last one, `number`, which then goes; else `number`.
int Builder::same_step(int number) {
  const Step& step = (*this)[number];
  if (!is_mergeable(step.op)) return number;
  const size_t hash = hash_of(step);
  const auto [begin, end] = known_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (!((*this)[it->second] == step)) continue;
    const int earlier = it->second;
    graph_.steps.pop_back();
    return earlier;
  }
  known_.emplace(hash, number);
  return number;
}

int Builder::put(Op op, std::vector<int> inputs, Attributes attributes, Scalar scalar) {
  const int number = graph_.add(op, std::move(inputs), std::move(attributes), scalar);
  if (!is_mergeable(op)) return number;
  const Step step = (*this)[number];
  for (const Rewrite& rule : rules_) {
    // The step stays behind, unread, where a rule replaces it.
    if (const int simpler = rule.apply(*this, step); simpler >= 0) return simpler;
  }
  return same_step(number);
}

int Builder::put_full(const Type& type, Scalar scalar) {
  Attributes attributes{int64_t(type.dtype)};
  attributes.insert(attributes.end(), type.shape.begin(), type.shape.end());
  return put(Op::full, {}, std::move(attributes), scalar);
}

Graph simplify(const Graph& graph, std::span<const Rewrite> rules) {
  Builder builder(rules);
  std::vector<int> moved;
  moved.reserve(graph.steps.size());
  for (const Step& step : graph.steps) {
    std::vector<int> inputs;
    for (int input : step.inputs) inputs.push_back(moved[size_t(input)]);
    moved.push_back(builder.put(step.op, std::move(inputs), step.attributes, step.scalar));
  }
  Graph result = builder.graph();
  for (int output : graph.outputs) result.outputs.push_back(moved[size_t(output)]);
  return without_dead_steps(result);
}

Graph simplify(const Graph& graph) { return simplify(graph, algebra()); }

}  // namespace fornax
