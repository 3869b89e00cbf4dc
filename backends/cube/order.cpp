#include "backends/cube/order.h"

#include <algorithm>

namespace fornax::cube {
namespace {

// Launch numbers, as bits.
class Numbers {
 public:
  explicit Numbers(size_t most) : words_((most + 63) / 64) {}
  bool has(uint32_t number) const { return words_[number / 64] >> (number % 64) & 1; }
  void add(uint32_t number) { words_[number / 64] |= uint64_t(1) << (number % 64); }
  void add(const Numbers& others) {
    for (size_t i = 0; i < words_.size(); i++) words_[i] |= others.words_[i];
  }

 private:
  std::vector<uint64_t> words_;
};

// Memory is cut wherever a touch begins or ends; a piece between two cuts is touched as a whole.
class Ordering {
 public:
  Ordering(std::span<const std::span<const Touch>> launches, size_t most)
      : launches_(launches.size()), most_(most) {
    for (const std::span<const Touch>& touches : launches) {
      for (const Touch& touch : touches) {
        cuts_.push_back(touch.begin);
        cuts_.push_back(touch.end);
      }
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    pieces_.resize(cuts_.size());
  }

  std::vector<uint32_t> add(std::span<const Touch> touches) {
    const auto number = uint32_t(before_.size());
    Numbers wanted(launches_);
    for (const Touch& touch : touches) {
      for (const Piece& piece : pieces_of(touch)) {
        if (piece.written) wanted.add(piece.writer);
        if (!touch.written) continue;
        for (const uint32_t reader : piece.readers) wanted.add(reader);
      }
    }
    for (const Touch& touch : touches) {
      for (Piece& piece : pieces_of(touch)) piece.touch(number, touch.written);
    }
    return least(std::move(wanted), number);
  }

 private:
  // Who waits for the writer of a piece waits for all that touched it before.
  struct Piece {
    bool written = false;
    uint32_t writer = 0;
    std::vector<uint32_t> readers;  // since

    void touch(uint32_t number, bool writes) {
      if (!writes) return readers.push_back(number);
      written = true;
      writer = number;
      readers.clear();
    }
  };

  std::span<Piece> pieces_of(const Touch& touch) {
    const auto at = [&](runtime::Address address) {
      return size_t(std::lower_bound(cuts_.begin(), cuts_.end(), address) - cuts_.begin());
    };
    const size_t first = at(touch.begin);
    return {&pieces_[first], at(touch.end) - first};
  }

  // What the launch waits for, its lane included.
  std::vector<uint32_t> least(Numbers wanted, uint32_t number) {
    Least found = without_implied(wanted, number);
    const auto waited_for = [&](uint32_t last) { return found.all.has(last); };
    auto lane = std::find_if(lanes_.begin(), lanes_.end(), waited_for);
    if (lane == lanes_.end() && lanes_.size() < most_) {
      lane = lanes_.insert(lane, number);
    } else if (lane == lanes_.end()) {
      lane = std::min_element(lanes_.begin(), lanes_.end());  // the one that likely ends first
      wanted.add(*lane);
      found = without_implied(wanted, number);
    }
    *lane = number;
    before_.push_back(std::move(found.all));
    return std::move(found.needed);
  }

  // Those of `wanted`, all below `number`, for which no other of them waits; and what has ended
  // with them.
  struct Least {
    std::vector<uint32_t> needed;
    Numbers all;
  };
  Least without_implied(const Numbers& wanted, uint32_t number) const {
    Least found{{}, Numbers(launches_)};
    for (uint32_t other = number; other-- > 0;) {
      if (!wanted.has(other) || found.all.has(other)) continue;
      found.needed.push_back(other);
      found.all.add(other);
      found.all.add(before_[other]);
    }
    std::reverse(found.needed.begin(), found.needed.end());
    return found;
  }

  const size_t launches_, most_;
  std::vector<uint32_t> lanes_;  // launches that wait one for another; the last one of each
  std::vector<runtime::Address> cuts_;
  std::vector<Piece> pieces_;    // number i is from cut i to the next
  std::vector<Numbers> before_;  // by launch, all that have ended when it begins
};

}  // namespace

Order order_of(std::span<const std::span<const Touch>> launches, size_t most) {
  Ordering ordering(launches, most);
  Order order;
  for (const std::span<const Touch>& touches : launches) order.push_back(ordering.add(touches));
  return order;
}

}  // namespace fornax::cube
