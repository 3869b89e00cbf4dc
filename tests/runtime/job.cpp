// Jobs on other threads: each done once, errors told and tried again, exit and fork survived.
#include "runtime/job.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/sanitizer.h"
#include "tests/errors.h"

namespace {
const pid_t kTestProcess = getpid();
}  // namespace

// Asked at exit() by sanitizers that look for leaks.  A child of fork() holds what threads point at
// that it does not have, and all of that looks lost.
extern "C" int __lsan_is_turned_off() { return getpid() != kTestProcess; }

namespace fornax::runtime {
namespace {

struct TestJob final : Job {
  explicit TestJob(std::function<void()> f) : function(std::move(f)) {}
  void work() override { function(); }
  std::function<void()> function;
};

std::shared_ptr<TestJob> later(std::function<void()> function) {
  auto job = std::make_shared<TestJob>(std::move(function));
  run_later(job);
  return job;
}

constexpr const char* kNoFork = "thread sanitizers want no threads in a child of fork()";

// Runs `body` in a child of fork(); its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Job, IsDoneOnceHoweverManyWait) {
  std::atomic<int> done = 0;
  std::vector<std::shared_ptr<TestJob>> jobs;
  for (int i = 0; i < 200; i++) jobs.push_back(later([&] { done++; }));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (const auto& job : jobs) job->wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 200);
}

TEST(Job, RunsOnAnotherThread) {
  std::promise<std::thread::id> where;
  const auto job = later([&] { where.set_value(std::this_thread::get_id()); });
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());  // nobody waits for the job
  job->wait();
}

TEST(Job, IsDoneByWhoWaitsWhereNobodyHasBegun) {
  std::thread::id where;
  TestJob job([&] { where = std::this_thread::get_id(); });
  job.wait();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Job, ErrorsReachWhoWaitsAndTheNextTriesAgain) {
  std::atomic<int> tries = 0;
  const auto job = later([&] {
    if (++tries <= 2) throw Error(ErrorKind::value, fmt::format("try {}", tries.load()));
  });
  EXPECT_EQ(message_of([&] { job->wait(); }), "try 1");
  EXPECT_EQ(message_of([&] { job->wait(); }), "try 2");
  job->wait();
  EXPECT_EQ(tries, 3);
}

TEST(Job, CancelledWaitsForWhatRuns) {
  std::promise<void> begun;
  std::atomic<bool> ended = false;
  const auto job = later([&] {
    begun.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
  });
  begun.get_future().wait();
  job->cancel();
  EXPECT_TRUE(ended);
}

TEST(Job, AChildOfForkHasThreadsOfItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << kNoFork;
  later([] {})->wait();
  std::promise<void> begun, go;
  const auto running = later([&, may_end = go.get_future().share()] {
    begun.set_value();
    may_end.wait();
  });
  begun.get_future().wait();
  TestJob open([] {});
  EXPECT_EQ(in_child([&] {
              open.wait();  // what nobody had begun is done in the child
              std::promise<void> ran;
              const auto own = later([&] { ran.set_value(); });
              ran.get_future().wait();
              own->wait();
              const std::string message = message_of([&] { running->wait(); });
              return message.find("forked off") != std::string::npos ? 7 : 1;
            }),
            7);
  go.set_value();
  running->wait();
}

TEST(Job, ExitWaitsForWhatRunsAndDropsTheRest) {
  if (kThreadSanitizer) GTEST_SKIP() << kNoFork;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(in_child([] {
              std::atomic<bool> begun = false;
              std::vector<std::shared_ptr<TestJob>> jobs;
              for (int i = 0; i < 1000; i++) {
                jobs.push_back(later([&] {
                  begun = true;
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                }));
              }
              while (!begun) std::this_thread::yield();
              std::exit(9);
              return 1;
            }),
            9);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

// As a compiler does that keeps things of its own until exit().
TEST(Job, ExitWaitsBeforeHandlersThatTheFirstJobRegistered) {
  if (kThreadSanitizer) GTEST_SKIP() << kNoFork;
  int status = 0;
  // Not on the main thread, whose objects are destroyed before all handlers.
  std::thread([&] {
    status = in_child([] {
      static std::atomic<bool> gone = false;
      std::thread([] {
        later([] { std::atexit([] { gone = true; }); })->wait();
        later([] {})->wait();
        std::promise<void> begun;
        const auto running = later([&] {
          begun.set_value();
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          if (gone) _exit(1);
        });
        begun.get_future().wait();
      }).join();
      std::exit(9);
      return 1;
    });
  }).join();
  EXPECT_EQ(status, 9);
}

}  // namespace
}  // namespace fornax::runtime
