// What the stand-in for libcuda hands out: the objects behind the driver's handles.
#pragma once
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/cuda/driver.h"

namespace fornax::cuda {

using Work = std::function<Result()>;

struct ContextObject {
  ~ContextObject() { drop_memory(); }
  void drop_memory() {
    for (const auto& [address, bytes] : memory) std::free(reinterpret_cast<void*>(address));
    memory.clear();
  }

  int device = 0;
  int users = 0;
  size_t used = 0;
  Result broken = Result::success;
  std::map<Address, size_t> memory;
  std::set<Stream> streams;
};
struct StreamObject {
  ContextObject* context = nullptr;
  std::deque<Work> queue;
  uint64_t queued = 0, done = 0;
};
struct EventObject {
  ContextObject* context = nullptr;
  Stream stream = nullptr;
  uint64_t position = 0;
  float time = 0;
};
struct ModuleObject {
  std::string text;
  std::vector<std::unique_ptr<FunctionObject>> functions;
};
struct FunctionObject {
  std::string name;
  int shared_bytes = 48 << 10;
};
struct GraphNodeObject {
  Function function = nullptr;
  Work work;
  std::vector<const GraphNodeObject*> after;
};
struct GraphObject {
  std::vector<std::unique_ptr<GraphNodeObject>> nodes;
};
struct GraphExecObject {
  std::vector<std::pair<GraphNode, Work>> work;  // of the graph's nodes
};

}  // namespace fornax::cuda
