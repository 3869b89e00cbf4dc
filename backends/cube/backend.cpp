// The backend "cube": fused groups as kernels of ours, on the devices of one runtime.  There is one
// backend per runtime.  A Buffer's data is an address of its device.
#include <algorithm>
#include <deque>

#include "backend/registry.h"
#include "backends/cube/batch.h"
#include "backends/cube/kernels.h"
#include "backends/cube/row_shape.h"
#include "backends/cube/view.h"
#include "base/error.h"
#include "runtime/registry.h"

namespace fornax::cube {

// Ops without a function are not written yet.
std::unique_ptr<PreparedGroup> prepare_group(Device& device, const Group& group) {
  if (group.anchor < 0) return prepare_pointwise(device, group);
  const Op op = group.graph.steps[size_t(group.anchor)].op;
  if (is_reduce(op)) return prepare_rows(device, group);
  switch (op) {
    case Op::cast:
      return prepare_pointwise(device, group);
    case Op::arange:
      return prepare_arange(device, group);
    case Op::random_bits:
      return prepare_random_bits(device, group);
    case Op::pad:
      return prepare_pad(device, group);
    case Op::cat:
      return prepare_cat(device, group);
    case Op::fold:
      return prepare_fold(device, group);
    case Op::gather:
      return prepare_gather(device, group);
    case Op::scatter:
      return prepare_scatter(device, group);
    case Op::cumsum:
    case Op::cumprod:
    case Op::cummax:
    case Op::cummin:
      return prepare_scan(device, group);
    case Op::matmul:
      return prepare_matmul(device, group);
    case Op::argsort:
      return prepare_argsort(device, group);
    case Op::convolve:
    case Op::convolve_input:
    case Op::convolve_weight:
      return prepare_convolve(device, group);
    case Op::pool_argmax:
      return prepare_pool_argmax(device, group);
    default:
      fail(ErrorKind::internal, "cube: {} is not written yet", info(op).name);
  }
}

namespace {

runtime::Address address_of(const Buffer& buffer) {
  return reinterpret_cast<runtime::Address>(buffer.data);
}

void release(Buffer* buffer) {
  auto& device = *static_cast<Device*>(buffer->owner);
  device.runtime().release(device.ordinal(), address_of(*buffer));
  buffer->~Buffer();
  free_block(buffer, sizeof(Buffer));
}

// What a device can do, for people.
std::string describe(const runtime::Capabilities& c) {
  return fmt::format("{} processors, {} KiB of shared memory a block, kernels for {}", c.processors,
                     c.shared_bytes >> 10, c.target);
}

class Cube : public Backend {
 public:
  explicit Cube(runtime::Runtime& runtime)
      : runtime_(runtime), name_(fmt::format("cube<{}>", runtime.name())) {
    int ordinal = 0;
    for (const runtime::RuntimeDevice& found : runtime.devices(absence_)) {
      devices_.emplace_back(runtime, ordinal++, found);
    }
  }

  // Below that of the CPU for hardware; what runs kernels step by step comes last.
  int rank() const {
    const bool hardware =
        !devices_.empty() && devices_[0].capabilities().language != runtime::Language::kernel;
    return hardware ? -10 : 200;
  }

  std::string_view name() const override { return name_; }
  bool fuses_rows() const override { return true; }
  // Columns are reduced in one order with rows and without, where all devices have them so.
  bool shares_rows(const Shape& domain, const Attributes& axes) const override {
    return std::all_of(devices_.begin(), devices_.end(), [&](const Device& device) {
      return may_have_columns(domain, axes, device.capabilities().processors);
    });
  }
  bool repeats_work(Op) const override { return true; }
  bool writes_anywhere(Op anchor) const override {
    return anchor == Op::copy || is_reduce(anchor) || anchor == Op::matmul;
  }
  bool fuses_after(Op anchor) const override { return is_reduce(anchor) || anchor == Op::matmul; }
  std::vector<BackendDevice> devices(std::string& absence) override {
    absence = absence_;
    std::vector<BackendDevice> list;
    for (const Device& device : devices_) {
      list.push_back({device.described().name, device.described().description});
    }
    return list;
  }

  Ref<Buffer> allocate(int ordinal, size_t bytes) override {
    Device& device = at(ordinal);
    const runtime::Address memory = runtime_.allocate(ordinal, bytes);
    auto* buffer = new (allocate_block(sizeof(Buffer))) Buffer;
    buffer->device = ordinal;
    buffer->data = reinterpret_cast<void*>(memory);
    buffer->bytes = bytes;
    buffer->release = release;
    buffer->owner = &device;
    return Ref<Buffer>::adopt(buffer);
  }
  MemoryUse memory(int ordinal) override {
    const runtime::MemoryUse use = runtime_.memory(ordinal);
    return {use.in_use, use.reserved, use.peak};
  }
  void trim(int ordinal) override {
    at(ordinal).drop_programs();
    runtime_.trim(ordinal);
  }
  void write(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    FORNAX_CHECK(offset <= to.bytes && bytes <= to.bytes - offset);
    if (bytes > 0) runtime_.write(ordinal_of(to), address_of(to) + offset, from, bytes);
  }
  void read(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    FORNAX_CHECK(offset <= from.bytes && bytes <= from.bytes - offset);
    if (bytes > 0) runtime_.read(ordinal_of(from), to, address_of(from) + offset, bytes);
  }

  std::unique_ptr<Prepared> prepare(int ordinal, const Group& group) override {
    return prepare_group(at(ordinal), group);
  }
  uint64_t execute(const Prepared& prepared, std::span<const Argument> inputs,
                   std::span<const Argument> outputs) override {
    const Execution execution;
    const LaunchBatch::Group batched;
    static_cast<const PreparedGroup&>(prepared).run(inputs, outputs);
    return execution.number();
  }
  std::vector<LateError> late_errors(int ordinal) override {
    return at(ordinal).reports().collect();
  }
  std::unique_ptr<Batch> new_batch(int ordinal) override {
    if (wants_view()) return nullptr;  // launches are timed one by one
    return std::make_unique<LaunchBatch>(at(ordinal));
  }
  void begin(Batch& batch) override { static_cast<LaunchBatch&>(batch).begin(); }
  void end(Batch& batch) override { static_cast<LaunchBatch&>(batch).end(); }
  bool wants_arenas() const override { return true; }
  void synchronize(int ordinal) override { runtime_.synchronize(ordinal); }
  std::string remark(int ordinal) override { return describe(at(ordinal).capabilities()); }

 private:
  Device& at(int ordinal) { return devices_[size_t(ordinal)]; }
  static int ordinal_of(const Buffer& buffer) {
    return static_cast<const Device*>(buffer.owner)->ordinal();
  }

  runtime::Runtime& runtime_;
  const std::string name_;
  std::string absence_;
  std::deque<Device> devices_;
};

const bool kAdded = (add_backends([] {
                       std::vector<RankedBackend> backends;
                       for (runtime::Runtime* runtime : runtime::runtimes()) {
                         auto cube = std::make_unique<Cube>(*runtime);
                         const int rank = cube->rank();
                         backends.push_back({rank, std::move(cube)});
                       }
                       return backends;
                     }),
                     true);

}  // namespace
}  // namespace fornax::cube
