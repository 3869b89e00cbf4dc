// The loader: workers take batch numbers in turn and put what they made into a ring, which the
// caller empties in order.  Which worker makes a batch has no influence on it.
//
// Invariants, under Run::mutex: taken is the next number to be made, given the next to be handed
// out, given <= taken <= given + ring.size().  A slot is full between its making and its handing
// out.
#include <fornax/data.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/error.h"

namespace fornax::data {
namespace {

// A small generator (splitmix64), so that orders do not depend on a standard library.
uint64_t next_random(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Uniform in [0, bound), without the bias of a plain remainder.
uint64_t random_below(uint64_t& state, uint64_t bound) {
  const uint64_t unbiased = (0 - bound) % bound;  // 2^64 mod bound values are thrown away
  uint64_t value = next_random(state);
  while (value < unbiased) value = next_random(state);
  return value % bound;
}

struct Slot {
  bool full = false;
  Batch batch;
  std::exception_ptr error;
};

}  // namespace

struct Loader::Shared {
  struct State {
    Source source;
    LoaderOptions options;
  };
  std::shared_ptr<const State> state;
  int64_t examples = 0, batches = 0;
};

struct Epoch::Run {
  std::shared_ptr<const void> owner;  // keeps source and options alive
  const Source* source = nullptr;
  LoaderOptions options;
  Site site;  // of the call of epoch(), for errors
  std::vector<int64_t> order;
  int64_t batches = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Slot> ring;
  int64_t taken = 0, given = 0;
  bool stopped = false;
  std::vector<std::thread> workers;

  Batch make(int64_t number) const {
    const size_t from = size_t(number * options.batch_size);
    const size_t count = std::min(size_t(options.batch_size), order.size() - from);
    return source->batch(std::span(order).subspan(from, count), options.device, site);
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return stopped || taken == batches || taken < given + int64_t(ring.size());
      });
      if (stopped || taken == batches) return;
      const int64_t number = taken++;
      lock.unlock();
      Slot made{true, {}, nullptr};
      try {
        made.batch = make(number);
        options.device.flush();
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      ring[size_t(number) % ring.size()] = std::move(made);
      changed.notify_all();
    }
  }

  bool next(Batch& batch) {
    if (stopped || given == batches) return false;
    if (workers.empty()) {
      stopped = true;  // unless making it succeeds
      batch = make(given++);
      stopped = false;
      return true;
    }
    std::unique_lock lock(mutex);
    Slot& slot = ring[size_t(given) % ring.size()];
    changed.wait(lock, [&] { return slot.full; });
    const Slot ready = std::exchange(slot, {});
    given++;
    if (ready.error) stopped = true;
    changed.notify_all();
    lock.unlock();
    if (ready.error) std::rethrow_exception(ready.error);
    batch = ready.batch;
    return true;
  }

  ~Run() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

bool Epoch::next(Batch& batch) {
  batch = {};  // its memory can serve the batch after the next
  return run_ && run_->next(batch);
}

Epoch::~Epoch() { delete run_; }

Loader::Loader(Source source, LoaderOptions o, Site site) : shared_(nullptr) {
  const Call call("loader", site);
  if (o.batch_size < 1 || o.workers < 0 || o.prefetch < 1) {
    fail(ErrorKind::value,
         "loader: batch_size is {}, workers {}, prefetch {}; they must be at least 1, 0 and 1",
         o.batch_size, o.workers, o.prefetch);
  }
  const int64_t size = source.size();
  const int64_t full = size / o.batch_size, rest = size % o.batch_size;
  const bool keep_rest = rest > 0 && !o.drop_last;
  auto state = std::make_shared<const Shared::State>(Shared::State{std::move(source), o});
  shared_ = new Shared{std::move(state), keep_rest ? size : full * o.batch_size,
                       full + (keep_rest ? 1 : 0)};
}

Loader::~Loader() { delete shared_; }

int64_t Loader::batches() const { return shared_->batches; }
int64_t Loader::examples() const { return shared_->examples; }

std::vector<int64_t> Loader::order(int64_t epoch) const {
  const LoaderOptions& o = shared_->state->options;
  std::vector<int64_t> order(size_t(shared_->state->source.size()));
  std::iota(order.begin(), order.end(), 0);
  if (o.shuffle) {
    uint64_t random = o.seed;
    random = next_random(random) ^ uint64_t(epoch);
    for (size_t i = order.size(); i > 1; i--) {
      std::swap(order[i - 1], order[size_t(random_below(random, i))]);
    }
  }
  order.resize(size_t(shared_->examples));
  return order;
}

Epoch Loader::epoch(int64_t number, Site site) const {
  const auto& state = shared_->state;
  auto run = std::make_unique<Epoch::Run>();
  run->owner = state;
  run->source = &state->source;
  run->options = state->options;
  run->site = site;
  run->order = order(number);
  run->batches = shared_->batches;
  run->ring.resize(size_t(state->options.prefetch));
  const int64_t workers = std::min(int64_t(state->options.workers), run->batches);
  for (int64_t i = 0; i < workers; i++) {
    run->workers.emplace_back([r = run.get()] { r->work(); });
  }
  return Epoch(run.release());
}

}  // namespace fornax::data
