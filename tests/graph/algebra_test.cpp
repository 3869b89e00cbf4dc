// Every rule of the algebra makes its example smaller and keeps its values, on random and on
// awkward numbers of every dtype; and simplify() as a whole keeps the values of random graphs.
#include "graph/algebra.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/graph/random_graph.h"
#include "tests/graph/tiny.h"

namespace fornax::testing {
namespace {

std::string with_dtype(std::string_view text, DType dtype) {
  std::string result;
  for (char c : text) {
    if (c == 'T') {
      result += name_of(dtype);
    } else {
      result += c;
    }
  }
  return result;
}

Words random_words(RandomGraph& random, const Type& type) {
  const double awkward[] = {0.0,  -0.0, 1,     -1,  0.5,   -2.5,     3,         255,
                            -129, 1e-7, 65504, 3e9, -1e20, INFINITY, -INFINITY, NAN};
  Words words(size_t(type.shape.element_count()));
  for (Word& word : words) {
    const auto bits = uint64_t(random.number(INT64_MIN, INT64_MAX));
    word = random.chance(0.5) ? word_of(type.dtype, awkward[bits % 16])
           : random.chance(0.5) || bits % 8 == 0
               ? word_of(type.dtype, bits)
               : word_of(type.dtype, double(int64_t(bits)) * 1e-18);
  }
  return words;
}

bool same(DType dtype, Word a, Word b) {
  if (a == b) return true;
  return is_floating(dtype) && std::isnan(as<double>(a)) && std::isnan(as<double>(b));
}

// Both graphs on the same random leaves.
void expect_same_values(const Graph& a, const Graph& b, uint64_t seed) {
  RandomGraph random(seed);
  std::vector<Words> leaves;
  for (const Step& step : a.steps) {
    if (step.op == Op::leaf) leaves.push_back(random_words(random, step.type));
  }
  const auto values_a = run(a, leaves), values_b = run(b, leaves);
  ASSERT_EQ(values_a.size(), values_b.size());
  for (size_t i = 0; i < values_a.size(); i++) {
    const DType dtype = a.steps[size_t(a.outputs[i])].type.dtype;
    ASSERT_EQ(values_a[i].size(), values_b[i].size());
    for (size_t k = 0; k < values_a[i].size(); k++) {
      ASSERT_TRUE(same(dtype, values_a[i][k], values_b[i][k]))
          << text_of(a) << "became\n"
          << text_of(b) << "output " << i << " element " << k << ": "
          << scalar_of(dtype, values_a[i][k]).as_double() << " against "
          << scalar_of(dtype, values_b[i][k]).as_double();
    }
  }
}

TEST(algebra, every_rule_fires_and_keeps_values) {
  for (const Rewrite& rule : algebra()) {
    int fired = 0;
    for (int d = 0; d < kDTypeCount; d++) {
      Graph before;
      try {
        before = parse_graph(with_dtype(rule.example, DType(d)));
      } catch (const Error&) {
        continue;  // the ops do not take this dtype
      }
      const Graph after = simplify(before, {&rule, 1});
      verify(after);
      fired += after.steps.size() < before.steps.size();
      for (uint64_t seed = 0; seed < 30; seed++) expect_same_values(before, after, seed);
      // Where the rule does not fire alone it may help another one, or have to stay silent.
      const Graph all = simplify(before);
      verify(all);
      for (uint64_t seed = 0; seed < 30; seed++) expect_same_values(before, all, seed);
    }
    EXPECT_GT(fired, 0) << rule.name;
  }
}

TEST(algebra, names_are_distinct) {
  for (const Rewrite& a : algebra()) {
    for (const Rewrite& b : algebra()) EXPECT_TRUE(&a == &b || a.name != b.name) << a.name;
  }
}

struct Case {
  const char* before;
  const char* after;
};

void expect_simplified(std::span<const Case> cases) {
  for (const Case& c : cases) {
    const Graph before = parse_graph(c.before);
    EXPECT_EQ(text_of(simplify(before)), c.after);
    for (uint64_t seed = 0; seed < 10; seed++) expect_same_values(before, simplify(before), seed);
  }
}

TEST(algebra, floats_are_left_alone_where_a_rule_is_not_exact) {
  const char* const graphs[] = {
      "%0 = leaf : f32[2]\n%1 = full 0.0 : f32[]\n%2 = add %0 %1 : f32[2]\nreturn %2\n",
      "%0 = leaf : f32[2]\n%1 = full -0.0 : f32[]\n%2 = sub %0 %1 : f32[2]\nreturn %2\n",
      "%0 = leaf : f32[2]\n%1 = full 0.0 : f32[]\n%2 = mul %0 %1 : f32[2]\nreturn %2\n",
      "%0 = leaf : f32[2]\n%1 = sub %0 %0 : f32[2]\nreturn %1\n",
      ("%0 = leaf : f32[2]\n%1 = full 3.0 : f32[]\n%2 = full 0.5 : f32[]\n"
       "%3 = add %0 %1 : f32[2]\n%4 = add %3 %2 : f32[2]\nreturn %4\n"),
      "%0 = full 2.0 : f32[2]\n%1 = exp %0 : f32[2]\nreturn %1\n",
      "%0 = leaf : f32[2]\n%1 = cast %0 : f16[2]\n%2 = cast %1 : f32[2]\nreturn %2\n",
      "%0 = leaf : i32[2]\n%1 = cast %0 : f64[2]\n%2 = cast %1 : i8[2]\nreturn %2\n",
      "%0 = leaf : i64[2]\n%1 = cast %0 : f64[2]\n%2 = cast %1 : i64[2]\nreturn %2\n",
      "%0 = leaf : u8[2]\n%1 = neg %0 : u8[2]\n%2 = abs %1 : u8[2]\nreturn %2\n",
  };
  for (const char* text : graphs) EXPECT_EQ(text_of(simplify(parse_graph(text))), text);
}

TEST(algebra, a_result_keeps_its_shape) {
  // x * 1 with a larger 1 is x repeated, which no rule writes.
  const char* text =
      "%0 = leaf : f32[3]\n%1 = full 1.0 : f32[2,3]\n%2 = mul %0 %1 : f32[2,3]\nreturn %2\n";
  EXPECT_EQ(text_of(simplify(parse_graph(text))), text);
}

TEST(algebra, rules_work_on_what_others_leave) {
  const Case cases[] = {
      {"%0 = leaf : i32[4]\n%1 = full 2 : i32[]\n%2 = mul %1 %0 : i32[4]\n%3 = full 3 : i32[]\n"
       "%4 = mul %3 %2 : i32[4]\n%5 = full 7 : i32[]\n%6 = mul %4 %5 : i32[4]\nreturn %6\n",
       "%0 = leaf : i32[4]\n%1 = full 42 : i32[]\n%2 = mul %0 %1 : i32[4]\nreturn %2\n"},
      {"%0 = leaf : f32[2,3]\n%1 = permute %0 {1,0} : f32[3,2]\n%2 = permute %1 {1,0} : f32[2,3]\n"
       "%3 = neg %2 : f32[2,3]\n%4 = neg %3 : f32[2,3]\nreturn %4\n",
       "%0 = leaf : f32[2,3]\nreturn %0\n"},
      {"%0 = leaf : i64[3]\n%1 = cast %0 : i32[3]\n%2 = cast %1 : i16[3]\nreturn %2\n",
       "%0 = leaf : i64[3]\n%1 = cast %0 : i16[3]\nreturn %1\n"},
      {"%0 = leaf : f32[9]\n%1 = slice %0 {8,5,-2} : f32[5]\n%2 = slice %1 {1,0,1} : f32[0]\n"
       "%3 = slice %1 {4,1,7} : f32[1]\nreturn %2 %3\n",
       "%0 = leaf : f32[9]\n%1 = slice %0 {0,0,1} : f32[0]\n%2 = slice %0 {0,1,1} : f32[1]\n"
       "return %1 %2\n"},
  };
  expect_simplified(cases);
}

TEST(algebra, equal_steps_merge_but_leaves_and_random_numbers_do_not) {
  const Case cases[] = {
      {"%0 = leaf : f32[2]\n%1 = exp %0 : f32[2]\n%2 = exp %0 : f32[2]\n%3 = add %1 %2 : f32[2]\n"
       "return %3\n",
       "%0 = leaf : f32[2]\n%1 = exp %0 : f32[2]\n%2 = add %1 %1 : f32[2]\nreturn %2\n"},
      {"%0 = leaf : f32[2]\n%1 = leaf : f32[2]\n%2 = full 0.5 : f32[]\n%3 = full 0.5 : f32[]\n"
       "%4 = full -0.0 : f32[]\n%5 = full 0.0 : f32[]\nreturn %0 %1 %2 %3 %4 %5\n",
       "%0 = leaf : f32[2]\n%1 = leaf : f32[2]\n%2 = full 0.5 : f32[]\n%3 = full -0.0 : f32[]\n"
       "%4 = full 0.0 : f32[]\nreturn %0 %1 %2 %2 %3 %4\n"},
  };
  expect_simplified(cases);
  const char* random =
      "%0 = full 1u : u64[]\n%1 = random_bits %0 %0 : u32[4]\n%2 = random_bits %0 %0 : u32[4]\n"
      "return %1 %2\n";
  EXPECT_EQ(text_of(simplify(parse_graph(random))), random);
}

TEST(algebra, dead_steps_go_and_leaves_stay) {
  EXPECT_EQ(
      text_of(simplify(parse_graph("%0 = leaf : f32[2]\n%1 = leaf : f32[2]\n"
                                   "%2 = exp %0 : f32[2]\n%3 = neg %1 : f32[2]\nreturn %3\n"))),
      "%0 = leaf : f32[2]\n%1 = leaf : f32[2]\n%2 = neg %1 : f32[2]\nreturn %2\n");
}

TEST(algebra, simplify_keeps_the_values_of_random_graphs) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    RandomGraph random(seed);
    Graph graph;
    while (graph.steps.size() < 40) {
      const Op op = Op(random.number(0, op_count() - 1));
      if (is_pointwise(op) || is_view(op) || op == Op::cast) {
        graph.outputs.push_back(random.add(graph, op));
      }
    }
    const Graph simple = simplify(graph);
    verify(simple);
    EXPECT_LE(simple.steps.size(), graph.steps.size());
    EXPECT_EQ(simplify(simple), simple) << text_of(simple);
    expect_same_values(graph, simple, seed);
  }
}

TEST(algebra, simplify_takes_every_op) {
  for (uint64_t seed = 0; seed < 40; seed++) {
    const Graph graph = RandomGraph(seed).graph(80);
    const Graph simple = simplify(graph);
    verify(simple);
    for (size_t i = 0; i < graph.outputs.size(); i++) {
      EXPECT_EQ(graph.steps[size_t(graph.outputs[i])].type,
                simple.steps[size_t(simple.outputs[i])].type);
    }
  }
}

}  // namespace
}  // namespace fornax::testing
