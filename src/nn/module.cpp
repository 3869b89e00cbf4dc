// What can be done with the leaves of any module.  Works on distinct tensors: fields that hold the
// same value keep holding the same value.  No state of its own.
#include <fornax/module.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/join.h"

namespace fornax {
namespace {

std::string type_text(const Tensor& tensor) {
  return fmt::format("{}{}", name_of(tensor.dtype()), text_of(tensor.shape()));
}

// Every tensor that a state would write, by path.
std::map<std::string_view, const Leaf*> by_path(const Leaves& leaves) {
  std::map<std::string_view, const Leaf*> paths;
  for (const Leaf& leaf : leaves) {
    if (leaf.tensor) paths.emplace(leaf.path, &leaf);
  }
  return paths;
}

LoadReport compare(const Leaves& leaves, const State& state) {
  LoadReport report;
  const auto wanted = by_path(leaves);
  std::set<std::string_view> found;
  for (const NamedTensor& entry : state) {
    const auto leaf = wanted.find(entry.path);
    if (leaf == wanted.end() || !found.insert(entry.path).second) {
      report.unexpected.push_back(entry.path);
      continue;
    }
    const Tensor& mine = *leaf->second->tensor;
    if (mine.dtype() != entry.value.dtype() || mine.shape() != entry.value.shape()) {
      report.mismatched.push_back(fmt::format("{} is {}, the state has {}", entry.path,
                                              type_text(mine), type_text(entry.value)));
    }
  }
  for (const auto& [path, leaf] : wanted) {
    if (!found.contains(path)) report.missing.emplace_back(path);
  }
  return report;
}

}  // namespace

size_t LeafCollector::enter(std::string_view name) {
  const size_t before = path_.size();
  if (before > 0 && !name.empty()) path_ += '.';
  path_ += name;
  return before;
}

void LeafCollector::add(Leaf::Kind kind, Tensor* tensor, nn::Mode* mode) {
  if (tensor && !tensor->defined()) return;
  leaves_.push_back({path_, kind, tensor, mode});
}

const Tensor* find(const State& state, std::string_view path) {
  const auto entry = std::find_if(state.begin(), state.end(),
                                  [&](const NamedTensor& item) { return item.path == path; });
  return entry == state.end() ? nullptr : &entry->value;
}

std::string LoadReport::text() const {
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back("missing: " + join(missing, ", "));
  if (!unexpected.empty()) parts.push_back("unexpected: " + join(unexpected, ", "));
  if (!mismatched.empty()) parts.push_back("of another type: " + join(mismatched, ", "));
  return join(parts, "; ");
}

void replace(const Leaves& leaves, bool with_buffers,
             Tensor (*successor)(const Tensor&, Leaf::Kind, const void*), const void* context) {
  // The old handles are kept until the end, so that no node's address is used twice.
  std::unordered_map<const Node*, std::pair<Tensor, Tensor>> done;
  for (const Leaf& leaf : leaves) {
    if (!leaf.tensor || (leaf.kind == Leaf::Kind::buffer && !with_buffers)) continue;
    auto [entry, fresh] = done.try_emplace(leaf.tensor->node());
    auto& [before, after] = entry->second;
    if (fresh) {
      before = *leaf.tensor;
      after = successor(before, leaf.kind, context);
    }
    *leaf.tensor = after;
  }
}

void track(const Leaves& leaves) {
  const auto tracked = [](const Tensor& tensor, Leaf::Kind kind, const void*) {
    const Device device = tensor.device();
    const Tensor here = tensor.detach().to(device.is_autodiff() ? device : device.autodiff());
    return kind == Leaf::Kind::parameter && is_floating(tensor.dtype()) ? here.require_grad()
                                                                        : here;
  };
  replace(leaves, true, tracked);
  for (const Leaf& leaf : leaves) {
    if (leaf.mode) leaf.mode->training = true;
  }
}

void untrack(const Leaves& leaves) {
  replace(leaves, true, [](const Tensor& tensor, Leaf::Kind, const void*) {
    return tensor.detach().to(tensor.device().inner());
  });
  for (const Leaf& leaf : leaves) {
    if (leaf.mode) leaf.mode->training = false;
  }
}

void move(const Leaves& leaves, const Device& device, Site site) {
  const Call call("to", site);
  const auto there = [](const Tensor& tensor, Leaf::Kind, const void* context) {
    const Tensor value = tensor.detach().to(*static_cast<const Device*>(context));
    return tensor.requires_grad() ? value.require_grad() : value;
  };
  replace(leaves, true, there, &device);
}

void freeze(const Leaves& leaves) {
  replace(leaves, false,
          [](const Tensor& tensor, Leaf::Kind, const void*) { return tensor.detach(); });
}

State named(const Leaves& leaves, bool with_buffers) {
  State state;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::Kind::parameter) {
      state.push_back({leaf.path, with_buffers ? leaf.tensor->detach() : *leaf.tensor});
    } else if (leaf.kind == Leaf::Kind::buffer && with_buffers) {
      state.push_back({leaf.path, leaf.tensor->detach()});
    }
  }
  return state;
}

LoadReport load_state(const Leaves& leaves, const State& state, LoadOptions o, Site site) {
  const Call call("load_state", site);
  LoadReport report = compare(leaves, state);
  if (o.strict && !report.ok()) {
    fail(ErrorKind::value,
         "load_state: the state does not fit the module: {}; load what fits with .strict = false",
         report.text());
  }
  const auto wanted = by_path(leaves);
  // Old handle and new one, so that what was shared stays shared and no node's address returns.
  std::unordered_map<const Node*, std::pair<Tensor, Tensor>> done;
  for (const NamedTensor& entry : state) {
    const auto leaf = wanted.find(entry.path);
    if (leaf == wanted.end()) continue;
    Tensor& mine = *leaf->second->tensor;
    if (mine.dtype() != entry.value.dtype() || mine.shape() != entry.value.shape()) continue;
    auto [pair, fresh] = done.try_emplace(mine.node());
    if (fresh) {
      const Tensor value = entry.value.detach().to(mine.device());
      pair->second = {mine, mine.requires_grad() ? value.require_grad() : value};
    }
    mine = pair->second.second;
  }
  return report;
}

int64_t count_parameters(const Leaves& leaves) {
  std::set<const Node*> seen;
  int64_t count = 0;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::Kind::parameter && seen.insert(leaf.tensor->node()).second) {
      count += leaf.tensor->element_count();
    }
  }
  return count;
}

std::string summary(const Leaves& leaves) {
  size_t widest = 5;
  for (const Leaf& leaf : leaves) widest = std::max(widest, leaf.path.size());
  std::string text;
  int64_t trained = 0;
  std::set<const Node*> seen;
  for (const Leaf& leaf : leaves) {
    if (!leaf.tensor) continue;
    const Tensor& tensor = *leaf.tensor;
    const bool first = seen.insert(tensor.node()).second;
    const char* note = leaf.kind == Leaf::Kind::buffer ? "  not trained" : !first ? "  shared" : "";
    text += fmt::format("{:<{}}  {:<20} {:>12}{}\n", leaf.path, widest, type_text(tensor),
                        tensor.element_count(), note);
    if (first && leaf.kind == Leaf::Kind::parameter && tensor.requires_grad()) {
      trained += tensor.element_count();
    }
  }
  return text + fmt::format("{:<{}}  {:<20} {:>12}  {} tracked\n", "total", widest, "",
                            count_parameters(leaves), trained);
}

}  // namespace fornax
