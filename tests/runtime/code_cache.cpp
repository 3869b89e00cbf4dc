// Compiled code on disk: kept, found, evicted, shared between processes, and lost without harm.
#include "runtime/code_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/devices.h"
#include "tests/errors.h"

namespace fornax::runtime {
namespace {

namespace fs = std::filesystem;

class CodeCacheTest : public ::testing::Test {
 protected:
  CodeCacheTest() {
    std::string name = (fs::temp_directory_path() / "fornax-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~CodeCacheTest() override { fs::remove_all(folder_); }
  CodeCacheOptions options(int64_t most_bytes = 1 << 20) const {
    return {.folder = folder_, .most_bytes = most_bytes, .note_use_after = 0};
  }
  std::string folder_;
};

Hash128 key(int number) { return hash128(std::to_string(number)); }

CompiledCode code(int number, size_t bytes = 1000) {
  CompiledCode c;
  c.source.label = "program " + std::to_string(number);
  c.source.entry = "entry";
  c.source.threads = 256;
  c.source.shared_bytes = 1024;
  c.source.parameters = {ParameterKind::word64, ParameterKind::word32, ParameterKind::tensor_map};
  c.report = {40, 8, 16};
  c.target = "sm_90a";
  c.code = std::string(bytes, char('a' + number % 26));
  c.code[bytes / 2] = '\0';
  return c;
}

// Runs work in a child; the child's status.
template <class Work>
pid_t start(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  return child;
}
bool succeeded(pid_t child) {
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(CodeCacheTest, WhatIsKeptIsFound) {
  for (const bool again : {false, true}) {
    CodeCache cache(options());
    if (!again) cache.keep(key(1), code(1));
    const auto found = cache.find(key(1));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->source.label, "program 1");
    EXPECT_EQ(found->source.entry, "entry");
    EXPECT_EQ(found->source.threads, 256);
    EXPECT_EQ(found->source.shared_bytes, 1024u);
    EXPECT_EQ(found->source.parameters, code(1).source.parameters);
    EXPECT_EQ(found->report.registers, 40);
    EXPECT_EQ(found->report.spilled_bytes, 8);
    EXPECT_EQ(found->report.shared_bytes, 16);
    EXPECT_EQ(found->target, "sm_90a");
    EXPECT_EQ(found->code, code(1).code);
    EXPECT_FALSE(cache.find(key(2)));
  }
}

TEST_F(CodeCacheTest, TheLeastRecentlyUsedGoesFirst) {
  CodeCache cache(options(10000));
  const auto tick = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  for (int i = 0; i < 3; i++) {
    cache.keep(key(i), code(i, 2500));
    tick();
  }
  EXPECT_TRUE(cache.find(key(0)));
  tick();
  cache.keep(key(3), code(3, 2500));  // 1 is now the oldest, and there is no room for four
  EXPECT_TRUE(cache.find(key(0)));
  EXPECT_FALSE(cache.find(key(1)));
  EXPECT_TRUE(cache.find(key(3)));
  cache.keep(key(4), code(4, 20000));  // more than all may be
  EXPECT_FALSE(cache.find(key(4)));
  const auto list = cache.list();
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list[0].label, "program 3");
}

TEST_F(CodeCacheTest, DamagedCodeIsNotFoundAndReplaced) {
  CodeCache(options()).keep(key(1), code(1, 100));
  for (const char* suffix : {"/code.db", "/code.db-wal"}) {  // wherever the row lies
    std::fstream file(folder_ + suffix, std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    for (size_t at; (at = bytes.find("bbbbbbbb")) != bytes.npos;) bytes[at] = 'x';
    file.clear();
    file.seekp(0);
    file << bytes;
  }
  CodeCache cache(options());
  EXPECT_FALSE(cache.find(key(1)));
  cache.keep(key(1), code(1, 100));
  EXPECT_TRUE(cache.find(key(1)));
}

TEST_F(CodeCacheTest, AFileThatIsNoStoreCostsOnlyTheStore) {
  std::ofstream(folder_ + "/code.db") << std::string(10000, 'n');
  CodeCache cache(options());
  cache.keep(key(1), code(1));
  EXPECT_FALSE(cache.find(key(1)));
  const std::string message = message_of(ErrorKind::io, [&] { cache.list(); });
  expect_words(message, "cache: reading " + folder_ + "/code.db: file is not a database");
  cache.clear();  // which a person asks for, and which mends it
  cache.keep(key(1), code(1));
  EXPECT_TRUE(cache.find(key(1)));
}

TEST_F(CodeCacheTest, AStoreThatIsCutShortCostsOnlyTheStore) {
  {
    CodeCache cache(options());
    for (int i = 0; i < 50; i++) cache.keep(key(i), code(i, 5000));
  }
  fs::resize_file(folder_ + "/code.db", 20000);
  CodeCache cache(options());
  for (int i = 0; i < 50; i++) {
    const auto found = cache.find(key(i));
    if (found) {
      EXPECT_EQ(found->code, code(i, 5000).code);
    }
    cache.keep(key(i), code(i, 5000));
  }
  cache.clear();
  cache.keep(key(1), code(1));
  EXPECT_TRUE(cache.find(key(1)));
}

TEST_F(CodeCacheTest, AFolderThatCannotBeCostsOnlyTheStore) {
  std::ofstream(folder_ + "/file") << "no folder";
  CodeCache cache({.folder = folder_ + "/file/cache"});
  cache.keep(key(1), code(1));
  EXPECT_FALSE(cache.find(key(1)));
  expect_words(message_of(ErrorKind::io, [&] { cache.clear(); }),
               "cache: clearing " + folder_ + "/file/cache/code.db: ");
  CodeCache off({.folder = ""});
  off.keep(key(1), code(1));
  EXPECT_FALSE(off.find(key(1)));
  EXPECT_TRUE(off.list().empty());
  expect_words(message_of(ErrorKind::io, [&] { off.export_to(folder_ + "/moved.db"); }),
               "cache: nothing is kept, as the setting cache is off");
}

TEST_F(CodeCacheTest, ExportAndImportMoveIt) {
  const std::string file = folder_ + "/moved.db";
  {
    CodeCache cache(options());
    cache.keep(key(1), code(1));
    cache.keep(key(2), code(2));
    EXPECT_EQ(cache.export_to(file), 2);
    EXPECT_EQ(cache.export_to(file), 2);  // over the file that is there
  }
  CodeCache other({.folder = folder_ + "/other"});
  other.keep(key(2), code(2));
  EXPECT_EQ(other.import_from(file), 1);
  EXPECT_TRUE(other.find(key(1)));
  expect_words(message_of(ErrorKind::io, [&] { other.import_from(folder_ + "/nothing.db"); }),
               "cache: importing " + folder_ + "/nothing.db into " + folder_ + "/other/code.db: ");
  EXPECT_FALSE(fs::exists(folder_ + "/nothing.db"));
  EXPECT_EQ(other.clear(), 2);
  EXPECT_FALSE(other.find(key(1)));
}

TEST_F(CodeCacheTest, ProcessesShareIt) {
  std::vector<pid_t> children;
  for (int child = 0; child < 6; child++) {
    children.push_back(start([&] {
      CodeCache cache(options(8 << 20));
      bool good = true;
      for (int i = 0; i < 60; i++) {
        const int number = child * 10 + i;
        // On a busy machine a keep may give up waiting for the others.
        for (int attempt = 0; attempt < 10 && !cache.find(key(number)); attempt++) {
          cache.keep(key(number), code(number, 3000));
        }
        const auto found = cache.find(key(i));
        good = good && (!found || found->code == code(i, 3000).code);
      }
      return good;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(succeeded(child));
  CodeCache cache(options(8 << 20));
  for (int i = 0; i < 110; i++) EXPECT_TRUE(cache.find(key(i))) << i;
}

TEST_F(CodeCacheTest, AKilledProcessLeavesItWhole) {
  int began[2];
  ASSERT_EQ(pipe(began), 0);
  for (int round = 0; round < 8; round++) {
    const pid_t child = start([&] {
      CodeCache cache(options());
      for (int i = 0;; i++) {
        cache.keep(key(i % 200), code(i % 200, 9000));  // evicts as well
        if (i == 20 && write(began[1], "!", 1) != 1) return false;
      }
    });
    char byte;
    ASSERT_EQ(read(began[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(round * 7));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CodeCache cache(options());
    for (int i = 0; i < 200; i++) {
      const auto found = cache.find(key(i));
      if (found) {
        ASSERT_EQ(found->code, code(i, 9000).code);
      }
    }
    EXPECT_FALSE(cache.list().empty());
    cache.keep(key(1000), code(1000));
    EXPECT_TRUE(cache.find(key(1000)));
  }
}

TEST_F(CodeCacheTest, AChildOfForkGoesWithout) {
  CodeCache cache(options());
  cache.keep(key(1), code(1));
  EXPECT_TRUE(succeeded(start([&] {
    cache.keep(key(2), code(2));
    expect_words(message_of(ErrorKind::io, [&] { cache.list(); }),
                 "code.db is not usable in a child of fork(); start it with exec");
    return !cache.find(key(1)) && !HasFailure();
  })));
  EXPECT_TRUE(cache.find(key(1)));
  EXPECT_FALSE(cache.find(key(2)));
}

TEST_F(CodeCacheTest, ThreadsMayShareOne) {
  CodeCache cache(options(8 << 20));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; i++) {
        cache.keep(key(t * 20 + i), code(t * 20 + i));
        EXPECT_TRUE(cache.find(key(t * 20 + i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Hash128Test, TellsPartsApart) {
  EXPECT_EQ(hash128("a", "b"), hash128("a", "b"));
  EXPECT_FALSE(hash128("ab", "c") == hash128("a", "bc"));
  EXPECT_FALSE(hash128("a") == hash128("a", ""));
}

}  // namespace
}  // namespace fornax::runtime
