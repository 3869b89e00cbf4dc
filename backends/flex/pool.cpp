// The thread pool: one job at a time, whose chunks the caller and the workers claim by one counter.
#include "backends/flex/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/limits.h"
#include "base/settings.h"

namespace fornax::flex {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(50);  // about what waking a sleeping thread costs
constexpr int kChunksPerThread = 4;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

int count_threads() {
  if (settings().threads > 0) return int(std::min<int64_t>(settings().threads, 1024));
  return granted_threads();
}

// What the counter holds: the job's number, how many chunks it has, and the next unclaimed one.  A
// thread that wakes late sees another job or nothing left, and never touches what is not its own.
struct alignas(8) Ticket {  // aligned so that every compiler reads and writes it in one step
  uint32_t job;
  uint16_t chunks, next;
};
static_assert(sizeof(Ticket) == 8);

class Pool {
 public:
  Pool() {
    for (int i = 1; i < thread_count(); i++) std::thread([this] { work(); }).detach();
  }

  // False while another thread's job runs.
  bool run(int64_t count, int64_t chunk, FunctionRef<void(int64_t, int64_t)> body) {
    std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock) return false;
    body_ = &body;
    count_ = count;
    chunk_ = chunk;
    error_ = nullptr;
    const auto chunks = uint16_t((count + chunk - 1) / chunk);
    done_.store(0, std::memory_order_relaxed);
    const uint32_t job = ticket_.load().job + 1;
    ticket_.store({job, chunks, 0});
    if (sleeping_.load() > 0) {
      { std::lock_guard sleep(sleep_); }
      wake_.notify_all();
    }
    while (take(job)) {
    }
    wait_for(chunks);
    if (error_) std::rethrow_exception(error_);
    return true;
  }

  static bool inside() { return inside_; }

 private:
  // Runs one chunk of the job.  False where none is left.
  bool take(uint32_t job) {
    Ticket ticket = ticket_.load(std::memory_order_acquire);
    do {
      if (ticket.job != job || ticket.next == ticket.chunks) return false;
    } while (!ticket_.compare_exchange_weak(ticket, {job, ticket.chunks, uint16_t(ticket.next + 1)},
                                            std::memory_order_acq_rel));
    const int64_t begin = ticket.next * chunk_;
    inside_ = true;
    try {
      (*body_)(begin, std::min(begin + chunk_, count_));
    } catch (...) {
      std::lock_guard lock(error_lock_);
      if (!error_) error_ = std::current_exception();
    }
    inside_ = false;
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void wait_for(int chunks) {
    for (int spins = 0; done_.load(std::memory_order_acquire) != chunks; spins++) {
      if (spins < 4096) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

  void work() {
    for (uint32_t seen = 0;;) {
      const uint32_t job = next_job(seen);
      while (take(job)) {
      }
      seen = job;
    }
  }

  uint32_t next_job(uint32_t seen) {
    const auto begin = Clock::now();
    do {
      for (int i = 0; i < 64; i++) {
        const uint32_t job = ticket_.load(std::memory_order_acquire).job;
        if (job != seen) return job;
        pause();
      }
    } while (Clock::now() - begin < kSpin);
    std::unique_lock lock(sleep_);
    sleeping_.fetch_add(1);
    wake_.wait(lock, [&] { return ticket_.load().job != seen; });
    sleeping_.fetch_sub(1);
    return ticket_.load().job;
  }

  static thread_local bool inside_;
  std::mutex busy_;
  FunctionRef<void(int64_t, int64_t)>* body_ = nullptr;
  int64_t count_ = 0, chunk_ = 0;
  alignas(64) std::atomic<Ticket> ticket_{Ticket{0, 0, 0}};
  alignas(64) std::atomic<int> done_{0};
  std::atomic<int> sleeping_{0};
  std::mutex sleep_, error_lock_;
  std::condition_variable wake_;
  std::exception_ptr error_;
};
thread_local bool Pool::inside_ = false;

}  // namespace

int thread_count() {
  static const int count = count_threads();
  return count;
}

void parallel(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (count <= 0) return;
  const int threads = thread_count();
  if (count > grain && threads > 1 && !Pool::inside()) {
    static Pool* pool = new Pool;  // its threads end with the process
    const int64_t pieces = int64_t(threads) * kChunksPerThread;
    const int64_t chunk = std::max({int64_t(1), grain, (count + pieces - 1) / pieces});
    if (pool->run(count, chunk, body)) return;
  }
  body(0, count);
}

}  // namespace fornax::flex
