// The backend "flex": the CPU of this process, device "cpu".
#include <cstring>

#include "backend/backend.h"
#include "backends/flex/compile.h"
#include "backends/flex/describe.h"
#include "backends/flex/kernels.h"
#include "backends/flex/memory.h"
#include "backends/flex/onednn.h"
#include "backends/flex/rows.h"
#include "backends/flex/small.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr double kDear = 0.5;  // nanoseconds per element: what reading it from memory takes

std::unique_ptr<Kernel> prepare_anchor(Op op, const Group& group) {
  switch (info(op).family) {
    case Family::reduce:
      return prepare_reduce(group);
    case Family::contract:
      return prepare_matmul(group);
    case Family::convolve:
      return op == Op::pool_argmax ? prepare_pool(group) : prepare_convolve(group);
    case Family::index:
      return prepare_index(group);
    case Family::scan:
      return prepare_scan(group);
    case Family::other:
      return op == Op::cast ? prepare_pointwise(group) : prepare_generate(group);
    default:
      fail(ErrorKind::internal, "flex: {} anchors no group", info(op).name);
  }
}

class Flex : public Backend {
 public:
  std::string_view name() const override { return "flex"; }
  std::vector<BackendDevice> devices(std::string&) override { return {{"cpu", describe_cpu()}}; }

  Ref<Buffer> allocate(int device, size_t bytes) override { return allocate_buffer(device, bytes); }
  MemoryUse memory(int) override { return memory_use(); }
  void trim(int) override { trim_memory(); }
  void write(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    std::memcpy(static_cast<char*>(to.data) + offset, from, bytes);
  }
  void read(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    std::memcpy(to, static_cast<const char*>(from.data) + offset, bytes);
  }

  std::unique_ptr<Prepared> prepare(int, const Group& group) override {
    if (group.anchor < 0) return prepare_pointwise(group);
    return prepare_anchor(group.graph.steps[size_t(group.anchor)].op, group);
  }
  uint64_t execute(const Prepared& prepared, std::span<const Argument> inputs,
                   std::span<const Argument> outputs) override {
    static_cast<const Kernel&>(prepared).run(inputs, outputs);
    return 0;
  }
  void synchronize(int) override {}
  bool fuses_rows() const override { return true; }
  bool shares_rows(const Shape& domain, const Attributes& axes) const override {
    return has_long_rows(domain, axes);
  }
  bool repeats_work(Op op) const override { return op != Op::arange && cost_of(op) < kDear; }
  const SmallLoops* small_loops() override { return &flex::small_loops(); }
  std::string remark(int) override { return describe_onednn(); }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<Flex>(); }

}  // namespace fornax::flex
