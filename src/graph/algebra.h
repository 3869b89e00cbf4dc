// The rules by which simplify() makes graphs smaller: a table, each row tested alone.
// Every rule keeps every value, bit for bit but for the sign and the payload of NaN.
#pragma once
#include <span>
#include <string_view>
#include <unordered_map>

#include "graph/graph.h"

namespace fornax {

class Builder;

struct Rewrite {
  std::string_view name;
  // A graph, as text, that the rule makes smaller, for every dtype put in for T that it fits.
  std::string_view example;
  // Asked of the step `step`, whose operands are simplified: the number of a step with the same
  // type and value, or -1 where the rule has nothing to say.
  int (*apply)(Builder& builder, const Step& step);
};

std::span<const Rewrite> algebra();

// A graph under construction whose steps are simplified as they come.  Not for several threads.
class Builder {
 public:
  explicit Builder(std::span<const Rewrite> rules) : rules_(rules) {}

  // The number of a step with the value of this one.
  int put(Op op, std::vector<int> inputs, Attributes attributes = {}, Scalar scalar = {});
  // A constant of that type.
  int put_full(const Type& type, Scalar scalar);
  const Step& operator[](int number) const { return graph_.steps[size_t(number)]; }
  const Graph& graph() const { return graph_; }

 private:
  int same_step(int number);

  std::span<const Rewrite> rules_;
  Graph graph_;
  std::unordered_multimap<size_t, int> known_;  // hash of a step to its number
};

Graph simplify(const Graph& graph, std::span<const Rewrite> rules);

}  // namespace fornax
