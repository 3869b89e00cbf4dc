// Program: the domain's axes collapsed, and runs over stretches of it.
#include "backends/flex/program.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/flex/gather.h"
#include "backends/flex/kernels.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kLongRow = 256;   // rows from this size on are walked one by one
constexpr int64_t kNearRow = 8192;  // elements of a row that caches hold while others pass
constexpr double kChunk = 20000;    // nanoseconds of work that a thread takes at a time
constexpr int64_t kUnbounded = int64_t(1) << 62;

// Memory of one thread that grows to what its largest program needs.
char* scratch(size_t bytes) {
  struct Block {
    char* data = nullptr;
    size_t bytes = 0;
    ~Block() { ::operator delete(data, std::align_val_t(64)); }
  };
  static thread_local Block block;
  if (block.bytes < bytes) {
    ::operator delete(block.data, std::align_val_t(64));
    block.data = nullptr, block.bytes = 0;
    block.data = static_cast<char*>(::operator new(bytes, std::align_val_t(64)));
    block.bytes = bytes;
    std::memset(block.data, 0, bytes);
  }
  return block.data;
}

// Outputs that are inputs become copies of them: every output is a computed step.
Graph with_copies(const Graph& graph, int inputs) {
  Graph result = graph;
  for (int& output : result.outputs) {
    if (output >= inputs) continue;
    Step copy;
    copy.op = Op::copy;
    copy.type = graph.steps[size_t(output)].type;
    copy.inputs = {output};
    result.steps.push_back(copy);
    output = int(result.steps.size()) - 1;
  }
  return result;
}

}  // namespace

void broadcast_strides(const Type& type, const Layout& layout, const Shape& domain,
                       int64_t (&strides)[kMaxRank]) {
  const int shift = domain.rank() - type.shape.rank();
  for (int axis = 0; axis < domain.rank(); axis++) {
    const bool repeated = axis < shift || type.shape[axis - shift] == 1;
    strides[axis] = repeated ? 0 : layout.strides[axis - shift];
  }
}

Program::Program(const Graph& original, int inputs, const Shape& domain,
                 std::span<const Layout> layouts, CompileOptions options)
    : count_(domain.element_count()) {
  const Graph graph = with_copies(original, inputs);
  for (int i = 0; i < inputs; i++) {
    const Step& step = graph.steps[size_t(i)];
    Input input{step.type.dtype, step.op == Op::full, Reach::constant};
    if (!input.number) {
      broadcast_strides(step.type, layouts[size_t(i)], domain, input.strides);
    }
    inputs_.push_back(input);
  }
  for (int output : graph.outputs) outputs_.push_back(graph.steps[size_t(output)].type.dtype);
  collapse(domain);
  std::vector<Reach> reaches;
  for (Input& input : inputs_) {
    input.reach = reach_of(input);
    if (input.reach == Reach::gathered) input.tile = gathered_++;
    reaches.push_back(input.reach);
  }
  code_ = compile(graph, reaches, std::move(options));
  longest_run_ = gathered_ > 0 ? kTile : kUnbounded;
}

// Neighbouring axes that every input walks as one become one; axes of size 1 go.
void Program::collapse(const Shape& domain) {
  for (int axis = 0; axis < domain.rank(); axis++) {
    if (domain[axis] == 1) continue;
    bool joins = rank_ > 0;
    for (const Input& input : inputs_) {
      joins = joins && input.strides[rank_ - 1] == input.strides[axis] * domain[axis];
    }
    if (!joins) sizes_[rank_++] = 1;
    sizes_[rank_ - 1] *= domain[axis];
    for (Input& input : inputs_) input.strides[rank_ - 1] = input.strides[axis];
  }
  const bool scattered = std::any_of(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    const Reach reach = reach_of(input);
    return reach != Reach::constant && reach != Reach::direct;
  });
  if (scattered && rank_ > 1 && sizes_[rank_ - 1] >= kLongRow) row_ = sizes_[rank_ - 1];
}

Reach Program::reach_of(const Input& input) const {
  bool constant = true, ordered = true;
  int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; axis--) {
    constant &= input.strides[axis] == 0;
    ordered &= input.strides[axis] == stride;
    stride *= sizes_[axis];
  }
  if (constant) return Reach::constant;
  if (ordered) return Reach::direct;
  if (row_ == 0) return Reach::gathered;
  if (input.strides[rank_ - 1] == 1) {
    const int64_t* strides = input.strides;
    const bool repeated =
        std::all_of(strides, strides + rank_ - 1, [](int64_t s) { return s == 0; });
    return repeated && row_ <= kNearRow ? Reach::near : Reach::direct;
  }
  return input.strides[rank_ - 1] == 0 ? Reach::row_constant : Reach::gathered;
}

Program::Index Program::index_of(int64_t element) const {
  Index index{};
  for (int axis = rank_ - 1; axis > 0; axis--) {
    index[size_t(axis)] = element % sizes_[axis];
    element /= sizes_[axis];
  }
  index[0] = element;
  return index;
}

int64_t Program::offset_of(const Input& input, const Index& index) const {
  int64_t offset = 0;
  for (int axis = 0; axis < rank_; axis++) offset += index[size_t(axis)] * input.strides[axis];
  return offset;
}

double Program::cost() const {
  constexpr double kPerByte = 0.08;
  double cost = code_.cost;
  for (const Input& input : inputs_) {
    if (input.reach == Reach::direct) cost += kPerByte * double(size_of(input.dtype));
    if (input.reach == Reach::gathered) cost += 1;
  }
  for (DType output : outputs_) cost += kPerByte * double(size_of(output));
  return cost;
}

namespace {

size_t tile_bytes() { return size_t(kTile) * 8; }

}  // namespace

ProgramRun::ProgramRun(const Program& program, std::span<const Argument> inputs, Stores stores)
    : program_(program),
      inputs_(inputs),
      stores_(stores),
      tiles_(scratch(size_t(program.gathered_) * tile_bytes() + Pipeline::bytes(program.code_))),
      pipeline_(program.code_, tiles_ + size_t(program.gathered_) * tile_bytes()) {
  for (size_t i = 0; i < inputs.size(); i++) from_.push_back(nullptr);
  for (size_t i = 0; i < program.outputs_.size(); i++) to_.push_back(nullptr);
  fill_constants(Reach::constant, {});
}

ProgramRun::~ProgramRun() {
  if (stores_ == Stores::streamed) hwy::FlushStream();
}

const char* ProgramRun::element_of(size_t input, const Program::Index& index) const {
  const Program::Input& in = program_.inputs_[input];
  const Argument& argument = inputs_[input];
  const int64_t offset = argument.offset + program_.offset_of(in, index);
  return static_cast<const char*>(argument.buffer->data) + offset * int64_t(size_of(in.dtype));
}

void ProgramRun::fill_constants(Reach reach, const Program::Index& index) {
  for (size_t i = 0; i < program_.inputs_.size(); i++) {
    const Program::Input& input = program_.inputs_[i];
    if (input.reach != reach) continue;
    if (input.number) {
      pipeline_.set_constant(int(i), input.dtype, word_of(input.dtype, inputs_[i].scalar));
    } else {
      pipeline_.set_constant(int(i), input.dtype, element_of(i, index));
    }
  }
}

void ProgramRun::stretch(std::span<char* const> outputs, const Program::Index& index, int64_t begin,
                         int64_t count) {
  if (program_.row_ > 0) fill_constants(Reach::row_constant, index);
  for (size_t i = 0; i < program_.inputs_.size(); i++) {
    const Program::Input& input = program_.inputs_[i];
    if (input.reach == Reach::direct || input.reach == Reach::near) from_[i] = element_of(i, index);
    if (input.reach != Reach::gathered) continue;
    char* tile = tiles_ + size_t(input.tile) * tile_bytes();
    gather(element_of(i, {}), int(size_of(input.dtype)), program_.rank_, program_.sizes_,
           input.strides, begin, count, tile);
    from_[i] = tile;
  }
  for (size_t i = 0; i < outputs.size(); i++) {
    to_[i] = outputs[i] + begin * int64_t(size_of(program_.outputs_[i]));
  }
  pipeline_.run(from_.begin(), to_.begin(), 0, count, stores_);
}

void ProgramRun::run(std::span<char* const> outputs, int64_t begin, int64_t end) {
  while (begin < end) {
    const Program::Index index = program_.index_of(begin);
    int64_t count = std::min(end - begin, program_.longest_run_);
    if (program_.row_ > 0) {
      count = std::min(count, program_.row_ - index[size_t(program_.rank_ - 1)]);
    }
    stretch(outputs, index, begin, count);
    begin += count;
  }
}

void Program::run(std::span<const Argument> inputs, std::span<char* const> outputs, int64_t begin,
                  int64_t end, Stores stores) const {
  if (begin < end) ProgramRun(*this, inputs, stores).run(outputs, begin, end);
}

void Program::run_whole(std::span<const Argument> inputs, std::span<char* const> outputs,
                        Stores stores) const {
  const int64_t granule = row_ > 0 ? row_ : kTile;  // where work is best cut
  const auto grain = int64_t(kChunk / (cost() * double(granule))) + 1;
  parallel((count_ + granule - 1) / granule, grain, [&](int64_t begin, int64_t end) {
    run(inputs, outputs, begin * granule, std::min(end * granule, count_), stores);
  });
}

}  // namespace fornax::flex
