// Type rules: the type each op gives, and the words of each message when its rule is broken.
#include "base/error.h"
#include "tests/errors.h"
#include "tests/graph/random_graph.h"

namespace fornax::testing {
namespace {

Type inferred(Op op, const std::vector<Type>& inputs, const Attributes& attributes = {}) {
  std::vector<const Type*> pointers;
  for (const Type& type : inputs) pointers.push_back(&type);
  return infer({op, pointers.data(), int(pointers.size()), attributes});
}

struct Broken {
  ErrorKind kind;
  Op op;
  std::vector<Type> inputs;
  Attributes attributes;
  const char* words;
};

void expect_broken(std::span<const Broken> cases) {
  for (const Broken& c : cases) {
    const std::string message =
        message_of(c.kind, [&] { (void)inferred(c.op, c.inputs, c.attributes); });
    expect_words(message, c.words);
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

const Type kF{DType::f32, {4, 3}}, kI{DType::i32, {4, 3}}, kB{DType::bool_, {4, 3}};
const Type kScalarF{DType::f32, {}};

TEST(infer, pointwise_ops_broadcast) {
  EXPECT_EQ(inferred(Op::add, {{DType::f32, {4, 1, 3}}, {DType::f32, {2, 1}}}),
            (Type{DType::f32, {4, 2, 3}}));
  EXPECT_EQ(inferred(Op::add, {{DType::f32, {0, 3}}, {DType::f32, {1, 3}}}),
            (Type{DType::f32, {0, 3}}));
  EXPECT_EQ(inferred(Op::less, {kI, kI}), kB);
  EXPECT_EQ(inferred(Op::is_nan, {kF}), kB);
  EXPECT_EQ(inferred(Op::where, {{DType::bool_, {3}}, kF, kScalarF}), kF);
  EXPECT_EQ(inferred(Op::bitwise_not, {kB}), kB);
}

TEST(infer, pointwise_rules) {
  const Broken cases[] = {
      {ErrorKind::shape,
       Op::add,
       {kF, {DType::f32, {5}}},
       {},
       "add: cannot broadcast [4,3] with [5]: axis 1 is 3 against 5"},
      {ErrorKind::shape,
       Op::add,
       {{DType::f32, {5}}, kF},
       {},
       "cannot broadcast [5] with [4,3]: axis 1 is 5 against 3"},
      {ErrorKind::dtype,
       Op::add,
       {kF, kI},
       {},
       "add: operands must share a dtype; cast one, got f32[4,3] and i32[4,3]"},
      {ErrorKind::dtype,
       Op::sub,
       {kB, kB},
       {},
       "sub: bool operands have no arithmetic; cast them first, got bool[4,3] and bool[4,3]"},
      {ErrorKind::dtype,
       Op::exp,
       {kI},
       {},
       "exp: operands must be floating; cast them first, got i32[4,3]"},
      {ErrorKind::dtype, Op::is_nan, {kI}, {}, "is_nan: operands must be floating"},
      {ErrorKind::dtype,
       Op::bitwise_and,
       {kF, kF},
       {},
       "bitwise_and: operands must be integers or bool; cast them first"},
      {ErrorKind::dtype,
       Op::where,
       {kF, kF, kF},
       {},
       "where: the condition must be bool; compare it with != 0, got f32[4,3], f32[4,3] and "
       "f32[4,3]"},
      {ErrorKind::dtype, Op::where, {kB, kF, kI}, {}, "where: operands must share a dtype"},
      {ErrorKind::internal, Op::add, {kF}, {}, "add: takes 2 inputs, got 1"},
  };
  expect_broken(cases);
}

TEST(infer, messages_name_the_call) {
  const std::string message = message_of(ErrorKind::dtype, [] {
    const Call call("softmax", Site{"model.cpp", 3});
    (void)inferred(Op::exp, {kI});
  });
  EXPECT_EQ(message,
            "softmax: operands must be floating; cast them first, got i32[4,3] (at model.cpp:3)");
}

TEST(infer, views) {
  const auto f32 = int64_t(DType::f32);
  EXPECT_EQ(inferred(Op::leaf, {}, {f32, 4, 3}), kF);
  EXPECT_EQ(inferred(Op::reshape, {kF}, {2, 6}), (Type{DType::f32, {2, 6}}));
  EXPECT_EQ(inferred(Op::permute, {kF}, {1, 0}), (Type{DType::f32, {3, 4}}));
  EXPECT_EQ(inferred(Op::expand, {{DType::f32, {1, 3}}}, {2, 4, 3}), (Type{DType::f32, {2, 4, 3}}));
  EXPECT_EQ(inferred(Op::slice, {kF}, {3, 4, -1, 0, 2, 2}), (Type{DType::f32, {4, 2}}));
  EXPECT_EQ(inferred(Op::slice, {kF}, {9, 0, 1, 0, 3, 1}), (Type{DType::f32, {0, 3}}));
  EXPECT_EQ(inferred(Op::unfold, {{DType::f32, {2, 7}}}, {1, 3, 2, 2, 7}),
            (Type{DType::f32, {2, 2, 3}}));
  const Broken cases[] = {
      {ErrorKind::shape, Op::leaf, {}, {f32, -2}, "leaf: sizes must not be negative, got [-2]"},
      {ErrorKind::shape, Op::full, {}, {f32, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "9 axes, at most 8"},
      {ErrorKind::shape, Op::reshape, {kF}, {5}, "reshape: f32[4,3] has 12 elements, [5] wants 5"},
      {ErrorKind::shape,
       Op::permute,
       {kF},
       {0},
       "permute: 1 axes are named for f32[4,3], which has 2"},
      {ErrorKind::value, Op::permute, {kF}, {1, 1}, "permute: axis 1 is named twice"},
      {ErrorKind::index,
       Op::permute,
       {kF},
       {0, 2},
       "permute: axis 2 is outside f32[4,3], which has 2 axes"},
      {ErrorKind::index, Op::permute, {kF}, {0, -1}, "permute: axis -1 is outside f32[4,3]"},
      {ErrorKind::shape,
       Op::expand,
       {kF},
       {4, 6},
       "expand: f32[4,3] cannot be repeated to [4,6]: only axes of size 1 can"},
      {ErrorKind::shape, Op::expand, {kF}, {3}, "expand: f32[4,3] cannot be repeated to [3]"},
      {ErrorKind::index,
       Op::slice,
       {kF},
       {0, 5, 1, 0, 3, 1},
       "slice: 5 elements from 0 by 1 leave axis 0 of f32[4,3]"},
      {ErrorKind::index,
       Op::slice,
       {kF},
       {0, 4, 1, 0, 2, -1},
       "slice: 2 elements from 0 by -1 leave axis 1 of f32[4,3]"},
      {ErrorKind::index, Op::slice, {kF}, {-1, 1, 1, 0, 3, 1}, "slice: 1 elements from -1 by 1"},
      {ErrorKind::value, Op::slice, {kF}, {0, 4, 1, 0, 3, 0}, "slice: the step on axis 1 is 0"},
      {ErrorKind::internal, Op::slice, {kF}, {0, 1, 1}, "is false in"},
      {ErrorKind::value,
       Op::unfold,
       {kF},
       {0, 0, 1, 1, 4},
       "unfold: window size 0, step 1 and dilation 1 must be at least 1"},
      {ErrorKind::shape,
       Op::unfold,
       {kF},
       {1, 2, 1, 3, 3},
       "unfold: a window over 4 elements does not fit axis 1 of f32[4,3]"},
      {ErrorKind::index, Op::unfold, {kF}, {2, 1, 1, 1, 3}, "unfold: axis 2 is outside f32[4,3]"},
  };
  expect_broken(cases);
}

TEST(infer, ops_that_index) {
  const Type index{DType::i64, {4, 2}};
  const auto f32 = int64_t(DType::f32);
  EXPECT_EQ(inferred(Op::gather, {kF, index}, {1}), (Type{DType::f32, {4, 2}}));
  EXPECT_EQ(inferred(Op::scatter, {kF, index, {DType::f32, {4, 2}}}, {1, 1}), kF);
  EXPECT_EQ(inferred(Op::cat, {kF, {DType::f32, {2, 3}}}, {0}), (Type{DType::f32, {6, 3}}));
  EXPECT_EQ(inferred(Op::pad, {kF, kScalarF}, {1, 0, 2, -1, 0, 0}), (Type{DType::f32, {11, 2}}));
  EXPECT_EQ(inferred(Op::fold, {{DType::f32, {2, 2, 3}}}, {1, 3, 2, 2, 7}),
            (Type{DType::f32, {2, 7}}));
  const Broken cases[] = {
      {ErrorKind::index, Op::gather, {kF, index}, {2}, "gather: axis 2 is outside f32[4,3]"},
      {ErrorKind::dtype,
       Op::gather,
       {kF, kF},
       {1},
       "gather: the index must be integers, got f32[4,3]; cast it to i64"},
      {ErrorKind::shape,
       Op::gather,
       {kF, index},
       {0},
       "gather: index i64[4,2] must have the sizes of f32[4,3] on every axis but 0"},
      {ErrorKind::shape,
       Op::gather,
       {kF, {DType::i64, {4}}},
       {0},
       "must have the sizes of f32[4,3]"},
      {ErrorKind::shape,
       Op::scatter,
       {kF, index, kF},
       {1, 0},
       "scatter: values f32[4,3] must have the dtype of f32[4,3] and the sizes of the index "
       "i64[4,2]"},
      {ErrorKind::shape,
       Op::scatter,
       {kF, index, {DType::f64, {4, 2}}},
       {1, 0},
       "scatter: values f64[4,2] must have the dtype of f32[4,3]"},
      {ErrorKind::value, Op::cat, {}, {0}, "cat: needs at least one tensor"},
      {ErrorKind::index, Op::cat, {kF}, {2}, "cat: axis 2 is outside f32[4,3]"},
      {ErrorKind::shape,
       Op::cat,
       {kF, kI},
       {0},
       "cat: part 1 is i32[4,3], which differs from f32[4,3] outside axis 0"},
      {ErrorKind::shape, Op::cat, {kF, {DType::f32, {4, 4}}}, {0}, "cat: part 1 is f32[4,4]"},
      {ErrorKind::dtype,
       Op::pad,
       {kF, {DType::f32, {1}}},
       {0, 0, 0, 0, 0, 0},
       "pad: input 1 must be a scalar of f32, got f32[1]"},
      {ErrorKind::shape,
       Op::pad,
       {kF, kScalarF},
       {-5, 0, 0, 0, 0, 0},
       "pad: sizes must not be negative, got [-1,3]"},
      {ErrorKind::shape, Op::fold, {kScalarF}, {0, 1, 1, 1, 1}, "fold: f32[] has too few axes"},
      {ErrorKind::dtype,
       Op::arange,
       {kScalarF, {DType::i32, {}}},
       {f32, 5},
       "arange: input 1 must be a scalar of f32, got i32[]"},
      {ErrorKind::dtype,
       Op::random_bits,
       {kScalarF, kScalarF},
       {5},
       "random_bits: input 0 must be a scalar of u64, got f32[]"},
  };
  expect_broken(cases);
}

TEST(infer, reductions_and_scans) {
  EXPECT_EQ(inferred(Op::sum, {kF}, {1}), (Type{DType::f32, {4, 1}}));
  EXPECT_EQ(inferred(Op::sum, {kI}, {0, 1}), (Type{DType::i64, {1, 1}}));
  EXPECT_EQ(inferred(Op::sum, {kB}, {}), (Type{DType::i64, {4, 3}}));
  EXPECT_EQ(inferred(Op::prod, {{DType::u8, {2}}}, {0}), (Type{DType::u64, {1}}));
  EXPECT_EQ(inferred(Op::max, {kI}, {0}), (Type{DType::i32, {1, 3}}));
  EXPECT_EQ(inferred(Op::any, {kF}, {0}), (Type{DType::bool_, {1, 3}}));
  EXPECT_EQ(inferred(Op::argmax, {kF}, {0}), (Type{DType::i64, {1, 3}}));
  EXPECT_EQ(inferred(Op::cumsum, {kI}, {0}), (Type{DType::i64, {4, 3}}));
  EXPECT_EQ(inferred(Op::cummax, {kI}, {0}), kI);
  EXPECT_EQ(inferred(Op::argsort, {kF}, {0, 1}), (Type{DType::i64, {4, 3}}));
  EXPECT_EQ(inferred(Op::sum, {{DType::f32, {0, 3}}}, {0}), (Type{DType::f32, {1, 3}}));
  EXPECT_EQ(inferred(Op::max, {{DType::f32, {0, 3}}}, {1}), (Type{DType::f32, {0, 1}}));
  const Broken cases[] = {
      {ErrorKind::index, Op::sum, {kF}, {2}, "sum: axis 2 is outside f32[4,3], which has 2 axes"},
      {ErrorKind::shape,
       Op::max,
       {{DType::f32, {0, 3}}},
       {0},
       "max: axis 0 of f32[0,3] has no elements, and max of nothing is undefined"},
      {ErrorKind::shape, Op::argmin, {{DType::f32, {0, 3}}}, {0}, "argmin of nothing is undefined"},
      {ErrorKind::value, Op::argmax, {kF}, {0, 1}, "argmax: takes one axis"},
      {ErrorKind::index, Op::cumsum, {kF}, {2}, "cumsum: axis 2 is outside f32[4,3]"},
      {ErrorKind::index, Op::argsort, {kF}, {-1, 0}, "argsort: axis -1 is outside f32[4,3]"},
  };
  expect_broken(cases);
}

TEST(infer, matrix_products) {
  EXPECT_EQ(inferred(Op::matmul, {{DType::f32, {5, 2, 3}}, {DType::f32, {5, 3, 4}}}),
            (Type{DType::f32, {5, 2, 4}}));
  const Broken cases[] = {
      {ErrorKind::shape,
       Op::matmul,
       {{DType::f32, {32, 784}}, {DType::f32, {128, 10}}},
       {},
       "matmul: inner sizes differ: a is f32[32,784], b is f32[128,10]; a's last (784) must equal "
       "b's "
       "second to last (128)"},
      {ErrorKind::shape,
       Op::matmul,
       {kF, {DType::f32, {3}}},
       {},
       "matmul: operands must have the same number of axes, at least 2: f32[4,3] and f32[3]"},
      {ErrorKind::shape,
       Op::matmul,
       {{DType::f32, {5, 2, 3}}, {DType::f32, {6, 3, 4}}},
       {},
       "matmul: leading axes differ: f32[5,2,3] and f32[6,3,4]"},
      {ErrorKind::dtype,
       Op::matmul,
       {kF, kI},
       {},
       "matmul: operands must be numbers of one dtype, got f32[4,3] and i32[4,3]"},
      {ErrorKind::dtype, Op::matmul, {kB, kB}, {}, "matmul: operands must be numbers of one dtype"},
  };
  expect_broken(cases);
}

Attributes window(auto change) {
  Window2d w;
  w.size[0] = w.size[1] = 3;
  change(w);
  return w.pack();
}

TEST(infer, convolutions) {
  const Type x{DType::f32, {2, 4, 8, 8}}, k{DType::f32, {6, 4, 3, 3}}, y{DType::f32, {2, 6, 6, 6}};
  const Attributes plain = window([](Window2d&) {});
  const Attributes extent = window([](Window2d& w) { w.extent[0] = w.extent[1] = 8; });
  EXPECT_EQ(inferred(Op::convolve, {x, k}, plain), y);
  EXPECT_EQ(inferred(Op::convolve_input, {y, k}, extent), x);
  EXPECT_EQ(inferred(Op::convolve_weight, {x, y}, plain), k);
  EXPECT_EQ(inferred(Op::pool_argmax, {x}, plain), (Type{DType::i64, {2, 4, 6, 6}}));
  const Type small{DType::f32, {2, 4, 2, 2}};
  const Broken cases[] = {
      {ErrorKind::shape,
       Op::convolve,
       {kF, k},
       plain,
       "convolve: operands must have 4 axes, got f32[4,3]"},
      {ErrorKind::value,
       Op::convolve,
       {x, k},
       window([](Window2d& w) { w.stride[1] = 0; }),
       "convolve: kernel 3, stride 0, dilation 1 must be at least 1 and padding 0 at least 0"},
      {ErrorKind::value,
       Op::convolve,
       {x, k},
       window([](Window2d& w) { w.after[0] = -2; }),
       "padding -2 at least 0"},
      {ErrorKind::value,
       Op::convolve,
       {x, k},
       window([](Window2d& w) { w.groups = 0; }),
       "convolve: groups must be at least 1, got 0"},
      {ErrorKind::shape,
       Op::convolve,
       {x, k},
       window([](Window2d& w) { w.groups = 2; }),
       "convolve: 4 channels in 2 groups want a weight with 2 channels and a multiple of 2 "
       "outputs, "
       "got 4 and 6"},
      {ErrorKind::shape,
       Op::convolve,
       {small, k},
       window([](Window2d& w) { w.dilation[0] = 2; }),
       "convolve: kernel 3 with dilation 2 does not fit 2 elements padded by 0"},
      {ErrorKind::shape,
       Op::convolve_input,
       {x, k},
       extent,
       "convolve_input: 4 channels meet a weight for 6"},
      {ErrorKind::shape,
       Op::convolve_weight,
       {{DType::f32, {3, 4, 8, 8}}, y},
       plain,
       "convolve_weight: batches differ: 3 and 2"},
      {ErrorKind::value,
       Op::pool_argmax,
       {x},
       window([](Window2d& w) { w.before[0] = 2; }),
       "pool_argmax: padding 2 must be at most half the kernel 3"},
  };
  expect_broken(cases);
}

// What a backend reads by must be there: sizes that the attributes and the operands both state
// agree.
TEST(infer, windows_agree_with_operands) {
  const Type x{DType::f32, {2, 4, 8, 8}}, k{DType::f32, {6, 4, 3, 3}}, y{DType::f32, {2, 6, 6, 6}};
  const Type k5{DType::f32, {6, 4, 5, 3}}, y7{DType::f32, {2, 6, 7, 6}};
  const Attributes plain = window([](Window2d&) {});
  const Attributes extent = window([](Window2d& w) { w.extent[0] = w.extent[1] = 8; });
  const Broken cases[] = {
      {ErrorKind::shape,
       Op::convolve,
       {x, k5},
       plain,
       "convolve: a weight of 5 x 3 meets a kernel of 3 x 3"},
      {ErrorKind::shape,
       Op::convolve_input,
       {y, k5},
       extent,
       "convolve_input: a weight of 5 x 3 meets a kernel of 3 x 3"},
      {ErrorKind::shape,
       Op::convolve_input,
       {y7, k},
       extent,
       "convolve_input: 6 windows fit axis 2, dy has 7"},
      {ErrorKind::shape,
       Op::convolve_weight,
       {x, y7},
       plain,
       "convolve_weight: 6 windows fit axis 2, dy has 7"},
      {ErrorKind::shape,
       Op::fold,
       {{DType::f32, {2, 2, 3}}},
       {1, 3, 2, 2, 9},
       "fold: f32[2,2,3] holds 2 windows of 3, axis 1 wants 3 of 3"},
      {ErrorKind::shape,
       Op::fold,
       {{DType::f32, {2, 2, 4}}},
       {1, 3, 2, 2, 7},
       "fold: f32[2,2,4] holds 2 windows of 4, axis 1 wants 2 of 3"},
      {ErrorKind::value,
       Op::fold,
       {{DType::f32, {2, 2, 3}}},
       {1, 3, 0, 2, 7},
       "fold: window size 3, step 0 and dilation 2 must be at least 1"},
  };
  expect_broken(cases);
}

}  // namespace
}  // namespace fornax::testing
