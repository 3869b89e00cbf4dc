// Arenas: the results of a plan that do not outlive it, in one buffer at offsets that follow from
// when each is alive.  The largest is placed first, at the lowest offset where nothing lies that is
// alive at the same time.
#include <algorithm>

#include "stream/plan.h"

namespace fornax {
namespace {

constexpr size_t kUnit = 256;  // what every backend's buffers are aligned to at least
constexpr size_t kSlack = size_t{16} << 20;

// A piece of memory, and the values that lie in it one after another: each takes over from the one
// before.
struct Piece {
  size_t bytes = 0;
  int begin = 0, end = 0;  // steps, both included
  bool given = false;      // memory of a leaf
  bool kept = false;       // a result lies in it
  size_t offset = 0;
};

size_t bytes_of(const Type& type) {
  const size_t bytes = size_t(type.shape.element_count()) * size_of(type.dtype);
  return (std::max<size_t>(bytes, 1) + kUnit - 1) / kUnit * kUnit;
}

class Arena {
 public:
  Arena(const Segment& segment, Plan& plan)
      : segment_(segment), plan_(plan), piece_of_(size_t(plan.values), -1) {}

  void plan() {
    find_pieces();
    place();
    const size_t most = most_in_buffers();
    if (with_arena() > most + most / 8 + kSlack) return;
    plan_.keeps_memory = true;
    plan_.arena_bytes = bytes_;
    for (PlanStep& step : plan_.steps) {
      for (PlanOutput& output : step.outputs) {
        const Piece& piece = pieces_[size_t(piece_of_[size_t(output.value)])];
        if (!in_arena(piece) || output.donor >= 0) continue;
        output.place = int64_t(piece.offset / size_of(output.type.dtype));
      }
    }
  }

 private:
  static bool in_arena(const Piece& piece) { return !piece.given && !piece.kept; }

  void find_pieces() {
    for (int leaf = 0; leaf < plan_.leaves; leaf++) {
      const SegmentLeaf& x = segment_.leaves[size_t(leaf)];
      piece_of_[size_t(leaf)] = int(pieces_.size());
      // What nobody gives back costs the same in any case.
      pieces_.push_back({.bytes = x.dies ? bytes_of(x.type) : 0, .given = true});
    }
    for (int s = 0; s < int(plan_.steps.size()); s++) {
      const PlanStep& step = plan_.steps[size_t(s)];
      for (const PlanOutput& output : step.outputs) {
        int& piece = piece_of_[size_t(output.value)];
        if (output.donor >= 0) {
          piece = piece_of_[size_t(step.inputs[size_t(output.donor)])];
        } else if (piece < 0) {
          piece = int(pieces_.size());
          pieces_.push_back({.bytes = bytes_of(output.type), .begin = s});
        }
        pieces_[size_t(piece)].end = s;
      }
      for (int value : step.inputs) pieces_[size_t(piece_of_[size_t(value)])].end = s;
    }
    for (const PlanResult& result : plan_.results) {
      pieces_[size_t(piece_of_[size_t(result.value)])].kept = true;
    }
  }

  void place() {
    std::vector<Piece*> order, placed;
    for (Piece& piece : pieces_) {
      if (in_arena(piece)) order.push_back(&piece);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Piece* a, const Piece* b) { return a->bytes > b->bytes; });
    for (Piece* piece : order) {  // `placed` is in the order of the offsets
      for (const Piece* other : placed) {
        if (other->end < piece->begin || piece->end < other->begin) continue;
        if (other->offset >= piece->offset + piece->bytes) break;
        piece->offset = std::max(piece->offset, other->offset + other->bytes);
      }
      bytes_ = std::max(bytes_, piece->offset + piece->bytes);
      const auto after =
          std::upper_bound(placed.begin(), placed.end(), piece,
                           [](const Piece* a, const Piece* b) { return a->offset < b->offset; });
      placed.insert(after, piece);
    }
  }

  // The most memory that is in use at once where each piece is a buffer: taken by its first step,
  // given back after its last.
  size_t most_in_buffers() const {
    std::vector<size_t> taken(plan_.steps.size() + 1, 0), given_back(plan_.steps.size() + 1, 0);
    size_t now = 0, most = 0;
    for (const Piece& piece : pieces_) {
      (piece.given ? now : taken[size_t(piece.begin)]) += piece.bytes;
      if (!piece.kept) given_back[size_t(piece.end)] += piece.bytes;
    }
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      now += taken[s];
      most = std::max(most, now);
      now -= given_back[s];
    }
    return most;
  }

  // The same with the arena, where nothing is given back before the end.
  size_t with_arena() const {
    size_t bytes = bytes_;
    for (const Piece& piece : pieces_) bytes += in_arena(piece) ? 0 : piece.bytes;
    return bytes;
  }

  const Segment& segment_;
  Plan& plan_;
  std::vector<Piece> pieces_;
  std::vector<int> piece_of_;  // per value
  size_t bytes_ = 0;           // of the arena
};

}  // namespace

void plan_arena(const Segment& segment, Plan& plan) { Arena(segment, plan).plan(); }

}  // namespace fornax
