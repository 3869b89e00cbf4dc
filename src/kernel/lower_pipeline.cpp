// Lowering: pipelines of fetched boxes, for the copy engine and matrix units of compute 90.
//
// One group of four warps fetches, ahead by as many stages as there are; the others, 64 rows to
// each group of four warps, multiply and store.  Per stage there are two barriers with phases:
// full, which the fetched bytes complete, and empty, at which every consuming group arrives.
#include "base/error.h"
#include "kernel/lowering.h"
#include "kernel/number.h"
#include "kernel/state.h"

namespace fornax::kernel {
namespace {

constexpr int kGroup = 128;  // threads of four warps, which wgmma takes together
constexpr int kProducerRegisters = 40;
constexpr int kConsumers =
    15;                   // the barrier of all consuming groups; they have their own from 1 on
constexpr int kRow = 64;  // elements of 16 bits in a box's row of 128 bytes
constexpr int kBox = 64 * kRow;  // elements of a box that is copied out

// What is left for each consuming thread of the 64 Ki registers, a multiple of 8.
int consumer_registers(int groups) { return groups == 2 ? 232 : 160; }

}  // namespace

void Lowering::effect(Code code, std::initializer_list<Value> operands,
                      std::initializer_list<int64_t> attributes) {
  Instruction made;
  made.code = code;
  for (const Value& operand : operands) made.operands.push_back(operand.id);
  made.attributes = attributes;
  to_.emit(std::move(made), {});
}

void Lowering::by_roles() {
  const int groups = from_.threads / kGroup;
  full_ = to_.shared(DType::u64, stages_);
  empty_ = to_.shared(DType::u64, stages_);
  for (const Instruction& x : from_.instructions) {
    if (x.code == Code::shared) lower(x);
  }
  const Value thread = to_.thread();
  to_.when(thread == 0, [&] {
    for (int stage = 0; stage < stages_; stage++) {
      effect(Code::phase_init, {full_, to_.as(DType::i32, stage)}, {1});
      effect(Code::phase_init, {empty_, to_.as(DType::i32, stage)}, {groups});
    }
    effect(Code::phase_fence, {});
  });
  to_.barrier();
  const auto begin = [&](Role role) {
    role_ = role;
    stage_.clear();
    stage_.emplace_back(to_.constant(DType::i32, 0));
    stage_.emplace_back(to_.constant(DType::u32, 0));
    stage_.emplace_back(to_.constant(DType::i32, 0));
  };
  to_.when(
      thread >= from_.threads,
      [&] {
        if (groups > 1) effect(Code::registers, {}, {-kProducerRegisters});
        to_.when(thread == from_.threads, [&] {
          begin(Role::producer);
          lower(from_.body);
          stage_.clear();
        });
      },
      [&] {
        // Two groups in all have 255 each from the beginning.
        if (groups > 1) effect(Code::registers, {}, {consumer_registers(groups)});
        begin(Role::consumer);
        lower(from_.body);
        stage_.clear();
        to_.when((thread & (kGroup - 1)) == 0, [&] { effect(Code::copy_wait, {}, {0, 0}); });
      });
}

// Of all threads that have the kernel's tiles.
void Lowering::barrier() {
  if (role_ == Role::all) return to_.barrier();
  effect(Code::group_barrier, {to_.as(DType::i32, kConsumers)}, {from_.threads});
}

void Lowering::advance() {
  const Value next = stage_[0].get() + 1;
  const Value around = next == stages_;
  stage_[0] = select(around, to_.as(DType::i32, 0), next);
  stage_[1] = select(around, stage_[1].get() ^ 1, stage_[1].get());
}

void Lowering::pipeline(const Instruction& x) { role_ == Role::producer ? produce(x) : consume(x); }

void Lowering::produce(const Instruction& x) {
  const Region& region = x.regions[0];
  int64_t bytes = 0;
  for (const InstructionId id : region.instructions) {
    const Instruction& fetch = from_.at(id);
    if (fetch.code == Code::fetch) bytes += fetch.attributes.at(0);
  }
  to_.loop(0, scalar(x.operands[0]), 1, [&](Value i) {
    const Value stage = stage_[0];
    effect(Code::phase_wait, {empty_, stage, stage_[1].get() ^ 1});
    effect(Code::phase_expect, {full_, stage}, {bytes});
    held_[size_t(region.parameters[0])] = {i};
    held_[size_t(region.parameters[1])] = {stage};
    lower(region);
    advance();
  });
}

void Lowering::fetch(const Instruction& x) {
  Instruction made;
  made.code = Code::fetch;
  made.site = x.site;
  made.attributes = x.attributes;
  for (const ValueId operand : x.operands) made.operands.push_back(scalar(operand).id);
  const std::vector<ValueId> barrier = {full_.id, stage_[0].get().id};
  made.operands.insert(made.operands.begin() + 3, barrier.begin(), barrier.end());
  to_.emit(std::move(made), {});
}

void Lowering::consume(const Instruction& x) {
  const Region& region = x.regions[1];
  const std::span<const ValueId> carried = std::span(x.operands).subspan(1);
  std::vector<Variable> running = variables(carried);
  const Value first = (to_.thread() & (kGroup - 1)) == 0;
  // A stage is free once the products that read it are done: those of the turn before, since one
  // group of wgmma stays under way.
  Variable before(to_.constant(DType::i32, -1));
  to_.loop(0, scalar(x.operands[0]), 1, [&](Value i) {
    const Value stage = stage_[0];
    effect(Code::phase_wait, {full_, stage, stage_[1]});
    held_[size_t(region.parameters[0])] = {i};
    held_[size_t(region.parameters[1])] = {stage};
    read(std::span(region.parameters).subspan(2), running);
    lower(region);
    assign(running, region.yields);
    effect(Code::wgmma_wait, {}, {1});
    to_.when(first & (before.get() >= 0), [&] { effect(Code::phase_arrive, {empty_, before}); });
    before = stage;
    advance();
  });
  Instruction wait;
  wait.code = Code::wgmma_wait;
  wait.attributes = {0};
  std::vector<ValueType> types;
  for (const Variable& element : running) {
    wait.operands.push_back(element.get().id);
    types.push_back(element.get().type());
  }
  const std::vector<Value> ready = to_.emit(std::move(wait), std::move(types));
  for (size_t i = 0; i < running.size(); i++) running[i] = ready[i];
  to_.when(first & (before.get() >= 0), [&] { effect(Code::phase_arrive, {empty_, before}); });
  read(x.results, running);
}

void Lowering::mma_boxes(const Instruction& x) {
  const ValueType& type = from_.type(x.results[0]);
  const bool b_transposed = x.attributes[1] != 0, a_transposed = x.attributes[2] != 0;
  const Value group = to_.thread() >> 7;
  const Value a = scalar(x.operands[1]), b = scalar(x.operands[3]);
  const Value a_index = scalar(x.operands[2]) + group * kBox;
  const Value b_index = scalar(x.operands[4]);
  std::vector<Value>& sums = held_[size_t(x.results[0])];
  sums.clear();
  // Elements lie [row half][column] here, and [column / 2][row half][column % 2] in the unit.
  const Share own = extent(type);
  FORNAX_CHECK(own.rows == 2 && x.attributes[0] % 16 == 0 && x.attributes[0] <= kRow);
  const auto place = [&](int e) {
    const int pair = e / 4, half = e / 2 % 2, column = pair * 2 + e % 2;
    return size_t(half * own.columns + column);
  };
  std::vector<Value> given = held_[size_t(x.operands[0])];
  effect(Code::wgmma_fence, {});
  for (int64_t k = 0; k < x.attributes[0] / 16; k++) {
    Instruction made;
    made.code = Code::wgmma;
    made.attributes = {type.columns, b_transposed, a_transposed};
    // 16 of k: 32 bytes along a row, or 16 rows of 128 bytes.
    const int a_step = a_transposed ? 16 * kRow : 16, b_step = b_transposed ? 16 : 16 * kRow;
    made.operands = {a.id, (a_index + k * a_step).id, b.id, (b_index + k * b_step).id};
    std::vector<ValueType> types(given.size(), ValueType{DType::f32});
    for (int e = 0; e < int(given.size()); e++) made.operands.push_back(given[place(e)].id);
    const std::vector<Value> next = to_.emit(std::move(made), std::move(types));
    for (int e = 0; e < int(given.size()); e++) given[place(e)] = next[size_t(e)];
  }
  effect(Code::wgmma_commit, {});
  sums = std::move(given);
}

// In boxes of 64 columns, two buffers to a group of warps, so that one is filled while the other is
// copied out.
void Lowering::deposit(const Instruction& x) {
  const ValueType& type = from_.type(x.operands[2]);
  const Share own = extent(type);
  FORNAX_CHECK(role_ == Role::consumer && distribution(type).fragments && own.rows == 2 &&
               fornax::info(type.dtype).size == 2);
  const std::vector<Value>& tile = held_[size_t(x.operands[2])];
  const Value thread = to_.thread(), group = thread >> 7, lane = thread & 31;
  const Value first = (thread & (kGroup - 1)) == 0;
  const Value line = (((thread & (kGroup - 1)) >> 5) << 4) + (lane & 15);
  const auto packed = [&](int half, int column) {
    const auto word = [&](int at) {
      return to_.cast(to_.bits(tile[size_t(half * own.columns + at)], DType::u16), DType::u32);
    };
    return word(column) | (word(column + 1) << 16);
  };
  for (int chunk = 0; chunk < type.columns / kRow; chunk++) {
    const Value buffer = (group * 2 + (stage_[2].get() & 1)) * kBox;
    stage_[2] = stage_[2].get() + 1;
    to_.when(first, [&] { effect(Code::copy_wait, {}, {1, 1}); });
    effect(Code::group_barrier, {group + 1}, {kGroup});
    for (int j = 0; j < 4; j++) {
      const Value piece = ((lane >> 4) + j * 2) ^ (line & 7);
      const int column = chunk * (kRow / 4) + j * 4;  // of this thread's own
      effect(Code::store_matrix,
             {scalar(x.operands[1]), buffer + line * kRow + piece * 8, packed(0, column),
              packed(1, column), packed(0, column + 2), packed(1, column + 2)});
    }
    effect(Code::copy_fence, {});
    effect(Code::group_barrier, {group + 1}, {kGroup});
    to_.when(first, [&] {
      Instruction made;
      made.code = Code::copy_out;
      made.operands = {scalar(x.operands[0]).id, scalar(x.operands[1]).id, buffer.id,
                       (scalar(x.operands[3]) + chunk * kRow).id,
                       (scalar(x.operands[4]) + group * 64).id};
      for (size_t i = 5; i < x.operands.size(); i++) {
        made.operands.push_back(scalar(x.operands[i]).id);
      }
      to_.emit(std::move(made), {});
      effect(Code::copy_commit, {});
    });
  }
}

}  // namespace fornax::kernel
