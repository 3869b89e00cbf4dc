// Program: the domain's axes collapsed, and runs over stretches of it.
#include "backends/flex/program.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/flex/gather.h"
#include "backends/flex/kernels.h"
#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr int64_t kTile = 1024;    // elements; a few tiles of 4 bytes fit the L1 cache
constexpr int64_t kLongRow = 256;  // rows from this size on are walked one by one
constexpr double kChunk = 20000;   // nanoseconds of work that a thread takes at a time
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
                 std::span<const Layout> layouts)
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
  code_ = compile(graph, reaches);
  const bool tiled = gathered_ > 0 || code_.tiles > 0;
  longest_run_ = tiled ? kTile : kUnbounded;
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
  if (input.strides[rank_ - 1] == 1) return Reach::direct;
  return input.strides[rank_ - 1] == 0 ? Reach::row_constant : Reach::gathered;
}

int64_t Program::offset_of(const Input& input, int64_t element) const {
  int64_t offset = 0;
  for (int axis = rank_ - 1; axis >= 0; axis--) {
    offset += element % sizes_[axis] * input.strides[axis];
    element /= sizes_[axis];
  }
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

// One call of Program::run: the operands of the stages, in scratch memory.
class Run {
 public:
  Run(const Program& program, std::span<const Argument> inputs, std::span<char* const> outputs,
      Stores stores);
  void stretch(int64_t begin, int64_t end);

 private:
  void fill_constants(Reach reach, int64_t element);
  void gather_inputs(int64_t begin, int64_t count);
  void blocks(int64_t begin, int64_t done, int64_t count);
  void rest(int64_t begin, int64_t done, int64_t count);
  void execute(int64_t count, bool streamed);
  const char* element_of(int input, int64_t element) const;
  char* tile(int index) { return tiles_ + size_t(index) * tile_bytes_; }
  char* pad(int index) { return pads_ + size_t(index) * pad_bytes_; }

  const Program& program_;
  const Code& code_;
  std::span<const Argument> inputs_;
  std::span<char* const> outputs_;
  Stores stores_;
  const int64_t block_ = block_elements();
  const size_t pad_bytes_ = size_t(block_) * 8;
  const size_t tile_bytes_ = size_t(kTile) * 8 + size_t(block_) * 8;
  Operand* operands_;
  char *constants_, *slots_, *pads_, *tiles_;
};

Run::Run(const Program& program, std::span<const Argument> inputs, std::span<char* const> outputs,
         Stores stores)
    : program_(program), code_(program.code_), inputs_(inputs), outputs_(outputs), stores_(stores) {
  const size_t slot_bytes = size_t(kMaxVectorBytes) * 8;
  const size_t operand_bytes = (code_.places.size() * sizeof(Operand) + 63) / 64 * 64;
  const size_t constant_bytes = code_.constants.size() * size_t(kMaxVectorBytes);
  const size_t slots = size_t(code_.slots) * slot_bytes;
  const size_t pads = (inputs.size() + outputs.size()) * pad_bytes_;
  const size_t tiles = size_t(program.gathered_ + code_.tiles) * tile_bytes_;
  char* memory = scratch(operand_bytes + constant_bytes + slots + pads + tiles);
  operands_ = reinterpret_cast<Operand*>(memory);
  constants_ = memory + operand_bytes;
  slots_ = constants_ + constant_bytes;
  pads_ = slots_ + slots;
  tiles_ = pads_ + pads;
  for (size_t i = 0; i < code_.places.size(); i++) {
    const Place& place = code_.places[i];
    const int64_t step = vector_bytes(size_of(place.dtype) == 8);
    const size_t index = size_t(place.index);
    Operand operand{nullptr, int64_t(size_of(place.dtype)), step};
    if (place.kind == Place::Kind::constant) operand = {constants_ + index * kMaxVectorBytes, 0, 0};
    if (place.kind == Place::Kind::slot) operand = {slots_ + index * slot_bytes, 0, step};
    new (operands_ + i) Operand(operand);
  }
  fill_constants(Reach::constant, 0);
}

const char* Run::element_of(int input, int64_t element) const {
  const Program::Input& in = program_.inputs_[size_t(input)];
  const Argument& argument = inputs_[size_t(input)];
  const int64_t offset = argument.offset + program_.offset_of(in, element);
  return static_cast<const char*>(argument.buffer->data) + offset * int64_t(size_of(in.dtype));
}

void Run::fill_constants(Reach reach, int64_t element) {
  for (size_t i = 0; i < code_.constants.size(); i++) {
    const Constant& constant = code_.constants[i];
    char* vector = constants_ + i * kMaxVectorBytes;
    if (constant.input < 0) {
      if (reach == Reach::constant) fill_lanes(vector, constant.wide, DType::bool_, Word{1});
      continue;
    }
    const Program::Input& input = program_.inputs_[size_t(constant.input)];
    if (input.reach != reach) continue;
    const Word number = input.number ? word_of(input.dtype, inputs_[size_t(constant.input)].scalar)
                                     : load(input.dtype, element_of(constant.input, element), 0);
    fill_lanes(vector, constant.wide, input.dtype, number);
  }
}

void Run::gather_inputs(int64_t begin, int64_t count) {
  for (size_t i = 0; i < program_.inputs_.size(); i++) {
    const Program::Input& input = program_.inputs_[i];
    if (input.reach != Reach::gathered) continue;
    gather(element_of(int(i), 0), int(size_of(input.dtype)), program_.rank_, program_.sizes_,
           input.strides, begin, count, tile(input.tile));
  }
}

void Run::execute(int64_t count, bool streamed) {
  for (const Segment& segment : code_.segments) {
    run_program((streamed ? segment.streamed : segment.cached).data(), operands_, count);
  }
}

// Elements begin + done ... of a stretch whose first `done` are computed; count is whole blocks.
void Run::blocks(int64_t begin, int64_t done, int64_t count) {
  bool aligned = stores_ == Stores::streamed;
  for (size_t i = 0; i < code_.places.size(); i++) {
    const Place& place = code_.places[i];
    const int64_t size = int64_t(size_of(place.dtype));
    char*& base = operands_[i].base;
    if (place.kind == Place::Kind::output) {
      base = outputs_[size_t(place.index)] + (begin + done) * size;
      aligned &= reinterpret_cast<uintptr_t>(base) % kMaxVectorBytes == 0;
    } else if (place.kind == Place::Kind::tile) {
      base = tile(program_.gathered_ + place.index) + done * size;
    } else if (place.kind == Place::Kind::input) {
      const Program::Input& input = program_.inputs_[size_t(place.index)];
      base = input.reach == Reach::gathered
                 ? tile(input.tile) + done * size
                 : const_cast<char*>(element_of(place.index, begin + done));
    }
  }
  execute(count, aligned);
}

// The last elements of a stretch, fewer than a block: a block in padded memory.
void Run::rest(int64_t begin, int64_t done, int64_t count) {
  const size_t inputs = inputs_.size();
  for (size_t i = 0; i < code_.places.size(); i++) {
    const Place& place = code_.places[i];
    const size_t size = size_of(place.dtype), index = size_t(place.index);
    char*& base = operands_[i].base;
    if (place.kind == Place::Kind::output) {
      base = pad(int(inputs + index));
    } else if (place.kind == Place::Kind::tile) {
      base = tile(program_.gathered_ + place.index) + size_t(done) * size;
    } else if (place.kind == Place::Kind::input) {
      const Program::Input& input = program_.inputs_[index];
      base = input.reach == Reach::gathered ? tile(input.tile) + size_t(done) * size
                                            : pad(place.index);
      if (input.reach == Reach::gathered) continue;
      std::memcpy(base, element_of(place.index, begin + done), size_t(count) * size);
    }
  }
  execute(block_, false);
  for (size_t i = 0; i < outputs_.size(); i++) {
    const size_t size = size_of(program_.outputs_[i]);
    const bool delayed = std::any_of(code_.delayed.begin(), code_.delayed.end(),
                                     [&](const Delayed& d) { return size_t(d.output) == i; });
    if (delayed) continue;
    std::memcpy(outputs_[i] + size_t(begin + done) * size, pad(int(inputs + i)),
                size_t(count) * size);
  }
}

void Run::stretch(int64_t begin, int64_t end) {
  const int64_t count = end - begin, whole = count / block_ * block_;
  if (program_.row_ > 0) fill_constants(Reach::row_constant, begin);
  gather_inputs(begin, count);
  if (whole > 0) blocks(begin, 0, whole);
  if (whole < count) rest(begin, whole, count - whole);
  for (const Delayed& delayed : code_.delayed) {
    const size_t size = size_of(program_.outputs_[size_t(delayed.output)]);
    std::memcpy(outputs_[size_t(delayed.output)] + size_t(begin) * size,
                tile(program_.gathered_ + delayed.tile), size_t(count) * size);
  }
}

void Program::run(std::span<const Argument> inputs, std::span<char* const> outputs, int64_t begin,
                  int64_t end, Stores stores) const {
  if (begin >= end) return;
  Run run(*this, inputs, outputs, stores);
  while (begin < end) {
    int64_t next = std::min(end, begin + longest_run_);
    if (row_ > 0) next = std::min(next, begin / row_ * row_ + row_);
    run.stretch(begin, next);
    begin = next;
  }
  if (stores == Stores::streamed) hwy::FlushStream();
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
