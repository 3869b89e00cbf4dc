// Errors found while running: thrown where the value is read, told of the op and the user's line,
// and harmful to nothing but what depends on the failed value.
#include "tests/errors.h"
#include "tests/stream/faulty_backend.h"
#include "tests/stream/stream_test.h"

namespace fornax {
namespace {

Tensor out_of_range(Device device, int& line) {
  const Tensor x = from(std::vector<float>{1, 2, 3}, device);
  const Tensor index = from(std::vector<int64_t>{0, 9}, device);
  line = __LINE__ + 1;
  return x.gather(0, index);
}

// Every device here but the faulty one.
std::vector<Device> sound_devices() {
  std::vector<Device> list;
  for (const DeviceListing& listing : devices()) {
    if (listing.usable && listing.name != "faulty:0") list.emplace_back(listing.name);
  }
  return list;
}

TEST(Errors, come_when_the_value_is_read_and_name_op_and_line) {
  for (Device device : sound_devices()) {
    SCOPED_TRACE(device.name());
    int line = 0;
    const Tensor bad = out_of_range(device, line);
    try {
      (void)bad.to_vector<float>();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::index) << text;
      EXPECT_EQ(error.site().line, line) << text;
      EXPECT_NE(text.find("gather"), std::string::npos) << text;
      EXPECT_NE(text.find("9"), std::string::npos) << text;
      EXPECT_NE(text.find("errors.cpp:" + std::to_string(line)), std::string::npos) << text;
    }
    EXPECT_EQ(message_of([&] { device.sync(); }), "") << "it has been read";
  }
}

TEST(Errors, fail_only_what_depends_on_them) {
  for (Device device : sound_devices()) {
    SCOPED_TRACE(device.name());
    int line = 0;
    const Tensor good = full({700}, 3, {.device = device}).copy() * 2;
    const Tensor bad = out_of_range(device, line);
    const Tensor worse = bad * 2 + 1;
    const Tensor after = good + 1;
    EXPECT_EQ(after.to_vector<float>()[699], 7);
    EXPECT_EQ(good.to_vector<float>()[0], 6);
    const std::string text = message_of([&] { (void)worse.to_vector<float>(); });
    EXPECT_NE(text.find("gather"), std::string::npos) << text;
    EXPECT_EQ(message_of([&] { (void)bad.to_vector<float>(); }), text);
    EXPECT_EQ(message_of([&] { (void)(bad + 1); }), text) << "an op on a failed value";
    EXPECT_EQ((good + 1).to_vector<float>()[0], 7);
    EXPECT_EQ(message_of([&] { device.sync(); }), "");
  }
}

TEST(Errors, that_nobody_read_are_thrown_once_by_sync) {
  for (Device device : sound_devices()) {
    SCOPED_TRACE(device.name());
    {
      int line = 0;
      const Tensor bad = out_of_range(device, line);
      device.flush();
    }
    EXPECT_NE(message_of([&] { device.sync(); }).find("gather"), std::string::npos);
    EXPECT_EQ(message_of([&] { device.sync(); }), "");
  }
}

TEST(Errors, of_dropped_values_never_happen) {
  int line = 0;
  { const Tensor bad = out_of_range(recorder(), line); }
  EXPECT_EQ(message_of([&] { recorder().sync(); }), "");
}

TEST(Errors, come_at_once_when_eager) {
  int line = 0;
  const std::string text = message_of([&] { (void)out_of_range(recorder().eager(), line); });
  EXPECT_NE(text.find("gather"), std::string::npos) << text;
  EXPECT_EQ(message_of([&] { recorder().sync(); }), "");
}

TEST(Errors, of_shapes_and_dtypes_come_at_the_call) {
  const Tensor x = numbers({2, 3});
  const std::string text = message_of([&] { (void)(x + numbers({4})); });
  EXPECT_NE(text.find("add"), std::string::npos) << text;
  EXPECT_NE(text.find("[2,3]"), std::string::npos) << text;
  EXPECT_NE(text.find("errors.cpp"), std::string::npos) << text;
  EXPECT_EQ((x + 1).to_vector<float>()[0], 2);
}

// ── What a backend may do wrong ──────────────────────────────────────────────────────────────────
void expect_harmless(Tensor (*op)(const Operand&), ErrorKind kind, const char* word) {
  const Device device(kFaulty);
  const Tensor x = from(std::vector<float>{1, 2, 3}, device);
  const Tensor before = x.matmul(x.unsqueeze(1));
  const Tensor bad = op(x), worse = bad.sum() + 1;
  try {
    (void)worse.item<float>();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    EXPECT_GT(error.site().line, 0) << error.what();
  }
  EXPECT_NE(message_of([&] { (void)bad.to_vector<float>(); }), "");
  EXPECT_EQ((x + 1).to_vector<float>()[0], 2);
  (void)message_of([&] { device.sync(); });
  EXPECT_EQ(message_of([&] { device.sync(); }), "");
}

TEST(Errors, of_a_backend_that_cannot_prepare_a_group) {
  expect_harmless(tan, ErrorKind::internal, "cannot prepare tan");
}
TEST(Errors, of_a_backend_that_throws_what_is_not_ours) {
  expect_harmless(sinh, ErrorKind::internal, "the cable is loose");
}
TEST(Errors, of_a_host_without_memory) {
  expect_harmless(cosh, ErrorKind::out_of_memory, "no memory left");
}

TEST(Errors, of_too_much_memory_name_the_numbers) {
  const Tensor x = numbers({1});
  const Tensor huge = x.expand({int64_t(1) << 50}) + 1;
  const std::string text = message_of([&] { (void)huge.narrow(0, 0, 1).item<float>(); });
  EXPECT_NE(text.find("4503599627370496"), std::string::npos) << text;
  EXPECT_EQ((x + 1).item<float>(), 2);
}

TEST(Seed, makes_random_numbers_repeat) {
  const auto draw = [] { return uniform({50}, 0, 1, {.device = recorder()}).to_vector<float>(); };
  recorder().seed(7);
  const auto first = draw(), second = draw();
  recorder().seed(7);
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(draw(), second);
  EXPECT_NE(first, second);
  recorder().seed(8);
  EXPECT_NE(draw(), first);
}

}  // namespace
}  // namespace fornax
