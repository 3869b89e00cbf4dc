// What the planner puts into one group, and what it never computes.
#include <cmath>

#include "tests/stream/stream_test.h"

namespace fornax {
namespace {

TEST(Groups, a_chain_of_elementwise_ops_is_one) {
  const Tensor x = numbers({3, 4});
  EXPECT_EQ(groups_of([&] { (void)((x * 2 + 1).exp() - x).to_vector<float>(); }),
            "[mul add exp sub]");
}

TEST(Groups, numbers_broadcast_into_a_chain) {
  const Tensor x = numbers({3, 4}), row = numbers({4}), column = numbers({3, 1});
  EXPECT_EQ(groups_of([&] { (void)(x * row + column).to_vector<float>(); }), "[mul add]");
}

TEST(Groups, a_reduction_takes_what_is_around_it) {
  const Tensor x = numbers({3, 4});
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              y = (x * x).sum(1, {.keep_dims = true}).sqrt() + 1;
              (void)y.to_vector<float>();
            }),
            "[mul sum sqrt add]");
  EXPECT_NEAR(y.to_vector<float>()[0], std::sqrt(30.0) + 1, 1e-5);
}

TEST(Groups, a_reduction_is_followed_through_axes_of_extent_one) {
  const Tensor x = numbers({3, 4});
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              y = x.sum(1) + 1;
              (void)y.to_vector<float>();
            }),
            "[sum add]");
  EXPECT_EQ(y.shape(), Shape{3});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{11, 27, 43}));
  EXPECT_EQ(groups_of([&] { (void)((x * x).sum().sqrt() + 1).to_vector<float>(); }),
            "[mul sum sqrt add]");
  EXPECT_EQ(groups_of([&] {
              y = x.max(0).unsqueeze(1).unsqueeze(0).detach() * 2;
              (void)y.to_vector<float>();
            }),
            "[max mul]");
  EXPECT_EQ(y.shape(), (Shape{1, 4, 1}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{18, 20, 22, 24}));
}

TEST(Groups, operands_of_what_follows_a_reduction_broadcast_as_before) {
  const Tensor x = numbers({2, 3, 2}), bias = numbers({3}, 10, 10), columns = numbers({3, 2}, 0, 1);
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              y = x.sum({0, 2}) * 2 + bias + columns.transpose()(1);
              (void)y.to_vector<float>();
            }),
            "[sum mul add add]");
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2 * 18 + 11, 2 * 26 + 23, 2 * 34 + 35}));
  const Tensor one = numbers({1}, 5);
  EXPECT_EQ(groups_of([&] {
              y = x.sum(1).reshape({2, 1, 2}) - one;
              (void)y.to_vector<float>();
            }),
            "[sum sub]");
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{4, 7, 22, 25}));
}

TEST(Groups, one_operand_read_before_and_after_a_reduction_keeps_its_axes) {
  const Tensor x = numbers({3, 3}), row = numbers({3});
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              y = (x * row).sum(1) * row;
              (void)y.to_vector<float>();
            }),
            "[mul sum mul]");
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{14, 64, 150}));
}

TEST(Groups, what_is_seen_through_can_still_be_read) {
  const Tensor x = numbers({3, 4});
  Tensor sum, y;
  EXPECT_EQ(groups_of([&] {
              sum = x.sum(1);
              y = sum + 1;
              recorder().flush();
            }),
            "[sum add]");
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{10, 26, 42}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{11, 27, 43}));
}

TEST(Groups, chains_go_on_through_axes_of_extent_one) {
  const Tensor x = numbers({3, 4});
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              y = ((x * 2).unsqueeze(1) + 1).squeeze(1) * x;
              (void)y.to_vector<float>();
            }),
            "[mul add mul]");
  EXPECT_EQ(y.to_vector<float>()[11], 25 * 12);
}

TEST(Groups, views_that_move_elements_are_not_seen_through) {
  const Tensor x = numbers({3, 4});
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              y = (x.sum(1, {.keep_dims = true}).expand({3, 3}).transpose() + 1).sum(0);
              (void)y.to_vector<float>();
            }),
            "[sum] [add sum]");
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{33, 81, 129}));
}

TEST(Groups, softmax_is_at_most_three) {
  const Tensor x = numbers({5, 7}, 0, 0.1);
  const ProfileReport report = recorder().profile([&] { (void)softmax(x).to_vector<float>(); });
  EXPECT_LE(report.groups.size(), 3u);
  EXPECT_GE(report.groups.size(), 1u);
}

TEST(Groups, layer_norm_reads_its_input_in_few) {
  const Tensor x = numbers({5, 7}, 0, 0.1);
  const ProfileReport report = recorder().profile([&] { (void)layer_norm(x).to_vector<float>(); });
  EXPECT_LE(report.groups.size(), 3u);
}

TEST(Groups, views_cost_none) {
  const Tensor x = numbers({4, 6});
  EXPECT_EQ(groups_of([&] {
              const Tensor y = x.transpose()(slice(1, none, 2)) + 1;
              const Tensor z = y.unsqueeze(0).expand({2, -1, -1}) * 2;
              (void)z.to_vector<float>();
            }),
            "[add] [mul]");
  EXPECT_EQ(groups_of([&] { (void)(x.flip(0).narrow(1, 2, 3) * 2).to_vector<float>(); }), "[mul]");
}

TEST(Groups, a_reshape_of_a_transpose_copies_once) {
  const Tensor x = numbers({4, 6}) + 0;
  const Tensor t = x.transpose();
  Tensor a, b;
  EXPECT_EQ(groups_of([&] {
              a = t.reshape({24}) * 2;
              (void)a.to_vector<float>();
            }),
            "[copy] [mul]");
  EXPECT_EQ(a.to_vector<float>()[1], 14);
}

TEST(Groups, a_value_read_twice_is_computed_once) {
  const Tensor x = numbers({8});
  EXPECT_EQ(groups_of([&] {
              const Tensor y = x.exp();
              const Tensor a = y + 1, b = y * 2;
              (void)(a + b).to_vector<float>();
            }),
            "[exp add mul add]");
}

TEST(Groups, nothing_that_nobody_can_read_is_computed) {
  const Tensor x = numbers({8});
  EXPECT_EQ(groups_of([&] {
              { const Tensor dead = x.exp().sum().log(); }
              (void)(x + 1).to_vector<float>();
            }),
            "[add]");
  EXPECT_EQ(groups_of([&] { (void)x.exp(); }), "");
}

TEST(Groups, several_results_come_from_one) {
  const Tensor x = numbers({8});
  Tensor a, b;
  EXPECT_EQ(groups_of([&] {
              a = x * 2;
              b = a + 1;
              recorder().flush();
            }),
            "[mul add]");
  EXPECT_EQ(a.to_vector<float>()[3], 8);
  EXPECT_EQ(b.to_vector<float>()[3], 9);
}

TEST(Groups, different_shapes_do_not_mix) {
  const Tensor x = numbers({3, 4}), y = numbers({5});
  Tensor a, b;
  EXPECT_EQ(groups_of([&] {
              a = x * 2;
              b = y * 3;
              recorder().flush();
            }),
            "[mul] [mul]");
}

TEST(Groups, unrelated_neighbours_of_one_shape_share_one) {
  const Tensor x = numbers({8}), y = numbers({8}, 5);
  Tensor a, b;
  EXPECT_EQ(groups_of([&] {
              a = x * 2;
              b = y + 3;
              recorder().flush();
            }),
            "[mul add]");
  EXPECT_EQ(a.to_vector<float>()[1], 4);
  EXPECT_EQ(b.to_vector<float>()[1], 9);
}

TEST(Groups, a_product_stands_alone) {
  const Tensor x = numbers({3, 4}), w = numbers({4, 2});
  EXPECT_EQ(groups_of([&] { (void)((x * 2).matmul(w) + 1).to_vector<float>(); }),
            "[mul] [matmul] [add]");
}

TEST(Groups, an_elementwise_op_after_two_reductions_waits_for_both) {
  const Tensor x = numbers({3, 4});
  Tensor y;
  EXPECT_EQ(groups_of([&] {
              const Tensor sum = x.sum(1, {.keep_dims = true});
              y = sum / x.max(1, {.keep_dims = true});
              (void)y.to_vector<float>();
            }),
            "[sum] [max div]");
  EXPECT_NEAR(y.to_vector<float>()[0], 10.0 / 4, 1e-6);
}

TEST(Groups, very_long_chains_are_split_and_right) {
  Tensor x = numbers({8}, 0);
  for (int i = 0; i < 300; i++) x = x + 1;
  const ProfileReport report = recorder().profile([&] { (void)x.to_vector<float>(); });
  EXPECT_LE(report.groups.size(), 10u);
  EXPECT_EQ(x.to_vector<float>()[0], 300);
}

TEST(Groups, casts_fuse) {
  const Tensor x = numbers({8});
  EXPECT_EQ(groups_of([&] { (void)((x * 2).cast(DType::i32) + 1).to_vector<int32_t>(); }),
            "[mul cast add]");
}

TEST(Profile, always_has_a_time_and_what_ran) {
  const Tensor x = numbers({64, 64});
  Tensor y;
  const ProfileReport report = recorder().profile([&] { y = x * 2 + 1; });
  EXPECT_GT(report.seconds, 0);
  ASSERT_EQ(report.groups.size(), 1u);
  EXPECT_EQ(report.groups[0].ops, "mul add");
  EXPECT_EQ(report.groups[0].bytes, 2u * 64 * 64 * 4);
  EXPECT_GT(report.groups[0].seconds, 0);
  EXPECT_LE(report.groups[0].seconds, report.seconds);
  EXPECT_GT(recorder().profile([] {}).seconds, 0);
}

TEST(Profile, leaves_out_what_was_recorded_before) {
  const Tensor x = numbers({8});
  const Tensor before = x.exp();
  EXPECT_EQ(groups_of([&] { (void)(x + 1).to_vector<float>(); }), "[add]");
}

TEST(Profile, nests_and_survives_exceptions) {
  const Tensor x = numbers({8});
  ProfileReport inner;
  const ProfileReport outer = recorder().profile([&] {
    (void)(x + 1).to_vector<float>();
    inner = recorder().profile([&] { (void)(x * 2).to_vector<float>(); });
  });
  ASSERT_EQ(inner.groups.size(), 1u);
  EXPECT_EQ(inner.groups[0].ops, "mul");
  ASSERT_EQ(outer.groups.size(), 2u);
  EXPECT_EQ(outer.groups[0].ops, "add");
  EXPECT_EQ(outer.groups[1].ops, "mul");
  EXPECT_THROW(recorder().profile([&] { (void)(x + numbers({5})); }), Error);
  EXPECT_EQ(groups_of([&] { (void)(x + 1).to_vector<float>(); }), "[add]");
}

TEST(Profile, lists_ops_that_would_run_while_they_are_recorded) {
  for (const Device device : {Device("cpu").fused(), Device("cpu").eager()}) {
    const Tensor x = from(std::vector<float>{1, 2, 3}, device);
    Tensor y;
    const ProfileReport report = device.profile([&] { y = x * 2 + 1; });
    ASSERT_EQ(report.groups.size(), device.is_eager() ? 2u : 1u);
    EXPECT_EQ(report.groups[0].ops, device.is_eager() ? "mul" : "mul add");
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 5, 7}));
  }
}

TEST(Eager, runs_each_op_as_it_is_written) {
  const Device eager = Device("reference").eager();
  const Tensor x = from(std::vector<float>{1, 2, 3}, eager);
  Tensor y;
  const ProfileReport report = eager.profile([&] {
    y = x * 2;
    y = y + 1;
  });
  ASSERT_EQ(report.groups.size(), 2u);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 5, 7}));
}

// More elements than are computed while they are recorded.
Tensor on_cpu() {
  return from(std::vector<float>(1024, 1), Device("cpu").fused()).reshape({32, 32});
}

TEST(Groups, a_softmax_is_one_where_rows_are_fused) {
  const Tensor x = on_cpu();
  EXPECT_EQ(groups_of([&] { (void)softmax(x).to_vector<float>(); }, x.device()),
            "[max sub exp sum reciprocal mul]");
}

TEST(Groups, what_is_cheap_is_done_again_and_what_is_dear_is_stored) {
  const Tensor x = on_cpu();
  const auto sums = [&](auto function) {
    const auto work = [&] {
      Tensor rows, columns;
      {
        const Tensor y = function(x);
        rows = y.sum(1), columns = y.sum(0);
      }
      (void)rows.to_vector<float>();
      (void)columns.to_vector<float>();
    };
    return groups_of(work, x.device());
  };
  EXPECT_EQ(sums([](const Tensor& t) { return t * 2; }), "[mul sum] [mul sum]");
  EXPECT_EQ(sums([](const Tensor& t) { return t.exp(); }), "[exp sum] [sum]");
}

// The groups of what `function` makes of two tensors, which is the same where every op is one.
template <class Function>
std::string groups_on_cpu(const Shape& shape, Function function) {
  const auto results = [&](Device device) {
    std::vector<float> values(size_t(shape.element_count()));
    for (size_t i = 0; i < values.size(); i++) values[i] = float(i % 37) / 16 - 1;
    const Tensor x = from(values, shape, device), g = x * x - 0.5;
    device.sync();
    std::vector<std::vector<float>> all;
    std::string groups = groups_of(
        [&] {
          const std::vector<Tensor> made = function(x, g);
          for (const Tensor& tensor : made) all.push_back(tensor.to_vector<float>());
        },
        device);
    return std::pair(all, groups);
  };
  const auto [fused, groups] = results(Device("cpu").fused());
  EXPECT_EQ(fused, results(Device("cpu").eager()).first);
  return groups;
}

TEST(Groups, rows_that_read_the_same_are_one) {
  const auto work = [](const Tensor& x, const Tensor& g) {
    Tensor sum = (x * g).sum(1);
    return std::vector<Tensor>{softmax(x), std::move(sum)};
  };
  EXPECT_EQ(groups_on_cpu({3, 512}, work), "[mul sum max sub exp sum reciprocal mul]");
}

TEST(Groups, columns_join_rows_that_read_the_same) {
  const auto before = [](const Tensor& x, const Tensor& g) {
    Tensor columns = (x * g).sum(0);
    return std::vector<Tensor>{softmax(x), std::move(columns)};
  };
  EXPECT_EQ(groups_on_cpu({3, 512}, before), "[mul sum max sub exp sum reciprocal mul]");
  EXPECT_EQ(groups_on_cpu({48, 32}, before), "[mul sum] [max sub exp sum reciprocal mul]");
  const auto after = [](const Tensor& x, const Tensor&) {
    const Tensor y = softmax(x);
    return std::vector<Tensor>{y, y.sum(0), x.max(0)};
  };
  EXPECT_EQ(groups_on_cpu({3, 512}, after), "[max sub exp sum reciprocal mul sum max]");
}

TEST(Groups, rows_that_read_columns_come_after_them) {
  EXPECT_EQ(groups_on_cpu({3, 512},
                          [](const Tensor& x, const Tensor&) {
                            return std::vector<Tensor>{softmax(x - x.sum(0))};
                          }),
            "[sum sub] [max sub exp sum reciprocal mul]");
}

TEST(Groups, what_reads_columns_in_whole_stays_with_them) {
  EXPECT_EQ(groups_on_cpu({3, 512},
                          [](const Tensor& x, const Tensor&) {
                            return std::vector<Tensor>{softmax(x), x - x.sum(0)};
                          }),
            "[max sub exp sum reciprocal mul] [sum sub]");
}

TEST(Groups, what_follows_columns_comes_after_the_rows_beside_them) {
  const auto cast = [](const Tensor& x, const Tensor&) {
    return std::vector<Tensor>{softmax(x), x.sum(0).cast(DType::f64).exp().cast(DType::f32)};
  };
  EXPECT_EQ(groups_on_cpu({3, 512}, cast), "[max sub exp sum reciprocal mul sum] [cast exp cast]");
  const auto update = [](const Tensor& x, const Tensor& y) {
    const Tensor z = x * y, sum = z.sum(0), next = x(0) - sum * 0.5;
    return std::vector<Tensor>{softmax(z), next, next * sum};
  };
  EXPECT_EQ(groups_on_cpu({3, 512}, update),
            "[mul sum max sub exp sum reciprocal mul] [mul sub mul]");
  // Columns that have nothing to do with the rows stay where they are.
  const auto others = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{softmax(x), x.sum(0).cast(DType::f64), y.sum(0).cast(DType::f64)};
  };
  EXPECT_EQ(groups_on_cpu({3, 512}, others),
            "[max sub exp sum reciprocal mul] [sum cast sum cast] [cast] [cast]");
}

TEST(Groups, a_norms_gradients_are_one_also_where_its_result_was_read_before) {
  const auto backward = [](DType dtype) {
    return [dtype](const Tensor& given, const Tensor& g) {
      const Tensor x = given.cast(dtype).detach().require_grad();
      const Tensor weight = given(0).cast(dtype).detach().require_grad();
      const Tensor bias = given(1).cast(dtype).detach().require_grad();
      const Tensor y = layer_norm(x, 1, {.weight = weight, .bias = bias});
      (void)y.to_vector<float>();
      return grad({y}, {x, weight, bias}, {.seeds = {g.cast(dtype)}});
    };
  };
  EXPECT_EQ(
      groups_on_cpu({5, 512}, backward(DType::f32)),
      "[sum div sub square sum div add rsqrt mul mul add] [sum mul mul sum sub sum div sub mul "
      "sum div mul mul mul sub mul]");
  std::string groups = groups_on_cpu({5, 512}, backward(DType::bf16));
  int reducing = 0;
  for (size_t end = 0; (end = groups.find(']')) != std::string::npos; groups.erase(0, end + 1)) {
    reducing += groups.substr(0, end).find("sum") != std::string::npos;
  }
  EXPECT_EQ(reducing, 2);
}

TEST(Groups, the_gradients_of_a_norm_are_one) {
  const auto work = [](const Tensor& x, const Tensor& g) {
    const Tensor in = x.require_grad(), weight = x(0).detach().require_grad();
    return grad({layer_norm(in, 1, {.weight = weight})}, {in, weight}, {.seeds = {g}});
  };
  const std::string groups = groups_on_cpu({5, 512}, work);
  EXPECT_EQ(groups.find("] ["), std::string::npos) << groups;
}

}  // namespace
}  // namespace fornax
