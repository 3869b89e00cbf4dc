#include "backends/cube/launch.h"

#include <array>
#include <bit>
#include <mutex>

#include "backends/cube/batch.h"
#include "backends/cube/shape_class.h"
#include "backends/cube/view.h"
#include "base/error.h"
#include "base/few.h"
#include "base/settings.h"
#include "graph/evaluate.h"
#include "kernel/build.h"

namespace fornax::cube {
namespace {

constexpr size_t kMostWords = 512;  // what 4 KiB of parameters hold
constexpr size_t kMostMaps = 4;

// A number as a launch's word: the element in the low bytes.
uint64_t word_for(DType dtype, const Scalar& scalar) {
  uint64_t word = 0;
  store(dtype, &word, 0, word_of(dtype, scalar));
  return word;
}

runtime::Address address_of(const Argument& argument) {
  return reinterpret_cast<runtime::Address>(argument.buffer->data);
}

struct Given {
  Device* device;
  std::span<const Argument> inputs, outputs;
  std::span<const runtime::Address> scratch;

  // Where the argument begins, in bytes.
  runtime::Address operator()(Place place, DType dtype) const {
    if (place.kind == Place::Kind::tickets) return device->tickets(LaunchBatch::way(*device));
    if (place.kind == Place::Kind::scratch) return scratch[size_t(place.number)];
    const bool input = place.kind == Place::Kind::input;
    const Argument& argument = (input ? inputs : outputs)[size_t(place.number)];
    return address_of(argument) + uint64_t(argument.offset * int64_t(size_of(dtype)));
  }
};

// Of the matrix that a map describes.
uint64_t bytes_of(const runtime::TensorMapRequest& map) {
  uint64_t bytes = map.extents[0] * uint64_t(map.element_bytes);
  for (size_t axis = 1; axis < size_t(map.rank); axis++) {
    bytes += (map.extents[axis] - 1) * map.pitches[axis - 1];
  }
  return bytes;
}

[[noreturn]] void explain(const Device& device, const KernelRecipe& recipe,
                          const Complaint& complaint, const kernel::Status& status) {
  const kernel::Kernel kernel = device.kernel_of(recipe);
  const bool asserted = kernel.at(kernel::InstructionId(status[1])).code == kernel::Code::assert_;
  if (asserted && complaint) complaint(status[2]);
  fail(ErrorKind::internal, "{}", kernel::describe(kernel, status));
}

}  // namespace

void Arguments::buffer(Place place, DType dtype, int64_t first, int64_t count) {
  rules_.push_back({Rule::Kind::buffer, place, dtype, first * int64_t(size_of(dtype))});
  counts_.push_back(count);
}
void Arguments::scalar(int input, DType dtype) {
  rules_.push_back({Rule::Kind::scalar, Place::input(input), dtype, 0});
}
void Arguments::number(DType dtype, int64_t value) {
  rules_.push_back({Rule::Kind::number, {}, dtype, value});
}

void Arguments::map(Place place, DType dtype, const runtime::TensorMapRequest& request) {
  rules_.push_back({Rule::Kind::map, place, dtype, int64_t(maps_.size())});
  maps_.push_back(request);
}

Launch::Launch(Device& device, KernelRecipe recipe, runtime::Grid grid, Arguments arguments,
               Complaint complaint)
    : program_(device.program(recipe)), grid_(grid), arguments_(std::move(arguments)) {
  arguments_.passes_counts_ = settings().check;
  const size_t most = arguments_.rules_.size() + arguments_.counts_.size() + 1;
  FORNAX_CHECK(most <= kMostWords && arguments_.maps_.size() <= kMostMaps);
  explain_ = std::make_shared<const Explain>(
      [&device, recipe = std::move(recipe), complaint = std::move(complaint)](
          const kernel::Status& status) { explain(device, recipe, complaint, status); });
}

// What one run passes to the program, and the memory that this touches.
struct Launch::Filled {
  Filled(Device& on, const runtime::Program& of, Given from)
      : device(on), program(of), given(from) {}

  Device& device;
  const runtime::Program& program;
  const Given given;
  std::array<uint64_t, kMostWords> words;
  std::array<runtime::TensorMap, kMostMaps> maps;
  Few<Touch, 32> touches;
  size_t count = 0, buffers = 0;  // so far
};

void Launch::fill(Filled& to, const Arguments::Rule& rule) const {
  uint64_t& word = to.words[to.count];
  switch (rule.kind) {
    case Arguments::Rule::Kind::number:
      word = uint64_t(rule.value);
      break;
    case Arguments::Rule::Kind::scalar:
      word = word_for(rule.dtype, to.given.inputs[size_t(rule.place.number)].scalar);
      break;
    case Arguments::Rule::Kind::map: {
      runtime::TensorMapRequest request = arguments_.maps_[size_t(rule.value)];
      request.base = to.given(rule.place, rule.dtype);
      runtime::TensorMap& map = to.maps[size_t(rule.value)];
      map = to.device.runtime().tensor_map(to.device.ordinal(), request);
      const bool written = rule.place.kind == Place::Kind::output;
      to.touches.push_back({request.base, request.base + bytes_of(request), written});
      word = reinterpret_cast<uint64_t>(&map);
      break;
    }
    case Arguments::Rule::Kind::buffer: {
      word = to.given(rule.place, rule.dtype) + uint64_t(rule.value);
      const uint64_t bytes = uint64_t(arguments_.counts_[to.buffers++]) * size_of(rule.dtype);
      const bool written = to.program.source.parameters[to.count] == runtime::ParameterKind::output;
      to.touches.push_back({word, word + bytes, written});
    }
  }
  to.count++;
}

void Launch::run(Device& device, std::span<const Argument> inputs,
                 std::span<const Argument> outputs,
                 std::span<const runtime::Address> scratch) const {
  const std::shared_ptr<const runtime::Program>& program = program_->get();
  Filled filled(device, *program, {&device, inputs, outputs, scratch});
  for (const Arguments::Rule& rule : arguments_.rules_) fill(filled, rule);
  size_t& count = filled.count;
  if (arguments_.passes_counts_) {
    for (const int64_t elements : arguments_.counts_) filled.words[count++] = uint64_t(elements);
  }
  const size_t wanted = program->source.parameters.size();
  FORNAX_CHECK(wanted == count || wanted == count + 1);
  static const std::shared_ptr<const Explain> nothing;
  const bool reports = wanted > count;
  if (reports) filled.words[count++] = 0;
  const auto launch = [&] {
    device.launch(program, grid_, {filled.words.data(), count},
                  {filled.touches.begin(), filled.touches.end()}, reports ? explain_ : nothing);
  };
  wants_view() ? launch_viewed(device, *program_, launch) : launch();
}

Place LaunchList::scratch(size_t bytes) {
  scratch_.push_back(bytes);
  return Place::scratch(int(scratch_.size()) - 1);
}

void LaunchList::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  ScratchMemory memory(device_);
  std::vector<runtime::Address> scratch;
  for (const size_t bytes : scratch_) scratch.push_back(memory.allocate(bytes));
  for (const Launch& launch : launches_) launch.run(device_, inputs, outputs, scratch);
}

struct VectorGroup::Variants {
  Make make;
  int best;
  std::mutex mutex;
  std::unique_ptr<PreparedGroup> made[5];  // by log2 of the lanes

  // The best one is there from the beginning and asks for no lock.
  const PreparedGroup& at(int lanes) {
    if (lanes == best) return *made[std::countr_zero(unsigned(lanes))];
    std::lock_guard lock(mutex);
    std::unique_ptr<PreparedGroup>& variant = made[std::countr_zero(unsigned(lanes))];
    if (!variant) variant = make(lanes);
    return *variant;
  }
};

VectorGroup::VectorGroup(int lanes, std::vector<Operand> operands, Make make)
    : operands_(std::move(operands)), variants_(std::make_unique<Variants>()) {
  variants_->make = std::move(make);
  variants_->best = lanes;
  variants_->made[std::countr_zero(unsigned(lanes))] = variants_->make(lanes);
}
VectorGroup::~VectorGroup() = default;

void VectorGroup::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  int lanes = variants_->best;
  const Given given{nullptr, inputs, outputs, {}};
  for (const Operand& operand : operands_) {
    const runtime::Address begin =
        given(operand.place, operand.dtype) + uint64_t(operand.first) * size_of(operand.dtype);
    // Both are powers of two.
    while (lanes > 1 && (begin & (uint64_t(lanes) * size_of(operand.dtype) - 1)) != 0) lanes /= 2;
  }
  variants_->at(lanes).run(inputs, outputs);
}

runtime::Grid blocks_for(int64_t count, int threads) {
  return {uint32_t(ceiling(count, threads)), 1, 1};
}

}  // namespace fornax::cube
