// Ranked: types of results, and the checks at run time.
#include <fornax/ranked.h>

#include "tests/tensor/expect.h"

namespace fornax {
namespace {

template <class A, class B>
constexpr bool same = std::is_same_v<A, B>;

TEST(Ranked, ops_change_rank_and_kind) {
  const Ranked<2> x(iota({2, 3}, Device()));
  static_assert(same<decltype(x.exp()), Ranked<2>>);
  static_assert(same<decltype(x > 1.0), Ranked<2, Bool>>);
  static_assert(same<decltype((x > 1.0).sum(0)), Ranked<1, Int>>);
  static_assert(same<decltype(x.sum()), Ranked<0>>);
  static_assert(same<decltype(x.max(1, keep_dims)), Ranked<2>>);
  static_assert(same<decltype(x.reshape<3>({1, 2, 3})), Ranked<3>>);
  static_assert(same<decltype(x.unsqueeze(0)), Ranked<3>>);
  static_assert(same<decltype(x.to_int() / 2), Ranked<2, Float>>);
  static_assert(same<decltype(x.to_int() * 2), Ranked<2, Int>>);
  static_assert(same<decltype(1 - x), Ranked<2>>);
  static_assert(same<decltype((x == x) & ~(x < 0)), Ranked<2, Bool>>);
  expect_tensor(x.matmul(x.transpose()) + 1, {2, 2}, {6, 15, 15, 51});
  expect_tensor((x > 1).sum(1), {2}, {1, 3});
  expect_tensor(2 - x.select(0, 1), {3}, {-1, -2, -3});
}

TEST(Ranked, checks_rank_and_kind_of_what_comes_in) {
  const Tensor x = iota({2, 3}, Device());
  EXPECT_THROW(Ranked<1>{x}, Error);
  EXPECT_THROW((Ranked<2, Int>{x}), Error);
  EXPECT_NO_THROW((Ranked<2, Bool>{x > 1}));
}

}  // namespace
}  // namespace fornax
