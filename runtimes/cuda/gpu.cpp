#include "runtimes/cuda/gpu.h"

#include <algorithm>

#include "base/error.h"

namespace fornax::cuda {
namespace {

double gibibytes(size_t bytes) { return double(bytes) / double(size_t{1} << 30); }

}  // namespace

Gpu::Gpu(std::shared_ptr<const Driver> driver, Device device, std::string name)
    : driver_(std::move(driver)), device_(device), name_(std::move(name)), forks_(fork_count()) {
  const auto take = [this](size_t bytes) -> Address {
    Address memory = 0;
    const Result result = driver_->allocate(&memory, bytes);
    if (result == Result::out_of_memory) return 0;
    check(result, "taking memory");
    return memory;
  };
  // Work that uses the memory may be on its way still.
  const auto give = [this](Address memory) {
    quietly([&](const Driver& driver) {
      if (driver.wait_for_stream(stream_) == Result::success) driver.free(memory);
    });
  };
  pool_ = std::make_unique<runtime::Pool>(take, give);
}

Gpu::~Gpu() {
  quietly([&](const Driver& driver) { driver.wait_for_stream(stream_); });
  unload_retired(std::move(retired_));
  pool_.reset();
  quietly([&](const Driver& driver) {
    driver.destroy_stream(stream_);
    driver.release_context(device_);
  });
}

bool Gpu::usable() const {
  return fork_count() == forks_ && !broken_.load(std::memory_order_acquire);
}

void Gpu::check_usable() const {
  if (fork_count() != forks_) {
    fail(ErrorKind::device,
         "{}: CUDA does not survive fork(), and this process was forked off after its first use; "
         "fork before that, or start the child with exec",
         name_);
  }
  if (broken_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    fail(ErrorKind::device, "{}", why_broken_);
  }
}

void Gpu::enter() {
  check_usable();
  open_once_([this] { open(); });
  check(driver_->use_context(context_), "using the device");
}

void Gpu::open() {
  const Result result = driver_->retain_context(&context_, device_);
  if (result == Result::device_unavailable) {
    fail(ErrorKind::device, "{}: another process has the device for itself ({})", name_,
         driver_->describe(result));
  }
  check(result, "opening the device");
  check(driver_->use_context(context_), "using the device");
  Stream stream = nullptr;
  check(driver_->create_stream(&stream, kStreamNonBlocking), "making a stream");
  stream_ = stream;
}

void Gpu::failed(Result result, const std::string& what) {
  const std::string words = driver_->describe(result);
  if (breaks_device(result)) {
    const std::lock_guard lock(mutex_);
    if (why_broken_.empty()) {
      why_broken_ = fmt::format(
          "{}: a program broke the device ({}); {}; nothing runs on it any more in this process, "
          "which must be started again",
          name_, words, recent_launches());
    }
    broken_.store(true, std::memory_order_release);
    fail(ErrorKind::device, "{}", why_broken_);
  }
  const bool memory = result == Result::out_of_memory;
  fail(memory ? ErrorKind::out_of_memory : ErrorKind::device, "{}: {}: {}{}", name_, what, words,
       result == Result::deinitialized ? "; the process is ending" : "");
}

// The newest first, each once.
std::string Gpu::recent_launches() const {
  std::vector<const std::string*> labels;
  const unsigned next = next_recent_.load(std::memory_order_relaxed);
  for (size_t i = 1; i <= recent_.size(); i++) {
    const std::string* label = recent_[(next - i) % recent_.size()].load(std::memory_order_relaxed);
    if (label && std::find(labels.begin(), labels.end(), label) == labels.end()) {
      labels.push_back(label);
    }
  }
  if (labels.empty()) return "nothing was launched before";
  std::string text = "launched last:";
  for (const std::string* label : labels) {
    text += fmt::format("{} \"{}\"", label == labels.front() ? "" : ",", *label);
  }
  return text;
}

const std::string* Gpu::label(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return &*labels_.insert(text).first;
}

Address Gpu::allocate(size_t bytes) {
  enter();
  const Address memory = pool_->allocate(bytes);
  if (!memory) out_of_memory(bytes);
  return memory;
}

void Gpu::out_of_memory(size_t bytes) {
  const runtime::MemoryUse use = pool_->use();
  size_t left = 0, total = 0;
  if (driver_->memory_left(&left, &total) != Result::success) left = total = 0;
  fail(ErrorKind::out_of_memory,
       "{}: {:.3f} GiB wanted; {:.3f} GiB in use and {:.3f} GiB cached here, {:.3f} GiB of the "
       "device's {:.3f} GiB free; use smaller batches, or end what else uses the device",
       name_, gibibytes(bytes), gibibytes(use.in_use), gibibytes(use.reserved - use.in_use),
       gibibytes(left), gibibytes(total));
}

// The next owner's work comes after all that was launched before.  In a child of fork() the lock
// may be held for ever.
void Gpu::release(Address memory) noexcept {
  if (fork_count() == forks_) pool_->release(memory);
}

void Gpu::trim() {
  wait();
  pool_->trim();
}

void Gpu::wait() {
  enter();
  std::vector<Module> modules;
  {
    const std::lock_guard lock(mutex_);
    modules.swap(retired_);
  }
  const Result result = driver_->wait_for_stream(stream_);
  if (result == Result::success) unload_retired(std::move(modules));
  check(result, "waiting for the device");
}

void Gpu::retire(Module module) noexcept {
  if (fork_count() != forks_) return;
  const std::lock_guard lock(mutex_);
  retired_.push_back(module);
}

void Gpu::unload_retired(std::vector<Module> modules) noexcept {
  quietly([&](const Driver& driver) {
    for (const Module module : modules) driver.unload_module(module);
  });
}

}  // namespace fornax::cuda
