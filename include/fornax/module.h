// Modules: structs whose fields are listed by FORNAX_FIELDS, and what can be done with all of them.
//
//   struct Net {
//     nn::Linear first{784, 128}, last{128, 10};
//     Tensor operator()(const Tensor& x) const { return last(relu(first(x))); }
//     FORNAX_FIELDS(first, last)
//   };
//
// Fields are Tensor (a parameter), nn::Buffer (state that is saved but not trained), nn::Mode,
// other modules, and std::vector, std::array or std::optional of these.  Undefined tensors are not
// counted.
// Modules are values: what happens to a copy changes no value of the original.  A plain
// copy's tracked parameters share their gradients with the original's until either is replaced;
// train() makes a copy with gradients of its own.  The same tensor in two fields is one parameter
// and stays one.  Different modules may be used from different threads.
#pragma once
#include <fornax/tensor.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Gives a struct each(visitor), which calls visitor("name", field) per field, and
//   train()     the same module, parameters tracked, modes set to training
//   valid()     the same module, parameters untracked, modes set to evaluation
//   to(device)  the same module with its tensors on `device`; tracked parameters stay tracked
// clang-format off
#define FORNAX_FIELDS(...)                                               \
  template <class FornaxVisitor>                                         \
  void each([[maybe_unused]] FornaxVisitor&& visitor) {                  \
    __VA_OPT__(FORNAX_EXPAND(FORNAX_EACH_FIELD(visitor, __VA_ARGS__)))   \
  }                                                                      \
  template <class FornaxVisitor>                                         \
  void each([[maybe_unused]] FornaxVisitor&& visitor) const {            \
    __VA_OPT__(FORNAX_EXPAND(FORNAX_EACH_FIELD(visitor, __VA_ARGS__)))   \
  }                                                                      \
  FORNAX_MODULE_MEMBERS
// clang-format on
#define FORNAX_MODULE_MEMBERS                                                            \
  auto train() const { return ::fornax::trained(*this); }                                \
  auto valid() const { return ::fornax::validated(*this); }                              \
  auto to(::fornax::Device device, ::fornax::Site site = ::fornax::Site::here()) const { \
    return ::fornax::moved(*this, device, site);                                         \
  }
// Up to 85 fields: each level of FORNAX_EXPAND rescans four times, and a rescan unfolds one field.
#define FORNAX_EXPAND(...) \
  FORNAX_EXPAND3(FORNAX_EXPAND3(FORNAX_EXPAND3(FORNAX_EXPAND3(__VA_ARGS__))))
#define FORNAX_EXPAND3(...) \
  FORNAX_EXPAND2(FORNAX_EXPAND2(FORNAX_EXPAND2(FORNAX_EXPAND2(__VA_ARGS__))))
#define FORNAX_EXPAND2(...) \
  FORNAX_EXPAND1(FORNAX_EXPAND1(FORNAX_EXPAND1(FORNAX_EXPAND1(__VA_ARGS__))))
#define FORNAX_EXPAND1(...) __VA_ARGS__
#define FORNAX_PARENTHESES ()
#define FORNAX_EACH_FIELD(visitor, field, ...) \
  visitor(#field, field);                      \
  __VA_OPT__(FORNAX_EACH_AGAIN FORNAX_PARENTHESES(visitor, __VA_ARGS__))
#define FORNAX_EACH_AGAIN() FORNAX_EACH_FIELD

namespace fornax {

namespace nn {
// Whether layers that differ between training and evaluation are training.
struct Mode {
  bool training = false;
  Mode() = default;
  explicit Mode(const Device& device) : training(device.is_autodiff()) {}
};
// A tensor that belongs to a module's state and is not trained: running statistics, tables.
struct Buffer {
  Tensor value;
};
}  // namespace nn

// One tensor or mode of a module.  Points into the module: do not keep one while it is assigned.
struct Leaf {
  enum class Kind : uint8_t { parameter, buffer, mode };
  std::string path;  // "layers.0.weight"
  Kind kind = Kind::parameter;
  Tensor* tensor = nullptr;  // of parameters and buffers; always defined
  nn::Mode* mode = nullptr;
};
using Leaves = std::vector<Leaf>;

// Gathers the leaves of the fields it visits, in the order of their listing.
class LeafCollector {
 public:
  template <class Field>
  void operator()(std::string_view name, Field& field) {
    const size_t before = enter(name);
    if constexpr (std::same_as<Field, Tensor>) {
      add(Leaf::Kind::parameter, &field, nullptr);
    } else if constexpr (std::same_as<Field, nn::Buffer>) {
      add(Leaf::Kind::buffer, &field.value, nullptr);
    } else if constexpr (std::same_as<Field, nn::Mode>) {
      add(Leaf::Kind::mode, nullptr, &field);
    } else if constexpr (requires { field.each(*this); }) {
      field.each(*this);
    } else if constexpr (requires {
                           field.has_value();
                           *field;
                         }) {
      if (field.has_value()) items(&*field, 1, false);
    } else if constexpr (requires {
                           field.data();
                           field.size();
                         }) {
      items(field.data(), field.size(), true);
    } else {
      static_assert(!sizeof(Field),
                    "FORNAX_FIELDS takes tensors, nn::Buffer, nn::Mode, modules, "
                    "and std::vector, std::array or std::optional of these");
    }
    path_.resize(before);
  }
  Leaves take() { return std::move(leaves_); }

 private:
  template <class Item>
  void items(Item* first, size_t count, bool numbered) {
    for (size_t i = 0; i < count; i++) {
      (*this)(numbered ? std::string_view(std::to_string(i)) : std::string_view(), first[i]);
    }
  }
  size_t enter(std::string_view name);  // the length of the path before
  void add(Leaf::Kind kind, Tensor* tensor, nn::Mode* mode);

  std::string path_;
  Leaves leaves_;
};

template <class M>
concept Module = std::copyable<M> && requires(M& module, LeafCollector& collector) {
  module.each(collector);
};

template <Module M>
Leaves leaves(M& module) {
  LeafCollector collector;
  module.each(collector);
  return collector.take();
}
// For functions that only read; nothing is written through these leaves.
template <Module M>
Leaves leaves(const M& module) {
  return leaves(const_cast<M&>(module));
}

struct NamedTensor {
  std::string path;
  Tensor value;
};
using State = std::vector<NamedTensor>;
// The tensor at `path`, or null.
const Tensor* find(const State& state, std::string_view path);

// What did not fit when a state was loaded.
struct LoadReport {
  std::vector<std::string> missing;     // paths of the module that the state lacks
  std::vector<std::string> unexpected;  // paths of the state that the module lacks
  std::vector<std::string> mismatched;  // "conv.weight is f32[8,3,3,3], the file has f32[8,1,3,3]"
  bool ok() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string text() const;  // one line; empty where all fitted
};
struct LoadOptions {
  bool strict = true;  // nothing is loaded and Error(value) names all that does not fit
};

// The work behind the templates below, on leaves.
void track(const Leaves& leaves);
void untrack(const Leaves& leaves);
void move(const Leaves& leaves, const Device& device, Site site = Site::here());
void freeze(const Leaves& leaves);
State named(const Leaves& leaves, bool with_buffers);
LoadReport load_state(const Leaves& leaves, const State& state, LoadOptions o = {},
                      Site site = Site::here());
int64_t count_parameters(const Leaves& leaves);
std::string summary(const Leaves& leaves);
// Replaces each distinct tensor once: fields that share a tensor share its successor.  Parameters
// only, or buffers as well.
void replace(const Leaves& leaves, bool with_buffers,
             Tensor (*successor)(const Tensor& tensor, Leaf::Kind kind, const void* context),
             const void* context = nullptr);

template <Module M>
M trained(M module) {
  track(leaves(module));
  return module;
}
template <Module M>
M validated(M module) {
  untrack(leaves(module));
  return module;
}
template <Module M>
M moved(M module, const Device& device, Site site = Site::here()) {
  move(leaves(module), device, site);
  return module;
}

// Parameters get no gradient any more, while gradients still flow through the module.  Training
// starts again with train().
template <Module M>
void freeze(M& module) {
  freeze(leaves(module));
}

template <Module M>
State named_parameters(const M& module) {
  return named(leaves(module), false);
}
template <Module M>
std::vector<Tensor> parameters(const M& module) {
  std::vector<Tensor> tensors;
  for (NamedTensor& entry : named_parameters(module)) tensors.push_back(std::move(entry.value));
  return tensors;
}
// Elements of all parameters; a shared tensor counts once.
template <Module M>
int64_t count_parameters(const M& module) {
  return count_parameters(leaves(module));
}
// A table of paths, types and counts, for people.
template <Module M>
std::string summary(const M& module) {
  return summary(leaves(module));
}

// Parameters and buffers by path, untracked.
template <Module M>
State state_of(const M& module) {
  return named(leaves(module), true);
}
// Puts the tensors of `state` in place, on the module's device, tracked where the old ones were.
template <Module M>
LoadReport load_state(M& module, const State& state, LoadOptions o = {}, Site site = Site::here()) {
  return load_state(leaves(module), state, o, site);
}

}  // namespace fornax
