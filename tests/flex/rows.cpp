// Groups of several reductions, by rows and by passes, against the same steps one by one.
#include <map>

#include "backends/flex/pool.h"
#include "tests/flex/group.h"

namespace fornax::flex {
namespace {

struct Domain {
  Shape shape;
  Attributes axes;
};
// Short rows, long ones, rows in several lines, single numbers; and what takes a pass a level:
// columns, wide ones too and more than a task takes, and rows that no cache holds.
const Domain kDomains[] = {{{7, 10}, {1}},
                           {{3, 5, 40}, {2}},
                           {{100, 33}, {1}},
                           {{2, 128}, {1}},
                           {{20, 300}, {1}},
                           {{9, 1100}, {1}},
                           {{2, 3, 4, 70}, {2, 3}},
                           {{3, 4, 300}, {0, 2}},
                           {{4, 3, 2, 40}, {0, 2, 3}},
                           {{600}, {0}},
                           {{5, 1}, {1}},
                           {{3, 1, 4}, {1}},
                           {{40, 6}, {0}},
                           {{2, 30, 7}, {1}},
                           {{13, 1100}, {0}},
                           {{1100, 9}, {0}},
                           {{2, 17, 3, 300}, {1}},
                           {{4, 3, 20, 9}, {0, 2}},
                           {{2, 40000}, {1}},
                           {{4, 3, 5}, {}}};

// A group, and what each of its steps gives by itself.
class Both {
 public:
  explicit Both(const Domain& domain) : domain_(domain) { group_.group.domain = domain.shape; }

  int input(const Tensor& tensor) {
    const int step = group_.input(tensor);
    alone_[step] = tensor;
    return step;
  }
  int add(Op op, std::vector<int> operands) {
    const int step = add(op, std::move(operands), is_reduce(op) ? domain_.axes : Attributes());
    if (is_reduce(op)) group_.group.anchor = step;
    return step;
  }
  // A reduction over all other axes.
  int column(Op op, int operand) {
    Attributes others;
    for (int axis = 0; axis < domain_.shape.rank(); axis++) {
      const auto& rows = domain_.axes;
      if (std::find(rows.begin(), rows.end(), axis) == rows.end()) others.push_back(axis);
    }
    return add(op, {operand}, others);
  }
  int cast(int operand, DType to) {
    const Attributes attributes{int64_t(to)};
    const int step = group_.add(Op::cast, {operand}, attributes);
    alone_[step] = run_one(Op::cast, {alone_.at(operand)}, attributes);
    return step;
  }
  void check(const std::vector<int>& outputs) {
    group_.group.graph.outputs = outputs;
    const std::vector<Tensor> results = group_.run();
    for (size_t i = 0; i < outputs.size(); i++) {
      const Tensor& want = alone_.at(outputs[i]);
      for (int64_t e = 0; e < want.type.shape.element_count(); e++) {
        ASSERT_TRUE(same_number(want.type.dtype, want.at(e), results[i].at(e)))
            << "element " << e << " of output " << i << "\n"
            << text_of(group_.group.graph);
      }
    }
  }

 private:
  int add(Op op, std::vector<int> operands, const Attributes& attributes) {
    std::vector<Tensor> tensors;
    for (const int operand : operands) tensors.push_back(alone_.at(operand));
    const int step = group_.add(op, std::move(operands), attributes);
    alone_[step] = run_one(op, tensors, attributes);
    return step;
  }

  const Domain& domain_;
  Case group_;
  std::map<int, Tensor> alone_;
};

Shape reduced(const Domain& domain) {
  Shape shape = domain.shape;
  for (const int64_t axis : domain.axes) shape[int(axis)] = 1;
  return shape;
}
Shape last_axis(const Domain& domain) { return Shape{domain.shape[domain.shape.rank() - 1]}; }

// Which of `steps` are wanted: at least one.
std::vector<int> some_of(const std::vector<int>& steps, std::mt19937& random) {
  std::vector<int> some;
  for (const int step : steps) {
    if (random() % 3 == 0) some.push_back(step);
  }
  if (some.empty()) some.push_back(steps[random() % steps.size()]);
  return some;
}

DType some_dtype(std::mt19937& random) {
  return std::array{DType::f32, DType::f32, DType::bf16, DType::f64, DType::f16}[random() % 5];
}
// Contiguous, or a view.
auto some_operand(const Type& type, std::mt19937& random) {
  return random() % 2 ? random_view(type, random) : random_tensor(type, random);
}

TEST(FlexRows, EqualTheirStepsBitForBit) {
  std::mt19937 random(21);
  for (int round = 0; round < 8; round++) {
    for (const Domain& domain : kDomains) {
      const DType dtype = some_dtype(random);
      const auto of = [&](const Shape& shape) { return some_operand({dtype, shape}, random); };
      Both both(domain);
      const int x = both.input(of(domain.shape)), g = both.input(of(domain.shape));
      const int weight = both.input(of(last_axis(domain))), known = both.input(of(reduced(domain)));
      // A level each: the largest of a product, what is left of it, and a sum of that.
      const int product = both.add(Op::mul, {x, weight});
      const int largest = both.add(Op::max, {product});
      const int shifted = both.add(Op::add, {largest, known});
      const int left = both.add(Op::sub, {product, shifted});
      const int power = both.add(Op::exp, {left});
      const int sum = both.add(Op::sum, {power}), lowest = both.add(Op::min, {g});
      const int factor = both.add(Op::reciprocal, {sum});
      const int share = both.add(Op::mul, {power, factor});
      const int mixed = both.add(Op::add, {share, both.add(Op::mul, {g, lowest})});
      const int dot = both.add(Op::sum, {both.add(Op::mul, {mixed, g})});
      const int wide = both.cast(both.add(Op::sub, {mixed, dot}), DType::f64);
      const int total = both.add(Op::sum, {both.cast(wide, DType::f32)});
      both.check(some_of(
          {product, largest, shifted, left, power, sum, factor, share, mixed, dot, wide, total},
          random));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Rows of more than a block and more rows than a part has, too.
TEST(FlexRows, WithColumnsEqualTheirStepsBitForBit) {
  std::vector<Domain> domains(std::begin(kDomains), std::end(kDomains));
  domains.push_back({{3, 100, 300}, {2}});
  domains.push_back({{129, 2100}, {1}});
  domains.push_back({{16, 4, 70}, {1, 2}});
  domains.push_back({{1, 700}, {1}});
  std::mt19937 random(24);
  for (int round = 0; round < 3; round++) {
    for (const Domain& domain : domains) {
      const DType dtype = some_dtype(random);
      const auto of = [&](const Shape& shape) { return some_operand({dtype, shape}, random); };
      Both both(domain);
      const int x = both.input(of(domain.shape)), g = both.input(of(domain.shape));
      const int weight = both.input(of(last_axis(domain))), known = both.input(of(reduced(domain)));
      const int scaled = both.add(Op::mul, {g, weight});
      const int far = both.add(Op::sub, {x, known}), along = both.add(Op::mul, {scaled, far});
      const int sum = both.add(Op::sum, {scaled}), dot = both.add(Op::sum, {along});
      const int left = both.add(Op::sub, {scaled, both.add(Op::mul, {far, dot})});
      const int of_g = both.column(Op::sum, g), of_both = both.column(Op::sum, along);
      const int largest = both.column(Op::max, left);
      const int wide = both.column(Op::sum, both.cast(left, DType::f64));
      const int any = both.column(Op::any, both.add(Op::less, {left, sum}));
      both.check(some_of({sum, dot, left, of_g, of_both, largest, wide, any}, random));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(FlexRows, QuestionsPositionsAndWholeNumbersToo) {
  std::mt19937 random(22);
  for (const Domain& domain : kDomains) {
    for (const DType dtype : {DType::i8, DType::u16, DType::i32, DType::i64, DType::f32}) {
      Both both(domain);
      const int x = both.input(random_tensor({dtype, domain.shape}, random));
      const int any = both.add(Op::any, {x}), all = both.add(Op::all, {x});
      const int largest = both.add(Op::max, {x});
      const int equal = both.add(Op::equal, {x, largest});
      const int both_hold = both.add(Op::bitwise_and, {equal, any});
      const int count = both.add(Op::sum, {both.cast(both_hold, DType::u8)});
      const int mixed =
          both.add(Op::add, {both.cast(both_hold, DType::f64), both.cast(count, DType::f64)});
      both.check(some_of({any, all, largest, equal, count, mixed}, random));
      if (testing::Test::HasFatalFailure()) return;
      if (domain.axes.size() != 1) continue;
      Both places(domain);
      const int y = places.input(random_tensor({dtype, domain.shape}, random));
      const int place = places.add(Op::argmax, {y});
      places.check({places.add(Op::sub, {y, places.add(Op::min, {y})}), place});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(FlexRows, GiveTheSameBitsOnOneThreadAndOnSeveral) {
  std::mt19937 random(23);
  const Tensor x = random_tensor({DType::f32, {1100, 700}}, random);
  // By rows, with columns, and by passes.
  for (const auto& [axis, position] :
       {std::pair(1, false), std::pair(1, true), std::pair(0, true)}) {
    const auto softmax = [&, axis = int64_t(axis), position = position] {
      Case c;
      const int input = c.input(x), largest = c.add(Op::max, {input}, {axis});
      const int power = c.add(Op::exp, {c.add(Op::sub, {input, largest})});
      const int sum = c.add(Op::sum, {power}, {axis});
      c.group.anchor = sum;
      c.group.domain = x.type.shape;
      c.group.graph.outputs = {c.add(Op::div, {power, sum}), c.add(Op::sum, {power}, {1 - axis})};
      if (position) c.group.graph.outputs.push_back(c.add(Op::argmax, {input}, {axis}));
      return c.run();
    };
    const std::vector<Tensor> split = softmax();
    parallel(2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const std::vector<Tensor> alone = softmax();
        for (size_t output = 0; output < split.size(); output++) {
          const Type& type = split[output].type;
          for (int64_t e = 0; e < type.shape.element_count(); e++) {
            if (!same_number(type.dtype, split[output].at(e), alone[output].at(e))) {
              ADD_FAILURE() << "element " << e << " of output " << output;
              return;
            }
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace fornax::flex
