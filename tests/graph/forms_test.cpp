// The text and binary forms: what is written reads back, and what cannot have been written is
// refused with the words that say why.
#include <cmath>

#include "graph/forms.h"
#include "tests/errors.h"
#include "tests/graph/random_graph.h"

namespace fornax::testing {
namespace {

TEST(forms, every_graph_reads_back) {
  for (uint64_t seed = 0; seed < 40; seed++) {
    const Graph graph = RandomGraph(seed).graph(60);
    verify(graph);
    const std::string text = text_of(graph);
    EXPECT_EQ(parse_graph(text), graph) << text;
    EXPECT_EQ(text_of(parse_graph(text)), text);
    const auto bytes = encode(graph);
    EXPECT_EQ(decode(bytes), graph) << text;
    EXPECT_EQ(encode(decode(bytes)), bytes);
  }
}

TEST(forms, every_op_reads_back) {
  for (int op = 0; op < op_count(); op++) {
    RandomGraph random{uint64_t(op)};
    for (int i = 0; i < 20; i++) {
      Graph graph;
      graph.outputs = {random.add(graph, Op(op))};
      EXPECT_EQ(graph.steps[size_t(graph.outputs[0])].op, Op(op));
      EXPECT_EQ(parse_graph(text_of(graph)), graph) << text_of(graph);
      EXPECT_EQ(decode(encode(graph)), graph) << text_of(graph);
    }
  }
}

TEST(forms, text_is_what_the_header_shows) {
  Graph graph;
  graph.add(Op::leaf, {}, {int64_t(DType::f32), 4, 3});
  graph.add(Op::full, {}, {int64_t(DType::f32)}, 2.0);
  graph.add(Op::sum, {0}, {1});
  graph.outputs = {2};
  EXPECT_EQ(text_of(graph),
            "%0 = leaf : f32[4,3]\n%1 = full 2.0 : f32[]\n%2 = sum %0 {1} : f32[4,1]\nreturn %2\n");
}

TEST(forms, text_may_be_spaced_and_commented) {
  const Graph graph = parse_graph(
      "# a graph\r\n\n  %0=leaf:f32[ 4 , 3 ]\r\n\t%1 = neg %0 : f32[4,3]\n"
      "  # the end\nreturn %1 %0");
  EXPECT_EQ(graph.steps.size(), 2u);
  EXPECT_EQ(graph.outputs, (std::vector<int>{1, 0}));
  EXPECT_EQ(parse_graph("return"), Graph());
}

TEST(forms, scalars_are_exact) {
  const std::pair<Scalar, const char*> cases[] = {
      {2.0, "2.0"},
      {2, "2"},
      {2u, "2u"},
      {true, "true"},
      {false, "false"},
      {-0.0, "-0.0"},
      {0.1, "0.1"},
      {1e300, "1e+300"},
      {5e-324, "5e-324"},
      {INFINITY, "inf"},
      {-INFINITY, "-inf"},
      {INT64_MIN, "-9223372036854775808"},
      {UINT64_MAX, "18446744073709551615u"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {std::bit_cast<double>(0x7ff8000000000000u), "nan"},
      {std::bit_cast<double>(0xfff8000000000000u), "-nan"},
      {std::bit_cast<double>(0x7ff0000000000001u), "nan(7ff0000000000001)"},
  };
  for (const auto& [scalar, text] : cases) {
    Graph graph;
    graph.add(Op::full, {}, {int64_t(DType::f64)}, scalar);
    EXPECT_EQ(text_of(graph), std::string("%0 = full ") + text + " : f64[]\nreturn\n");
    EXPECT_EQ(parse_graph(text_of(graph)), graph) << text;
    EXPECT_EQ(decode(encode(graph)), graph) << text;
  }
}

TEST(forms, wrong_text_is_named_by_line) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 0: the text ends without return"},
      {"%0 = leaf : f32[2]\n", "line 1: the text ends without return"},
      {"hello\n", "line 1: starts with neither a step like %0 nor return"},
      {"\n%1 = leaf : f32[2]\n", "line 2: step %1 should be %0"},
      {"%99999999999999999999 = leaf : f32[2]\n", "line 1: a number leaves 64 bits"},
      {"%-1 = leaf : f32[2]\n", "line 1: step %-1 should be %0"},
      {"% = leaf : f32[2]\n", "\"= leaf : f32[2]\" stands where the number of the step should"},
      {"%0 leaf : f32[2]\n", "\"leaf : f32[2]\" stands where = should"},
      {"%0 = laef : f32[2]\n", "no op \"laef\""},
      {"%0 = \x01\x02 : f32[2]\n", "no op \"??\""},
      {"%0 = leaf\n", "ends where : and the type should stand"},
      {"%0 = leaf : f33[2]\n", "no dtype \"f33\""},
      {"%0 = leaf : f32\n", "ends where [ and the sizes should stand"},
      {"%0 = leaf : f32[2\n", "ends where ] should stand"},
      {"%0 = leaf : f32[2,]\n", "\"]\" stands where a number should"},
      {"%0 = leaf : f32[2] x\n", "\"x\" stands where the end of the line should"},
      {"%0 = leaf : f32[1,1,1,1,1,1,1,1,1]\n", "9 axes, at most 8 are possible"},
      {"%0 = leaf : f32[-1]\n", "leaf: sizes must not be negative, got [-1]"},
      {"%0 = leaf : f32[1099511627776,1099511627776]\n", "element count overflows 64 bits"},
      {"%0 = leaf : f32[1099511627777]\n", "attribute 1099511627777 is beyond 1099511627776"},
      {"%0 = leaf {9,2} : f32[2]\n", "leaf takes its attributes from its type"},
      {"%0 = full : f32[2]\n", "\"\" is not a number"},
      {"%0 = full 2x : f32[2]\n", "\"2x\" is not a number"},
      {"%0 = full 1e999 : f32[2]\n", "\"1e999\" is not a number"},
      {"%0 = full nan(1) : f32[2]\n", "\"nan(1)\" is not a number"},
      {"%0 = full 99999999999999999999 : f32[]\n", "is not a number"},
      {"%0 = neg %0 : f32[2]\n", "%0 is not an earlier step"},
      {"%0 = leaf : f32[2]\n%1 = neg %7 : f32[2]\n", "line 2: %7 is not an earlier step"},
      {"%0 = leaf : f32[2]\n%1 = neg %x : f32[2]\n",
       "line 2: \"x : f32[2]\" stands where the number of a step should"},
      {"%0 = leaf : f32[2]\n%1 = neg : f32[2]\n", "line 2: neg: takes 1 inputs, got 0"},
      {"%0 = leaf : f32[2]\n%1 = neg %0 : f32[3]\n",
       "line 2: neg gives f32[2], the line says f32[3]"},
      {"%0 = leaf : f32[2]\n%1 = neg %0 {1} : f32[2]\n", "neg: takes none, got 1 attributes"},
      {"%0 = leaf : f32[2]\n%1 = sum %0 {1} : f32[1]\n", "line 2: sum: axis 1 is outside f32[2]"},
      {"%0 = leaf : f32[2]\n%1 = sum %0 {0 : f32[1]\n", "\": f32[1]\" stands where } should"},
      {"return\nreturn\n", "line 2: stands after return"},
      {"return %0\n", "%0 is not an earlier step"},
      {"return 0\n", "\"0\" stands where a step like %0 should"},
  };
  for (const auto& [text, words] : cases) {
    const std::string message =
        message_of(ErrorKind::value, [input = text] { parse_graph(input); });
    expect_words(message, words);
    expect_words(message, "parse_graph: line ");
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(forms, changed_text_never_crashes) {
  std::mt19937_64 random(7);
  const std::string alphabet = "%=:[]{},0123456789abcdefu-.+ \n";
  for (uint64_t seed = 0; seed < 30; seed++) {
    const std::string text = text_of(RandomGraph(seed).graph(12));
    for (int i = 0; i < 100; i++) {
      std::string changed = text;
      for (uint64_t edits = 1 + random() % 3; edits > 0; edits--) {
        changed[random() % changed.size()] = alphabet[random() % alphabet.size()];
      }
      try {
        verify(parse_graph(changed));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::value) << error.what();
      }
    }
  }
}

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (char c : text) bytes.push_back(std::byte(c));
  return bytes;
}

TEST(forms, wrong_bytes_are_refused) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, const char*> cases[] = {
      {""sv, "byte 0 of 0: this is not a graph"},
      {"FNXX\1"sv, "byte 4 of 5: this is not a graph"},
      {"FNXG"sv, "byte 4 of 4: the graph is cut off"},
      {"FNXG\2"sv, "version 2 of the form, this library reads 1"},
      {"FNXG\1\5"sv, "5 ops do not fit the 0 bytes left"},
      {"FNXG\1\1\3abs"sv, "the graph is cut off"},
      {"FNXG\1\1\3abq\0"sv, "\"abq\" is not one of the ops here; it may come from a newer version"},
      {"FNXG\1\0\1\3f31\0\0"sv, "\"f31\" is not one of the dtypes here"},
      {"FNXG\1\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv, "a number leaves 64 bits"},
      {"FNXG\1\0\0\x7f"sv, "127 steps do not fit the 0 bytes left"},
      {"FNXG\1\0\0\1\0"sv, "op 0 is not one of 0"},
      {"FNXG\1\0\0\0\1\0"sv, "output 0 is not one of 0"},
      {"FNXG\1\0\0\0\0\0"sv, "bytes follow the graph"},
      {"FNXG\1\0\0\x80\0\0"sv, "the bytes are not those that this graph is written as"},
      {"FNXG\1\1\3abs\0\0\0"sv, "the bytes are not those that this graph is written as"},
      {"FNXG\1\1\4leaf\1\3f32\1\0\0\1\3\0\0"sv, "leaf: sizes must not be negative, got [-2]"},
      {"FNXG\1\1\4leaf\1\3f32\1\0\0\11\0\0\0\0\0\0\0\0\0\0\0"sv, "9 axes are too many"},
      {"FNXG\1\1\3neg\1\3f32\1\0\0\0\1\1\0\0"sv, "step %0 reads 1 steps back"},
      {"FNXG\1\1\4full\1\3f32\1\0\0\0\0\4\0\0\0\0\0\0\0\0\0"sv, "no kind 4 of number"},
  };
  for (const auto& [text, words] : cases) {
    const auto bytes = bytes_of(text);
    const std::string message = message_of(ErrorKind::io, [&] { decode(bytes); });
    expect_words(message, words);
    expect_words(message, "decode: byte ");
  }
  Graph graph;
  graph.add(Op::leaf, {}, {int64_t(DType::f32), 4});
  graph.add(Op::neg, {0});
  graph.steps[1].type.shape[0] = 5;
  expect_words(message_of(ErrorKind::io, [&] { decode(encode(graph)); }),
               "step %1 is f32[5], its rule gives f32[4]");
}

TEST(forms, changed_bytes_never_crash) {
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 30; seed++) {
    const auto bytes = encode(RandomGraph(seed).graph(12));
    for (size_t length = 0; length < bytes.size(); length++) {
      message_of(ErrorKind::io, [&] { decode(std::span(bytes).first(length)); });
    }
    for (int i = 0; i < 200; i++) {
      auto changed = bytes;
      changed[random() % changed.size()] = std::byte(random() & 0xff);
      try {
        const Graph graph = decode(changed);
        verify(graph);
        EXPECT_EQ(encode(graph), changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
      }
    }
  }
}

Graph small_graph() {
  Graph graph;
  graph.add(Op::leaf, {}, {int64_t(DType::f32), 4});
  graph.add(Op::neg, {0});
  graph.outputs = {1};
  return graph;
}

TEST(verify, names_the_broken_step) {
  const auto broken = [](auto change, const char* words) {
    Graph graph = small_graph();
    change(graph);
    const std::string message = message_of(ErrorKind::internal, [&] { verify(graph); });
    expect_words(message, words);
  };
  verify(small_graph());
  broken([](Graph& g) { g.steps[1].inputs = {1}; },
         "verify: step %1 (neg): reads step %1, which is not an earlier one");
  broken([](Graph& g) { g.steps[1].inputs = {-1}; }, "reads step %-1");
  broken([](Graph& g) { g.steps[1].inputs = {0, 0}; }, "takes 1 inputs, got 2");
  broken([](Graph& g) { g.steps[1].scalar = 1.0; }, "has a scalar, which only full has");
  broken([](Graph& g) { g.steps[1].type.dtype = DType::f64; }, "is f64[4], its rule gives f32[4]");
  broken([](Graph& g) { g.steps[1].op = Op::bitwise_not; }, "operands must be integers or bool");
  broken(
      [](Graph& g) {
        constexpr int64_t kFar = int64_t(1) << 40;
        g.steps.push_back({Op::full, {DType::f32, {}}, {}, {int64_t(DType::f32)}, 0});
        g.steps.push_back({Op::pad, {DType::f32, {kFar + 4}}, {1, 2}, {kFar, 0, 0}, {}});
      },
      "verify: step %3 (pad): a size is 1099511627780, above 1099511627776");
  broken([](Graph& g) { g.outputs = {2}; }, "verify: output %2 is not one of 2 steps");
  broken([](Graph& g) { g.outputs = {-1}; }, "verify: output %-1 is not one of 2 steps");
}

TEST(verify, checks_the_form_of_attributes) {
  struct Case {
    Op op;
    Attributes attributes;
    const char* words;
  };
  const Case cases[] = {
      {Op::cast, {}, "takes a dtype, got 0 attributes"},
      {Op::cast, {99}, "dtype number 99 is not one of 0 to 14"},
      {Op::cast, {-1}, "dtype number -1 is not one of"},
      {Op::cast, {9, 1}, "takes a dtype, got 2 attributes"},
      {Op::reshape, {2, 3, 1, 1, 1, 1, 1, 1, 1}, "takes at most 8 sizes, got 9 attributes"},
      {Op::permute, Attributes(9, 0), "takes one axis per axis, got 9"},
      {Op::slice, {0, 1}, "takes 3 numbers for each of 2 axes, got 2 attributes"},
      {Op::slice, {0, 6291457, int64_t(1) << 40, 0, 1, 1}, "are too far"},
      {Op::slice, {0, int64_t(1) << 40, int64_t(1) << 40, 0, 1, 1}, "leave 64 bits"},
      {Op::unfold, {0, 1, 1}, "takes 5 numbers per window, got 3"},
      {Op::unfold, {9, 1, 1, 1, 0}, "axis 9 is not one of 0 to 7"},
      {Op::unfold, {0, 1, 1, 1, 0, 0, 1, 1, 1, 0}, "axis 0 has two windows"},
      {Op::unfold, {0, int64_t(1) << 39, 1, 1, 0}, "window number 549755813888 is above"},
      {Op::argsort, {0}, "takes an axis and a mode, got 1"},
      {Op::argsort, {0, 2}, "mode 2 is not one of 0 to 1"},
      {Op::cumsum, {}, "takes an axis, got 0"},
      {Op::cumsum, {-1}, "axis -1 is not one of 0 to 7"},
      {Op::sum, {1, 0}, "axes must ascend, got 0 after 1"},
      {Op::sum, {1, 1}, "axes must ascend, got 1 after 1"},
      {Op::sum, {8}, "axis 8 is not one of 0 to 7"},
      {Op::pool_argmax, {1}, "takes 13 window numbers, got 1"},
      {Op::pool_argmax, Attributes(13, 1 << 21), "window number 2097152 is above 1048576"},
      {Op::neg, {INT64_MIN}, "attribute -9223372036854775808 is beyond"},
  };
  for (const Case& c : cases) {
    Graph graph;
    graph.add(Op::leaf, {}, {int64_t(DType::f32), 2, 3});
    expect_words(message_of(ErrorKind::internal, [&] { graph.add(c.op, {0}, c.attributes); }),
                 c.words);
  }
  Graph graph;
  graph.add(Op::leaf, {}, {int64_t(DType::f32), 2});
  graph.add(Op::leaf, {}, {int64_t(DType::i64), 2});
  graph.add(Op::full, {}, {int64_t(DType::f32)});
  expect_words(message_of(ErrorKind::internal,
                          [&] {
                            graph.add(Op::scatter, {0, 1, 0}, {0, 5});
                          }),
               "mode 5 is not one of 0 to 4");
  expect_words(message_of(ErrorKind::internal,
                          [&] {
                            graph.add(Op::pad, {0, 2}, {0, 0, -1});
                          }),
               "-1 elements between are not 0 to 1048576");
  expect_words(message_of(ErrorKind::internal, [&] { graph.add(Op::leaf, {}, Attributes(10, 1)); }),
               "leaf: takes a dtype and at most 8 sizes, got 10 attributes");
  expect_words(message_of(ErrorKind::internal, [&] { graph.add(Op::neg, {3}); }),
               "neg: reads step %3, but only 3 steps are there");
  expect_words(message_of(ErrorKind::shape,
                          [&] {
                            graph.add(Op::pad, {0, 2}, {int64_t(1) << 40, 0, 0});
                          }),
               "pad: a size of f32[1099511627778] is above 1099511627776");
}

}  // namespace
}  // namespace fornax::testing
