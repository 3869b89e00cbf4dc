// Where each piece of shared memory begins.
//
// Time is the order of the body's own instructions: what happens inside the regions of one happens
// there all at once.  Two pieces may have the same bytes where a barrier of the body lies after the
// last use of one and before the first use of the other.  What the copy engine or the matrix units
// touch shares with none: they work on while the threads go past barriers.
#include <algorithm>

#include "kernel/ir.h"

namespace fornax::kernel {
namespace {

struct Piece {
  InstructionId id = -1;
  int64_t bytes = 0, alignment = 16, offset = -1;
  int first = INT32_MAX, last = -1;  // numbers of barriers before the first and the last use
  bool alone = false;
};

bool works_on(Code code) {
  switch (code) {
    case Code::fetch:
    case Code::deposit:
    case Code::mma_boxes:
    case Code::copy_out:
    case Code::phase_init:
    case Code::phase_expect:
    case Code::phase_arrive:
    case Code::phase_wait:
    case Code::wgmma:
      return true;
    default:
      return false;
  }
}

class Planner {
 public:
  explicit Planner(const Kernel& kernel) : kernel_(kernel), piece_(kernel.values.size(), -1) {
    collect(kernel.body);
    int barriers = 0;
    for (const InstructionId id : kernel.body.instructions) {
      visit(kernel.at(id), barriers);
      if (kernel.at(id).code == Code::barrier) barriers++;
    }
  }

  SharedPlan run() {
    SharedPlan plan;
    plan.offsets.assign(kernel_.instructions.size(), -1);
    for (size_t i = 0; i < pieces_.size(); i++) {
      Piece& piece = pieces_[i];
      piece.offset = first_fit(i);
      plan.offsets[size_t(piece.id)] = piece.offset;
      plan.bytes = std::max(plan.bytes, piece.offset + piece.bytes);
    }
    return plan;
  }

 private:
  void collect(const Region& region) {
    for (const InstructionId id : region.instructions) {
      const Instruction& x = kernel_.at(id);
      for (const Region& inner : x.regions) collect(inner);
      if (x.code != Code::shared) continue;
      Piece piece;
      piece.id = id;
      piece.bytes = x.attributes[0] * int64_t(size_of(kernel_.type(x.results[0]).dtype));
      piece.alignment = x.attributes[1];
      piece_[size_t(x.results[0])] = int(pieces_.size());
      pieces_.push_back(piece);
    }
  }
  void visit(const Instruction& x, int barriers) {
    for (const ValueId operand : x.operands) {
      const int number = piece_[size_t(operand)];
      if (number < 0) continue;
      Piece& piece = pieces_[size_t(number)];
      piece.first = std::min(piece.first, barriers);
      piece.last = std::max(piece.last, barriers);
      piece.alone = piece.alone || works_on(x.code);
    }
    for (const Region& region : x.regions) {
      for (const InstructionId id : region.instructions) visit(kernel_.at(id), barriers);
    }
  }

  static bool apart(const Piece& a, const Piece& b) {
    return !a.alone && !b.alone && (a.last < b.first || b.last < a.first);
  }
  // The lowest place that no piece before `number` keeps it from.
  int64_t first_fit(size_t number) const {
    const Piece& piece = pieces_[number];
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < number; i++) {
        const Piece& other = pieces_[i];
        const bool overlap =
            offset < other.offset + other.bytes && other.offset < offset + piece.bytes;
        if (!overlap || apart(piece, other)) continue;
        const int64_t end = other.offset + other.bytes;
        offset = (end + piece.alignment - 1) / piece.alignment * piece.alignment;
        moved = true;
      }
    }
    return offset;
  }

  const Kernel& kernel_;
  std::vector<int> piece_;  // by value; -1: is no shared memory
  std::vector<Piece> pieces_;
};

}  // namespace

SharedPlan plan_shared(const Kernel& kernel) { return Planner(kernel).run(); }

}  // namespace fornax::kernel
