// Layouts of views against a plain walk over positions, and the definition of contiguous.
#include <gtest/gtest.h>

#include "tests/graph/random_graph.h"
#include "tests/graph/tiny.h"

namespace fornax::testing {
namespace {

// The place of each element of a value, in row-major order: what a view must preserve.
std::vector<int64_t> places(const Shape& shape, const Layout& layout) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < shape.element_count(); i++) list.push_back(place_of(shape, layout, i));
  return list;
}

std::vector<int64_t> position_of(const Shape& shape, int64_t flat) {
  std::vector<int64_t> at(size_t(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; axis--) {
    at[size_t(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return at;
}

int64_t flat_of(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t flat = 0;
  for (int axis = 0; axis < shape.rank(); axis++) flat = flat * shape[axis] + at[size_t(axis)];
  return flat;
}

// Which element of the input, in row-major order, the element at `at` of the view is.
int64_t source(const Step& view, const Shape& from, const std::vector<int64_t>& at) {
  const Shape& shape = view.type.shape;
  std::vector<int64_t> source(size_t(from.rank()));
  for (size_t i = 0; i < source.size(); i++) {
    switch (view.op) {
      case Op::permute:
        source[size_t(view.attributes[i])] = at[i];
        break;
      case Op::expand:
        source[i] = from[int(i)] == 1 ? 0 : at[i + size_t(shape.rank() - from.rank())];
        break;
      case Op::slice:
        source[i] = view.attributes[3 * i] + at[i] * view.attributes[3 * i + 2];
        break;
      case Op::unfold:
        source[i] = at[i];
        break;
      default:
        return flat_of(shape, at);  // detach and reshape keep the order
    }
  }
  for (int w = 0; view.op == Op::unfold && w < window_count(view.attributes); w++) {
    const WindowAxis window = window_of(view.attributes, w);
    int64_t& position = source[size_t(window.axis)];
    position = position * window.step + at[size_t(from.rank() + w)] * window.dilation;
  }
  return flat_of(from, source);
}

// A random view of a value of `type`; detach where the one drawn does not fit.
Step random_view(RandomGraph& random, const Type& type) {
  Graph graph;
  Attributes typed{int64_t(type.dtype)};
  typed.insert(typed.end(), type.shape.begin(), type.shape.end());
  graph.add(Op::leaf, {}, typed);
  const int rank = type.shape.rank();
  Attributes a;
  try {
    switch (random.number(0, 5)) {
      case 0: {  // the elements under factors of their count
        int64_t left = type.shape.element_count();
        while (left > 1 && a.size() < 7) {
          int64_t factor = random.number(2, 6);
          while (left % factor != 0) factor = factor > 6 ? left : factor + 1;
          a.push_back(factor);
          left /= factor;
          if (random.chance(0.2)) a.push_back(1);
        }
        a.push_back(left);
        graph.add(Op::reshape, {0}, a);
        break;
      }
      case 1:
        for (int i = 0; i < rank; i++) a.push_back((i + 1) % rank);
        graph.add(Op::permute, {0}, a);
        break;
      case 2:
        a.push_back(random.number(1, 2));
        for (int64_t size : type.shape) a.push_back(size == 1 ? random.number(1, 3) : size);
        graph.add(Op::expand, {0}, a);
        break;
      case 3:
        for (int64_t size : type.shape) {
          const int64_t step = random.number(1, 2), count = (size - 1) / step + 1;
          const bool back = random.chance(0.5);
          a.insert(a.end(), {back ? (count - 1) * step : 0, count, back ? -step : step});
        }
        graph.add(Op::slice, {0}, a);
        break;
      case 4: {
        const int64_t axis = random.number(0, rank - 1), length = type.shape[int(axis)];
        const int64_t dilation = random.number(1, 2), size = random.number(1, 2);
        graph.add(Op::unfold, {0}, {axis, size, random.number(1, 2), dilation, length});
        break;
      }
      default:
        graph.add(Op::detach, {0});
    }
  } catch (const Error&) {
    graph.steps.resize(1);
    graph.add(Op::detach, {0});
  }
  return graph.steps.at(1);
}

TEST(layout, chains_of_views_reach_the_right_elements) {
  int views = 0, copies = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    RandomGraph random(seed);
    Type type{DType::f32, random.shape(1, 4)};
    Layout layout = row_major(type.shape);
    layout.offset = 5;
    for (int depth = 0; depth < 5; depth++) {
      const Step view = random_view(random, type);
      if (view.type.shape.element_count() > 3000) break;
      const auto before = places(type.shape, layout);
      Layout after;
      if (!view_layout(view.op, view.attributes, type, layout, view.type, after)) {
        ASSERT_EQ(view.op, Op::reshape);
        ASSERT_FALSE(is_contiguous(type.shape, layout));
        after = row_major(view.type.shape);  // as after a copy
        copies++;
      } else {
        views++;
        const auto found = places(view.type.shape, after);
        for (size_t i = 0; i < found.size(); i++) {
          const auto at = position_of(view.type.shape, int64_t(i));
          ASSERT_EQ(found[i], before[size_t(source(view, type.shape, at))])
              << info(view.op).name << " of " << text_of(type) << " to " << text_of(view.type);
        }
      }
      type = view.type;
      layout = after;
    }
  }
  EXPECT_GT(views, 5000);
  EXPECT_GT(copies, 100);
}

bool reshapes(Shape from, Layout layout, Shape to, Layout& out) {
  const Type type{DType::f32, from}, result{DType::f32, to};
  return view_layout(Op::reshape, {}, type, layout, result, out);
}

Layout strided(std::initializer_list<int64_t> strides) {
  Layout layout;
  std::copy(strides.begin(), strides.end(), layout.strides);
  return layout;
}

TEST(layout, reshape_is_a_view_where_strides_can_say_it) {
  Layout out;
  EXPECT_TRUE(reshapes({2, 3}, strided({0, 0}), {6}, out));  // one element repeated
  EXPECT_EQ(out.strides[0], 0);
  EXPECT_TRUE(reshapes({4, 6}, strided({12, 2}), {2, 2, 3, 2}, out));  // every second element
  EXPECT_EQ(out, strided({24, 12, 4, 2}));
  EXPECT_TRUE(reshapes({4, 3}, strided({-3, -1}), {12}, out));  // read backwards
  EXPECT_EQ(out.strides[0], -1);
  EXPECT_TRUE(reshapes({2, 3}, strided({0, 1}), {2, 3, 1}, out));  // repeated rows stay apart
  EXPECT_FALSE(reshapes({2, 3}, strided({0, 1}), {6}, out));
  EXPECT_FALSE(reshapes({2, 3}, strided({1, 0}), {6}, out));
  EXPECT_FALSE(reshapes({3, 4}, strided({1, 3}), {12}, out));  // transposed
  EXPECT_TRUE(reshapes({3, 4}, strided({1, 3}), {3, 2, 2}, out));
  EXPECT_EQ(out, strided({1, 6, 3}));
  EXPECT_TRUE(reshapes({3, 0}, strided({7, 7}), {0, 5}, out));
  EXPECT_TRUE(reshapes({1}, strided({9}), {}, out));
  EXPECT_TRUE(reshapes({}, strided({}), {1, 1}, out));
}

TEST(layout, contiguous_is_row_major_at_any_offset) {
  Layout layout = row_major({2, 3, 4});
  EXPECT_EQ(layout, strided({12, 4, 1}));
  layout.offset = 17;
  EXPECT_TRUE(is_contiguous({2, 3, 4}, layout));
  EXPECT_TRUE(is_contiguous({2, 1, 4}, strided({4, 999, 1})));  // size 1: any stride
  EXPECT_TRUE(is_contiguous({0, 3}, strided({-5, 0})));         // nothing there
  EXPECT_TRUE(is_contiguous({3, 0}, strided({-5, 7})));
  EXPECT_TRUE(is_contiguous({}, strided({})));
  EXPECT_FALSE(is_contiguous({2, 3}, strided({1, 2})));
  EXPECT_FALSE(is_contiguous({2, 3}, strided({4, 1})));  // gaps
  EXPECT_FALSE(is_contiguous({3}, strided({-1})));
  EXPECT_FALSE(is_contiguous({3}, strided({0})));
}

TEST(layout, contiguous_agrees_with_a_walk) {
  for (uint64_t seed = 0; seed < 500; seed++) {
    RandomGraph random(seed);
    const Shape shape = random.shape(0, 4);
    Layout layout = row_major(shape);
    for (int axis = 0; axis < shape.rank(); axis++) {
      if (random.chance(0.2)) layout.strides[axis] = random.number(-3, 12);
    }
    const auto found = places(shape, layout);
    bool in_order = true;
    for (size_t i = 1; i < found.size(); i++) in_order &= found[i] == found[i - 1] + 1;
    EXPECT_EQ(is_contiguous(shape, layout), in_order) << text_of(shape);
  }
}

}  // namespace
}  // namespace fornax::testing
