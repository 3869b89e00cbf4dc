// One GPU: its context, made at first use, its one stream of work, its memory, and what is known of
// its health.
//
// A fault of a program is found later, by whatever call comes next, and no call works after it.  So
// the labels of the last launches are kept, and every later call throws the same error.
//
// Destructors of what lives on a GPU may run when the process ends, after the driver: they go
// through quietly().  Thread-safety: every function may be called from several threads at once.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/once.h"
#include "runtime/pool.h"
#include "runtimes/cuda/driver.h"

namespace fornax::cuda {

class Gpu {
 public:
  Gpu(std::shared_ptr<const Driver> driver, Device device, std::string name);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Error(device): this process was forked off since, or the device is broken.
  void check_usable() const;
  // check_usable, and the context is this thread's.  Before every call of the driver.
  void enter();
  void check(Result result, const char* what) {
    if (result != Result::success) [[unlikely]]
      failed(result, what);
  }
  [[noreturn]] void failed(Result result, const std::string& what);
  // For destructors: calls work(driver) where that has a meaning still.
  template <class Work>
  void quietly(Work work) noexcept {
    if (stream_ && usable() && driver_->use_context(context_) == Result::success) work(*driver_);
  }

  Address allocate(size_t bytes);
  void release(Address memory) noexcept;
  runtime::MemoryUse use() { return pool_->use(); }
  void trim();
  void wait();

  // The same text is the same pointer, good for as long as the GPU.
  const std::string* label(const std::string& text);
  void note_launch(const std::string* label) {
    recent_[next_recent_.fetch_add(1, std::memory_order_relaxed) % recent_.size()].store(
        label, std::memory_order_relaxed);
  }
  // Unloaded when nothing can be running it any more.
  void retire(Module module) noexcept;

  const Driver& driver() const { return *driver_; }
  const std::string& name() const { return name_; }  // "cuda:0"
  Context context() const { return context_; }       // after enter()
  Stream stream() const { return stream_; }

 private:
  bool usable() const;
  void open();
  void unload_retired(std::vector<Module> modules) noexcept;
  std::string recent_launches() const;
  [[noreturn]] void out_of_memory(size_t bytes);

  const std::shared_ptr<const Driver> driver_;
  const Device device_;
  const std::string name_;
  const unsigned forks_;
  Once open_once_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  std::unique_ptr<runtime::Pool> pool_;

  std::array<std::atomic<const std::string*>, 4> recent_ = {};
  std::atomic<unsigned> next_recent_{0};
  std::atomic<bool> broken_{false};

  mutable std::mutex mutex_;  // of what follows
  std::string why_broken_;
  std::set<std::string> labels_;
  std::vector<Module> retired_;
};

}  // namespace fornax::cuda
