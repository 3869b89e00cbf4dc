// Cases beyond 2^31 elements.  They need up to 9 GB and run where FORNAX_LARGE_TESTS is set, on the
// cpu alone: the reference is too slow for them.
#include <cstdlib>

#include "tests/tensor/expect.h"

namespace fornax {
namespace {

constexpr const char* kReason =
    "takes gigabytes and up to a minute; it runs where FORNAX_LARGE_TESTS is set";

bool large() { return std::getenv("FORNAX_LARGE_TESTS") != nullptr; }

TEST(Cases, C049_more_than_2_to_the_31_elements) {
  if (!large()) GTEST_SKIP() << kReason;
  const Device cpu("cpu");
  const int64_t count = (int64_t(1) << 31) + 8;
  Tensor x = zeros({count}, {.dtype = DType::u8, .device = cpu});
  x.at(-1) = 7;
  EXPECT_EQ(x.sum().item<int64_t>(), 7);
  EXPECT_EQ(x.argmax().item<int64_t>(), count - 1);
  EXPECT_EQ(x(slice(-1)).item<int>(), 7);
  EXPECT_EQ((x + 1)(slice(-1)).item<int>(), 8);
}

TEST(Cases, C050_row_times_stride_crosses_2_to_the_31) {
  if (!large()) GTEST_SKIP() << kReason;
  const Device cpu("cpu");
  const Tensor rows = (arange(16386, {.device = cpu}) % 251).cast(DType::u8).unsqueeze(1);
  const Tensor table = rows.expand({16386, 131072}).contiguous();
  const Tensor taken = table.take(integers({0, 16383, 16384, 16385}, cpu));
  expect_values(taken.min(1), {0, 68, 69, 70});
  expect_values(taken.max(1), {0, 68, 69, 70});
}

TEST(Cases, C052_large_offsets_in_a_fused_group) {
  if (!large()) GTEST_SKIP() << kReason;
  const Device cpu("cpu");
  const int64_t width = 65536, height = 32772, from = 32769;  // from * width is past 2^31
  const Tensor rows = (arange(height, {.device = cpu}) % 100).cast(DType::f16).unsqueeze(1);
  const Tensor x = rows.expand({height, width}).contiguous();
  const Tensor part = x(slice(from));
  const Tensor y = cat({part, part + 1, part}, 1) * 2;
  expect_values(y(slice(), 0), {138, 140, 142});
  expect_values(y(slice(), width), {140, 142, 144});
  expect_values(y(slice(), -1), {138, 140, 142});
}

}  // namespace
}  // namespace fornax
