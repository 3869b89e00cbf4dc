#include "graph/node.h"

#include "graph/tape.h"

namespace fornax {

namespace {

// Long chains are freed by a loop, not by recursion: a destroyed object whose destruction is under
// way on this thread waits in the list.
template <class T>
void destroy_in_turn(T* object) {
  thread_local std::vector<T*> waiting;
  thread_local bool active = false;
  if (active) {
    waiting.push_back(object);
    return;
  }
  active = true;
  delete object;
  while (!waiting.empty()) {
    T* next = waiting.back();
    waiting.pop_back();
    delete next;
  }
  active = false;
}

}  // namespace

void destroy(Node* node) {
  if (node->inputs.size() == 0 && !node->tape.load(std::memory_order_relaxed)) {
    delete node;
  } else {
    destroy_in_turn(node);
  }
}

Node::~Node() {
  if (tape.load(std::memory_order_relaxed)) drop_tape(*this);
}

Ref<Tape> tape_of(const Node& node) { return Ref<Tape>(node.tape.load(std::memory_order_acquire)); }

void drop_tape(Node& node) {
  // Adopted, so that leaving scope gives the reference up.
  Ref<Tape>::adopt(node.tape.exchange(nullptr, std::memory_order_acq_rel));
}

void destroy(Tape* tape) { destroy_in_turn(tape); }

Ref<Node> constant_node(int device, Marks marks, Type type, Scalar scalar) {
  auto node = Ref<Node>::adopt(new Node);
  node->state.store(NodeState::constant, std::memory_order_relaxed);
  node->op = Op::full;
  node->device = int16_t(device);
  node->marks = marks;
  node->type = type;
  node->scalar = scalar;
  return node;
}

}  // namespace fornax
