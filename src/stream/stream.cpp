#include "stream/stream.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/settings.h"
#include "stream/flush.h"

namespace fornax {
namespace {

// Every stream ever made, per device.  A thread that ends leaves its stream for the next one.
struct Streams {
  std::mutex mutex;
  std::deque<Stream> all;
  std::vector<Stream*> idle;
};

Streams& streams_of(int device) {
  static std::mutex mutex;
  static auto* devices = new std::unordered_map<int, Streams>;
  std::lock_guard lock(mutex);
  return (*devices)[device];
}

// The calling thread's streams, by device.
struct Mine {
  std::vector<Stream*> by_device;
  ~Mine() {
    for (size_t device = 0; device < by_device.size(); device++) {
      if (!by_device[device]) continue;
      Streams& streams = streams_of(int(device));
      std::lock_guard lock(streams.mutex);
      streams.idle.push_back(by_device[device]);
    }
  }
};
thread_local Mine mine;

Stream* claim_stream(int device) {
  Streams& streams = streams_of(device);
  std::lock_guard lock(streams.mutex);
  if (!streams.idle.empty()) {
    Stream* stream = streams.idle.back();
    streams.idle.pop_back();
    return stream;
  }
  return &streams.all.emplace_back(device);
}

// Failures of each device's work that no call has thrown yet.
struct Unread {
  std::mutex mutex;
  std::vector<std::pair<int, std::shared_ptr<const Error>>> failures;
};
Unread& unread() {
  static auto* list = new Unread;
  return *list;
}
constexpr size_t kMostUnread = 64;

int64_t byte_count(const Type& type) {
  return type.shape.element_count() * int64_t(size_of(type.dtype));
}

}  // namespace

void note_failure(int device, const std::shared_ptr<const Error>& failure) {
  std::lock_guard lock(unread().mutex);
  auto& failures = unread().failures;
  for (const auto& known : failures) {
    if (known.second == failure) return;
  }
  if (failures.size() < kMostUnread) failures.emplace_back(device, failure);
}

void throw_failure(const std::shared_ptr<const Error>& failure) {
  {
    std::lock_guard lock(unread().mutex);
    std::erase_if(unread().failures, [&](const auto& known) { return known.second == failure; });
  }
  throw Error(*failure);
}

void throw_unread_failure(int device) {
  std::shared_ptr<const Error> first;
  {
    std::lock_guard lock(unread().mutex);
    for (const auto& [where, failure] : unread().failures) {
      if (where == device && !first) first = failure;
    }
    std::erase_if(unread().failures, [&](const auto& known) { return known.first == device; });
  }
  if (first) throw Error(*first);
}

Stream::Stream(int device)
    : most_ops_(settings().pending_ops),
      most_bytes_(settings().pending_bytes),
      device_(device),
      flush_(std::make_unique<Flush>(device)) {}
Stream::~Stream() = default;

constinit thread_local Stream* Stream::last_ = nullptr;

Stream& Stream::find(int device) {
  if (mine.by_device.size() <= size_t(device)) mine.by_device.resize(size_t(device) + 1);
  Stream*& stream = mine.by_device[size_t(device)];
  if (!stream) stream = claim_stream(device);
  last_ = stream;
  return *stream;
}

void Stream::flush_all(int device) {
  Streams& streams = streams_of(device);
  std::vector<Stream*> all;
  {
    std::lock_guard lock(streams.mutex);
    for (Stream& stream : streams.all) all.push_back(&stream);
  }
  for (Stream* stream : all) stream->flush();
}

void Stream::record(Ref<Node> node) {
  const int64_t bytes = byte_count(node->type);
  std::lock_guard lock(lock_);
  // Run before the node joins: it has no handle yet, and would be computed though nobody may keep
  // it.
  if (int64_t(pending_.size()) >= most_ops_ ||
      (!pending_.empty() && pending_bytes_ + bytes > most_bytes_)) {
    flush_locked();
  }
  node->stream = this;
  node->index = uint32_t(pending_.size());
  pending_bytes_ += bytes;
  pending_.push_back(std::move(node));
}

void Stream::flush() {
  std::lock_guard lock(lock_);
  flush_locked();
}

void Stream::flush_locked() {
  if (pending_.empty()) return;
  pending_bytes_ = 0;
  flush_->run(pending_);
}

}  // namespace fornax
