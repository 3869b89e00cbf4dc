// The reference backend: the authority on what every op means, in plain loops, on any machine.
// Every other backend is tested against it.  Safe from any thread: it keeps byte counts alone.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "backend/backend.h"
#include "backends/reference/interpret.h"
#include "base/error.h"

namespace fornax::reference {
namespace {

constexpr size_t kAlignment = 64;

struct Memory {
  std::atomic<size_t> in_use{0}, peak{0};

  void take(size_t bytes) {
    const size_t now = in_use.fetch_add(bytes) + bytes;
    size_t seen = peak.load();
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
  }
};

void release(Buffer* buffer) {
  static_cast<Memory*>(buffer->owner)->in_use.fetch_sub(buffer->bytes);
  std::free(buffer->data);
  delete buffer;
}

// An allocator may promise more than the machine has and break the promise at the first write.
size_t machine_bytes() { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }

struct PreparedGroup : Prepared {
  Group group;
  explicit PreparedGroup(const Group& g) : group(g) {}
};

class ReferenceBackend : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::vector<BackendDevice> devices(std::string&) override {
    return {{"reference", "interpreter in double and 64-bit integers, one thread"}};
  }

  Ref<Buffer> allocate(int device, size_t bytes) override {
    void* data = nullptr;
    if (bytes <= machine_bytes()) {
      const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      data = std::aligned_alloc(kAlignment, std::max(whole, kAlignment));
    }
    if (!data) {
      fail(ErrorKind::out_of_memory,
           "reference: cannot allocate {} bytes; {} are in use and the machine has {}; use smaller "
           "tensors or drop some",
           bytes, memory_.in_use.load(), machine_bytes());
    }
    auto* buffer = new Buffer;
    buffer->device = device;
    buffer->data = data;
    buffer->bytes = bytes;
    buffer->release = release;
    buffer->owner = &memory_;
    memory_.take(bytes);
    return Ref<Buffer>::adopt(buffer);
  }

  MemoryUse memory(int) override {
    const size_t in_use = memory_.in_use.load();
    return {in_use, in_use, memory_.peak.load()};
  }
  void trim(int) override {}

  void write(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    FORNAX_CHECK(offset <= to.bytes && bytes <= to.bytes - offset);
    if (bytes) std::memcpy(static_cast<std::byte*>(to.data) + offset, from, bytes);
  }
  void read(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    FORNAX_CHECK(offset <= from.bytes && bytes <= from.bytes - offset);
    if (bytes) std::memcpy(to, static_cast<const std::byte*>(from.data) + offset, bytes);
  }

  std::unique_ptr<Prepared> prepare(int, const Group& group) override {
    check(group);
    return std::make_unique<PreparedGroup>(group);
  }
  uint64_t execute(const Prepared& prepared, std::span<const Argument> inputs,
                   std::span<const Argument> outputs) override {
    interpret(static_cast<const PreparedGroup&>(prepared).group, inputs, outputs);
    return 0;
  }
  void synchronize(int) override {}

 private:
  Memory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace fornax::reference
