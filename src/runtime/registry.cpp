#include "runtime/registry.h"

#include <algorithm>

namespace fornax::runtime {
namespace {

struct Entry {
  int rank;
  std::unique_ptr<Runtime> (*make)();
};
std::vector<Entry>& entries() {
  static std::vector<Entry> list;
  return list;
}

std::vector<Runtime*>* make_all() {
  auto* made = new std::vector<Runtime*>;
  std::stable_sort(entries().begin(), entries().end(),
                   [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
  for (const Entry& entry : entries()) made->push_back(entry.make().release());
  return made;
}

}  // namespace

Registered::Registered(int rank, std::unique_ptr<Runtime> (*make)()) {
  entries().push_back({rank, make});
}

const std::vector<Runtime*>& runtimes() {
  static const std::vector<Runtime*>* made = make_all();
  return *made;
}

}  // namespace fornax::runtime
