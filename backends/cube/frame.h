// Kernels whose threads walk the positions of a nest, said in one place: a Frame collects what such
// a kernel takes, for the launch and for the kernel at once, so that the two cannot disagree.
//
//   Frame frame;
//   frame.read("x", x, nest.extents, nest.strides[0]);          // views[0]
//   frame.write("y", Place::output(0), dtype, nest.extents, nest.strides[1]);   // views[1]
//   frame.number("size", DType::i64, size);                     // numbers[0]
//   group->add(walk(device, {.name = "double", .frame = frame, .extents = nest.extents,
//                            .body = [](Builder& k, const Framed& f, const At& at) {
//                              f.views[1].store(k, at.position, f.views[0].load(k, at.position) *
//                              2);
//                            }}));
//
// The body runs when the kernel is built, perhaps much later: it may read what `key` says and the
// frame's class, nothing else.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "backends/cube/operand.h"

namespace fornax::cube {

// An input of a group.
struct Input {
  Place place;
  Type type;
  Layout layout;
  bool number = false;  // of op full
};
// An op that stands alone in its group.
struct Anchor {
  Op op;
  Attributes attributes;
  Type result;
  std::vector<Input> inputs;  // in the op's order
};
Anchor anchor_of(const Group& group);

// What a kernel knows of its frame.
struct FrameClass {
  DType index = DType::i32;
  struct Seen {
    std::string name;
    ViewClass known;
    bool written;
  };
  std::vector<Seen> views;
  int extents = 0;  // axes
  std::vector<std::pair<std::string, DType>> numbers;
  std::string key() const;
};
// The frame inside the kernel, in the order in which it was collected.
struct Framed {
  std::vector<View> views;
  std::vector<Extent> extents;
  std::vector<Value> numbers;
};
Framed declare_frame(Builder& k, const FrameClass& frame);

class Frame {
 public:
  // Strides and extents are those of the positions that the view is asked for, which may have more
  // axes than the nest.  `alignment`: as in ViewClass.
  void read(std::string name, const Input& input, std::vector<int64_t> extents, Strides strides,
            int alignment = 1);
  void read(std::string name, Place place, DType dtype, std::vector<int64_t> extents,
            Strides strides);
  // `aliased`: one of the views read may be the same memory.
  void write(std::string name, Place place, DType dtype, std::vector<int64_t> extents,
             Strides strides, int alignment = 1, bool aliased = false);
  void number(std::string name, DType dtype, int64_t value);

  // With the extents of the nest; the index is wide where `count` or a view needs it.
  FrameClass described(const std::vector<int64_t>& extents) const;
  Arguments arguments(const std::vector<int64_t>& extents) const;

 private:
  struct Entry {
    FrameClass::Seen seen;
    Place place;
    std::vector<int64_t> extents;
    Strides strides;
  };
  std::vector<Entry> views_;
  std::vector<std::pair<std::string, DType>> numbers_;
  std::vector<int64_t> values_;
};

// Where a thread is: at `lanes` neighbouring elements of the nest, from number `element` on, which
// is at `position`.
struct At {
  Position position;
  Value element;
  int lanes = 1;
};

struct Walk {
  std::string name;      // of the kernel, an identifier
  std::string key = {};  // what the body reads beyond the frame
  Frame frame;
  std::vector<int64_t> extents;  // of the nest
  int lanes = 1;
  std::function<void(Builder&, const Framed&, const At&)> body;
  Complaint complaint = {};
};
// Requires: there are positions.
Launch walk(Device& device, Walk walk);

}  // namespace fornax::cube
