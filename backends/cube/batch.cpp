#include "backends/cube/batch.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/error.h"

namespace fornax::cube {
namespace {

constexpr size_t kMostKnown = 4;    // recordings of a batch: results take turns between few places
constexpr size_t kLarge = 4 << 20;  // bytes of scratch memory of which there is to be one way alone
constexpr int kMostRemade = 32;     // recordings of the same launches
constexpr int kRunsToOne = 64;      // that make up for one of these
constexpr size_t kMapWords = sizeof(runtime::TensorMap) / sizeof(uint64_t);

thread_local LaunchBatch* current = nullptr;

bool is_map(runtime::ParameterKind kind) { return kind == runtime::ParameterKind::tensor_map; }

}  // namespace

LaunchBatch::~LaunchBatch() {
  if (current == this) current = nullptr;
  forget();
}

LaunchBatch* LaunchBatch::begun(const Device& device) {
  return current && &current->device_ == &device ? current : nullptr;
}
int LaunchBatch::way(const Device& device) {
  const LaunchBatch* batch = begun(device);
  return batch ? batch->way_ : 0;
}

LaunchBatch::Group::Group() : exceptions_(std::uncaught_exceptions()) {
  if (!current) return;
  current->way_ = (current->way_ + 1) % Device::kWays;
  current->small_[size_t(current->way_)].next = current->large_.next = 0;
  entries_ = current->entries_.size();
  words_ = current->words_.size();
  touches_ = current->touches_.size();
  requests_ = current->requests_.size();
}

LaunchBatch::Group::~Group() {
  if (!current || std::uncaught_exceptions() == exceptions_) return;
  current->entries_.resize(entries_);
  current->words_.resize(words_);
  current->touches_.resize(touches_);
  current->requests_.resize(requests_);
}

void LaunchBatch::begin() {
  FORNAX_CHECK(!current);
  if (can_record_) current = this;
}

void LaunchBatch::end() {
  if (current != this) return;  // what was to be collected has run
  current = nullptr;
  struct Forget {
    LaunchBatch& batch;
    ~Forget() { batch.forget(); }
  } forget{*this};
  launch();
}

void LaunchBatch::forget() {
  entries_.clear();
  words_.clear();
  touches_.clear();
  requests_.clear();
  order_.clear();
  way_ = 0;
  runtime::Runtime& runtime = device_.runtime();
  for (const runtime::Address memory : outgrown_) runtime.release(device_.ordinal(), memory);
  outgrown_.clear();
  const auto release = [&](Blocks& all) {
    all.next = 0;
    for (Block& block : all.blocks) {
      if (block.memory) runtime.release(device_.ordinal(), std::exchange(block.memory, 0));
    }
  };
  for (Blocks& way : small_) release(way);
  release(large_);
}

runtime::Address LaunchBatch::scratch(size_t bytes) {
  Blocks& all = bytes < kLarge ? small_[size_t(way_)] : large_;
  if (all.next == all.blocks.size()) all.blocks.emplace_back();
  Block& block = all.blocks[all.next++];
  if (block.memory && block.bytes < bytes) outgrown_.push_back(std::exchange(block.memory, 0));
  block.bytes = std::max(block.bytes, bytes);
  if (!block.memory) block.memory = device_.runtime().allocate(device_.ordinal(), block.bytes);
  return block.memory;
}

void LaunchBatch::add(const std::shared_ptr<const runtime::Program>& program, runtime::Grid grid,
                      std::span<const uint64_t> arguments, std::span<const Touch> touches,
                      const std::shared_ptr<const Explain>& explain) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  const size_t first = words_.size();
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!is_map(program->source.parameters[i])) {
      words_.push_back(arguments[i]);
      continue;
    }
    const size_t at = words_.size();
    words_.resize(at + kMapWords);
    std::memcpy(&words_[at], reinterpret_cast<const void*>(arguments[i]),
                sizeof(runtime::TensorMap));
  }
  if (explain) requests_.push_back({Execution::current(), explain});
  entries_.push_back({program, grid, first, words_.size() - first, touches_.size(), touches.size(),
                      explain != nullptr});
  touches_.insert(touches_.end(), touches.begin(), touches.end());
}

// A recording needs all of its status slots at once.
void LaunchBatch::launch() {
  if (entries_.size() < 2 || requests_.size() > Reports::kMost / 2) return launch_each();
  if (requests_.empty()) return launch_recorded();
  device_.reports().run(requests_, [&](std::span<const runtime::Address> slots) {
    size_t next = 0;
    for (const Entry& entry : entries_) {
      if (entry.reports) words_[entry.first + entry.count - 1] = slots[next++];
    }
    launch_recorded();
  });
}

void LaunchBatch::launch_each() {
  size_t next = 0;
  for (const Entry& entry : entries_) {
    if (!entry.reports) {
      run(entry);
      continue;
    }
    device_.reports().run({&requests_[next++], 1}, [&](std::span<const runtime::Address> slots) {
      words_[entry.first + entry.count - 1] = slots[0];
      run(entry);
    });
  }
}

void LaunchBatch::launch_recorded() {
  Known* known = fitting();
  if (known) {
    change(*known);
  } else if (!(known = recorded())) {
    return;
  }
  known->used = ++uses_;
  if (uses_ % kRunsToOne == 0 && remade_ > 0) remade_--;
  device_.runtime().run(device_.ordinal(), *known->recording);
}

// The recording of these launches at the same places.  Else, where there are enough of them, the
// one of those that may run in the same order whose turn is longest ago: places take turns, and the
// one that ran last will be right next time.  nullptr: there is to be a new one.
LaunchBatch::Known* LaunchBatch::fitting() {
  Known* oldest = nullptr;
  for (Known& known : known_) {
    if (known.entries != entries_) continue;
    if (known.touches == touches_) return &known;
    if (!oldest || known.used < oldest->used) oldest = &known;
  }
  // Launches that touch other memory may have to wait for others.
  return known_.size() == kMostKnown && oldest && oldest->order == order() ? oldest : nullptr;
}

// A new recording.  nullptr: it cannot be made, and the launches ran.
LaunchBatch::Known* LaunchBatch::recorded() {
  // Where memory never settles, an order that suits any places is worth more than the best.
  const auto alike = [&](const Known& known) { return known.entries == entries_; };
  if (std::any_of(known_.begin(), known_.end(), alike) && ++remade_ == kMostRemade) {
    at_once_ = 1;
    order_.clear();
  }
  if (known_.size() == kMostKnown) {
    known_.erase(std::min_element(known_.begin(), known_.end(),
                                  [](auto& a, auto& b) { return a.used < b.used; }));
  }
  std::unique_ptr<runtime::Recording> recording;
  try {
    recording = record();
    if (recording) {
      return &known_.emplace_back(Known{entries_, words_, touches_, order(), std::move(recording)});
    }
  } catch (const Error&) {  // for want of memory, for one
    for (const Entry& entry : entries_) run(entry);
  }
  can_record_ = false;
  return nullptr;
}

// The arguments as a runtime takes them, until the next call.
std::span<const uint64_t> LaunchBatch::arguments_of(const Entry& entry) {
  const auto& parameters = entry.program->source.parameters;
  if (parameters.size() == entry.count) return {&words_[entry.first], entry.count};  // no map
  arguments_.clear();
  maps_.clear();
  maps_.reserve(parameters.size());
  size_t at = entry.first;
  for (const runtime::ParameterKind parameter : parameters) {
    if (!is_map(parameter)) {
      arguments_.push_back(words_[at++]);
      continue;
    }
    std::memcpy(&maps_.emplace_back(), &words_[at], sizeof(runtime::TensorMap));
    arguments_.push_back(reinterpret_cast<uint64_t>(&maps_.back()));
    at += kMapWords;
  }
  return arguments_;
}

void LaunchBatch::run(const Entry& entry) {
  device_.runtime().launch(device_.ordinal(), *entry.program, entry.grid, arguments_of(entry));
}

const Order& LaunchBatch::order() {
  if (order_.empty()) {
    std::vector<std::span<const Touch>> launches;
    for (const Entry& entry : entries_) {
      launches.emplace_back(touches_.data() + entry.first_touch, entry.touches);
    }
    order_ = order_of(launches, at_once_);
  }
  return order_;
}

std::unique_ptr<runtime::Recording> LaunchBatch::record() {
  runtime::Runtime& runtime = device_.runtime();
  const Order& after = order();
  runtime.begin_recording(device_.ordinal());
  try {
    for (size_t i = 0; i < entries_.size(); i++) {
      const Entry& entry = entries_[i];
      runtime.record(device_.ordinal(), *entry.program, entry.grid, arguments_of(entry), after[i]);
    }
  } catch (...) {
    runtime.end_recording(device_.ordinal());
    throw;
  }
  return runtime.end_recording(device_.ordinal());
}

bool LaunchBatch::differs(const Known& known, const Entry& entry) const {
  return !std::equal(words_.begin() + ptrdiff_t(entry.first),
                     words_.begin() + ptrdiff_t(entry.first + entry.count),
                     known.words.begin() + ptrdiff_t(entry.first));
}

void LaunchBatch::change(Known& known) {
  known.touches = touches_;
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    if (!differs(known, entry)) continue;
    device_.runtime().change(device_.ordinal(), *known.recording, i, arguments_of(entry));
    std::copy_n(words_.begin() + ptrdiff_t(entry.first), entry.count,
                known.words.begin() + ptrdiff_t(entry.first));
  }
}

ScratchMemory::~ScratchMemory() {
  for (const runtime::Address memory : memory_) {
    device_.runtime().release(device_.ordinal(), memory);
  }
}

runtime::Address ScratchMemory::allocate(size_t bytes) {
  if (LaunchBatch* batch = LaunchBatch::begun(device_)) return batch->scratch(bytes);
  memory_.push_back(device_.runtime().allocate(device_.ordinal(), bytes));
  return memory_.back();
}

}  // namespace fornax::cube
