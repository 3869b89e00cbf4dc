// FunctionRef: a function parameter that is called before the callee returns.  Costs two pointers,
// owns nothing; do not keep one.
// Function: a function that is kept; a value that owns its captures.  (The standard's would double
// what this library's headers cost to compile.)
#pragma once
#include <type_traits>
#include <utility>

namespace fornax {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& function)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

template <class Signature>
class Function;

template <class Result, class... Args>
class Function<Result(Args...)> {
 public:
  Function() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Function>)
      Function(F function)  // NOLINT: implicit on purpose
      : object_(new F(std::move(function))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<F*>(object))(std::forward<Args>(args)...);
        }),
        copy_([](const void* object) -> void* { return new F(*static_cast<const F*>(object)); }),
        drop_([](void* object) { delete static_cast<F*>(object); }) {}
  Function(const Function& other)
      : object_(other.object_ ? other.copy_(other.object_) : nullptr),
        call_(other.call_),
        copy_(other.copy_),
        drop_(other.drop_) {}
  Function(Function&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)),
        call_(other.call_),
        copy_(other.copy_),
        drop_(other.drop_) {}
  Function& operator=(Function other) noexcept {
    std::swap(object_, other.object_);
    std::swap(call_, other.call_);
    std::swap(copy_, other.copy_);
    std::swap(drop_, other.drop_);
    return *this;
  }
  ~Function() {
    if (object_) drop_(object_);
  }

  explicit operator bool() const { return object_ != nullptr; }
  // Requires: not empty.
  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_ = nullptr;
  Result (*call_)(void*, Args...) = nullptr;
  void* (*copy_)(const void*) = nullptr;
  void (*drop_)(void*) = nullptr;
};

}  // namespace fornax
