// Shapes, blocks, counted pointers, settings and errors.
#include <fornax/shape.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "base/blocks.h"
#include "base/error.h"
#include "base/ref.h"
#include "base/settings.h"
#include "tests/errors.h"

namespace fornax::testing {
namespace {

TEST(shape, counts_elements_and_notices_overflow) {
  EXPECT_EQ(Shape().element_count(), 1);
  EXPECT_EQ(Shape({2, 3}).element_count(), 6);
  EXPECT_EQ(Shape({INT64_MAX}).element_count(), INT64_MAX);
  // No elements is no overflow, wherever the 0 stands.
  EXPECT_EQ(Shape({INT64_MAX, INT64_MAX, 0}).element_count(), 0);
  EXPECT_EQ(Shape({0, INT64_MAX, INT64_MAX}).element_count(), 0);
  expect_words(message_of(ErrorKind::shape,
                          [] {
                            (void)Shape({int64_t(1) << 32, int64_t(1) << 32}).element_count();
                          }),
               "shape: element count overflows 64 bits: [4294967296,4294967296]");
}

TEST(shape, has_at_most_eight_axes) {
  Shape shape{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(text_of(shape), "[1,2,3,4,5,6,7,8]");
  const char* words = "9 axes, at most 8 are possible; merge some with reshape";
  expect_words(message_of(ErrorKind::shape, [&] { shape.push_back(9); }), words);
  expect_words(message_of(ErrorKind::shape, [&] { shape.insert(0, 9); }), words);
  expect_words(message_of(ErrorKind::shape,
                          [] {
                            (void)Shape({1, 2, 3, 4, 5, 6, 7, 8, 9});
                          }),
               words);
}

TEST(shape, inserts_erases_and_compares) {
  Shape shape{2, 4};
  shape.insert(1, 3);
  shape.push_back(5);
  EXPECT_EQ(shape, Shape({2, 3, 4, 5}));
  shape.erase(0);
  EXPECT_EQ(shape, Shape({3, 4, 5}));
  shape.erase(2);
  EXPECT_EQ(shape, Shape({3, 4}));
  EXPECT_FALSE(shape == Shape({3, 4, 1}));
  EXPECT_EQ(text_of(Shape()), "[]");
}

TEST(blocks, are_aligned_and_apart) {
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t bytes : {1, 63, 64, 65, 500, 2048, 2049, 100000}) {
    for (int i = 0; i < 200; i++) {
      void* block = allocate_block(bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, int(bytes & 0xff), bytes);
      blocks.push_back({block, bytes});
    }
  }
  std::set<void*> distinct;
  for (auto [block, bytes] : blocks) {
    distinct.insert(block);
    const auto* memory = static_cast<unsigned char*>(block);
    const int filling = int(bytes & 0xff);
    EXPECT_EQ(std::count(memory, memory + bytes, filling), std::ptrdiff_t(bytes));
  }
  EXPECT_EQ(distinct.size(), blocks.size());
  for (auto [block, bytes] : blocks) free_block(block, bytes);
}

TEST(blocks, are_freed_on_any_thread) {
  for (int round = 0; round < 20; round++) {
    std::vector<void*> blocks;
    std::thread([&] {
      for (int i = 0; i < 1000; i++) blocks.push_back(allocate_block(100));
    }).join();
    std::thread([&] {
      for (void* block : blocks) free_block(block, 100);
    }).join();
  }
}

struct Counted {
  std::atomic<uint32_t> references{1};
  int* destroyed;
};
void destroy(Counted* counted) {
  ++*counted->destroyed;
  delete counted;
}

TEST(ref, destroys_once_when_the_last_goes) {
  int destroyed = 0;
  auto* counted = new Counted;
  counted->destroyed = &destroyed;
  auto a = Ref<Counted>::adopt(counted);
  {
    Ref<Counted> b = a, c = std::move(b);
    EXPECT_FALSE(b);
    EXPECT_EQ(c, a);
    EXPECT_EQ(counted->references, 2u);
    c = a;
    a = nullptr;
    EXPECT_EQ(destroyed, 0);
    a = Ref<Counted>(c.get());
  }
  EXPECT_EQ(counted->references, 1u);
  auto alias = Ref<Counted>::adopt(a.leave());
  EXPECT_FALSE(a);
  alias = nullptr;
  EXPECT_EQ(destroyed, 1);
}

TEST(error, carries_the_line_of_the_outermost_call) {
  const std::string inner = message_of(ErrorKind::shape, [] {
    const Call outer("softmax", Site{"model.cpp", 12});
    const Call nested("exp", Site{"library.cpp", 99});
    fail(ErrorKind::shape, "{}: {} is too much", Call::name_or("exp"), 7);
  });
  EXPECT_EQ(inner, "softmax: 7 is too much (at model.cpp:12)");
  EXPECT_EQ(message_of(ErrorKind::value, [] { fail(ErrorKind::value, "a: b"); }), "a: b");
  expect_words(message_of(ErrorKind::internal, [] { FORNAX_CHECK(1 > 2); }),
               "internal: 1 > 2 is false in ");
}

const char* nothing(const char*) { return nullptr; }

TEST(settings, come_from_file_and_environment) {
  const Settings from_file =
      read_settings("threads = 3\neager = true\ncache = \"/x\"\n", "f", nothing);
  EXPECT_EQ(from_file.threads, 3);
  EXPECT_TRUE(from_file.eager);
  EXPECT_EQ(from_file.cache, "/x");
  EXPECT_EQ(from_file.plans, Settings().plans);
  const Settings overridden =
      read_settings("threads = 3\neager = true\n", "f", [](const char* name) -> const char* {
        if (std::string(name) == "FORNAX_THREADS") return "5";
        return std::string(name) == "FORNAX_EAGER" ? "off" : nullptr;
      });
  EXPECT_EQ(overridden.threads, 5);
  EXPECT_FALSE(overridden.eager);
}

TEST(settings, say_what_cannot_be_read) {
  const std::pair<const char*, const char*> files[] = {
      {"threads = \"3\"\n", "settings: threads in my.toml must be a whole number"},
      {"threads = 3.5\n", "settings: threads in my.toml must be a whole number"},
      {"eager = 1\n", "settings: eager in my.toml must be true or false"},
      {"device = 0\n", "settings: device in my.toml must be a string"},
      {"theads = 3\n", "settings: my.toml has \"theads\", which is no setting"},
      {"threads = 1\nthreads = \n", "settings: my.toml line 2: "},
      {"= 3\n", "settings: my.toml line 1: "},
  };
  for (const auto& [text, words] : files) {
    expect_words(message_of(ErrorKind::value,
                            [file = text] { (void)read_settings(file, "my.toml", nothing); }),
                 words);
  }
  expect_words(message_of(ErrorKind::value,
                          [] {
                            (void)read_settings("", "f", [](const char* name) {
                              return std::string(name) == "FORNAX_LOG" ? "loud" : nullptr;
                            });
                          }),
               "settings: FORNAX_LOG is \"loud\", which is not a whole number");
  expect_words(message_of(ErrorKind::value,
                          [] {
                            (void)read_settings("", "f", [](const char* name) {
                              return std::string(name) == "FORNAX_VERIFY" ? "maybe" : nullptr;
                            });
                          }),
               "settings: FORNAX_VERIFY is \"maybe\", which is not 0 or 1");
}

TEST(settings, rows_list_every_setting) {
  const auto rows = setting_rows();
  size_t listed = 0;
#define FORNAX_SETTING(...) listed++;
#include "base/settings.def"
  EXPECT_EQ(rows.size(), listed);
  for (const SettingRow& row : rows) {
    EXPECT_TRUE(row.variable.starts_with("FORNAX_")) << row.name;
    EXPECT_FALSE(row.documentation.empty()) << row.name;
  }
}

}  // namespace
}  // namespace fornax::testing
