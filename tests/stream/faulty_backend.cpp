#include "tests/stream/faulty_backend.h"

#include <fornax/device.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "backend/registry.h"
#include "base/error.h"

namespace fornax {
namespace {

bool contains(const Group& group, Op op) {
  return std::any_of(group.graph.steps.begin(), group.graph.steps.end(),
                     [op](const Step& step) { return step.op == op; });
}

Backend& reference() {
  const Device device("reference");
  return *physical_device(device.physical()).backend;
}

struct FaultyGroup : Prepared {
  std::unique_ptr<Prepared> inner;
  bool throws = false, lacks_memory = false;
};

class Faulty : public Backend {
 public:
  std::string_view name() const override { return kFaulty; }
  std::vector<BackendDevice> devices(std::string&) override { return {{kFaulty, "for tests"}}; }
  Ref<Buffer> allocate(int device, size_t bytes) override {
    return reference().allocate(device, bytes);
  }
  MemoryUse memory(int device) override { return reference().memory(device); }
  void trim(int) override {}
  void write(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    reference().write(to, offset, from, bytes);
  }
  void read(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    reference().read(to, from, offset, bytes);
  }
  std::unique_ptr<Prepared> prepare(int device, const Group& group) override {
    if (contains(group, Op::tan)) fail(ErrorKind::internal, "faulty: cannot prepare tan");
    auto prepared = std::make_unique<FaultyGroup>();
    prepared->inner = reference().prepare(device, group);
    prepared->throws = contains(group, Op::sinh);
    prepared->lacks_memory = contains(group, Op::cosh);
    return prepared;
  }
  uint64_t execute(const Prepared& prepared, std::span<const Argument> inputs,
                   std::span<const Argument> outputs) override {
    const auto& group = static_cast<const FaultyGroup&>(prepared);
    if (group.throws) throw std::runtime_error("the cable is loose");
    if (group.lacks_memory) throw std::bad_alloc();
    return reference().execute(*group.inner, inputs, outputs);
  }
  void synchronize(int) override {}
};

[[maybe_unused]] const bool added = (add_backends([] {
                                       std::vector<RankedBackend> all;
                                       all.push_back({1000, std::make_unique<Faulty>()});
                                       return all;
                                     }),
                                     true);

}  // namespace
}  // namespace fornax
