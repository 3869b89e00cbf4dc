// Ranked<D, Kind>: an optional view of a Tensor whose rank and kind the compiler checks.  It holds
// a Tensor and nothing else; ops keep or change D and Kind in the type, and what cannot fit does
// not compile.  Sizes, devices and the dtype within a kind stay run-time matters.
//
//   Ranked<2> x(images), w(weight);      // Float is the default kind
//   Ranked<2, Bool> hit = x.matmul(w) > 0;
//   Ranked<1, Int> hits = hit.sum(1);
#pragma once
#include <fornax/tensor.h>

namespace fornax {

struct Float {};
struct Int {};
struct Bool {};

struct KeepDims {};
inline constexpr KeepDims keep_dims;  // x.sum(1, keep_dims): the axis stays with size 1

template <int D, class Kind = Float>
class Ranked;

// How kinds follow from each other; the first eight are named like the rules of ops.def.
namespace ranked {

template <class A>
inline constexpr bool is_kind =
    std::is_same_v<A, Float> || std::is_same_v<A, Int> || std::is_same_v<A, Bool>;
template <class A, class B = A>
using wider = std::conditional_t<
    std::is_same_v<A, Float> || std::is_same_v<B, Float>, Float,
    std::conditional_t<std::is_same_v<A, Int> || std::is_same_v<B, Int>, Int, Bool>>;
template <class A, class B = A>
using same = wider<A, B>;
template <class A, class B = A>
using signed_same = wider<A, B>;
template <class A, class B = A>
using floating = Float;
template <class A, class B = A>
using exponential = Float;
template <class A, class B = A>
using boolean = Bool;
template <class A, class B = A>
using floating_boolean = Bool;
template <class A, class B = A>
using bitwise = wider<A, B>;
template <class A>
using summed = std::conditional_t<std::is_same_v<A, Bool>, Int, A>;
template <class T>
using of_number = std::conditional_t<std::is_floating_point_v<T>, Float,
                                     std::conditional_t<std::is_same_v<T, bool>, Bool, Int>>;

enum class Demand { arithmetic, compare, bits };
namespace demand {
inline constexpr Demand same = Demand::arithmetic, signed_same = Demand::arithmetic,
                        floating = Demand::arithmetic, exponential = Demand::arithmetic,
                        boolean = Demand::compare, floating_boolean = Demand::compare,
                        bitwise = Demand::bits;
}

template <Demand demand, class A, class B>
constexpr void check_kinds() {
  static_assert(
      demand != Demand::arithmetic || !(std::is_same_v<A, Bool> || std::is_same_v<B, Bool>),
      "Ranked: a Bool has no arithmetic; convert it with to_int() or to_float()");
  static_assert(demand != Demand::bits || !(std::is_same_v<A, Float> || std::is_same_v<B, Float>),
                "Ranked: a Float has no bits to combine; compare it, or convert it with to_int()");
}
template <int D, int E>
constexpr void check_ranks() {
  static_assert(D == E, "Ranked: operands have different ranks; unsqueeze or reshape one of them");
}

// Error(shape): another rank.  Error(dtype): another kind.
void check(const Tensor& tensor, int rank, bool floating, bool boolean, Site site);

}  // namespace ranked

template <int D, class Kind>
class Ranked {
  static_assert(D >= 0 && D <= kMaxRank, "Ranked: a rank must be between 0 and kMaxRank");
  static_assert(ranked::is_kind<Kind>, "Ranked: a kind must be Float, Int or Bool");

 public:
  static constexpr int rank = D;

  // Error(shape): the tensor has another rank.  Error(dtype): its dtype is of another kind.
  explicit Ranked(Tensor tensor, Site site = Site::here()) : tensor_(std::move(tensor)) {
    ranked::check(tensor_, D, std::is_same_v<Kind, Float>, std::is_same_v<Kind, Bool>, site);
  }
  const Tensor& tensor() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }  // NOLINT: implicit on purpose

  const Shape& shape() const { return tensor_.shape(); }
  int64_t shape(int64_t axis) const { return tensor_.shape(axis); }
  DType dtype() const { return tensor_.dtype(); }
  Device device() const { return tensor_.device(); }

  // ── Elementwise ops, from ops.def ──────────────────────────────────────────────────────────────
#define OP1(name, rule, ...)                                           \
  Ranked<D, ranked::rule<Kind>> name(Site site = Site::here()) const { \
    return Ranked<D, ranked::rule<Kind>>(tensor_.name(site), site);    \
  }
#define OP2(name, rule, ...)                                                                    \
  template <int E, class Other>                                                                 \
  auto name(const Ranked<E, Other>& b, Site site = Site::here()) const {                        \
    ranked::check_ranks<D, E>();                                                                \
    ranked::check_kinds<ranked::demand::rule, Kind, Other>();                                   \
    return Ranked<D, ranked::rule<Kind, Other>>(tensor_.name(Operand(b.tensor(), site)), site); \
  }                                                                                             \
  template <class T>                                                                            \
  requires std::is_arithmetic_v<T>                                                              \
  auto name(T b, Site site = Site::here()) const {                                              \
    using Other = ranked::of_number<T>;                                                         \
    ranked::check_kinds<ranked::demand::rule, Kind, Other>();                                   \
    return Ranked<D, ranked::rule<Kind, Other>>(tensor_.name(Operand(b, site)), site);          \
  }
#include <fornax/ops.def>

  Ranked<D, Float> to_float(DType dtype = DType::f32, Site site = Site::here()) const {
    return Ranked<D, Float>(tensor_.cast(dtype, site), site);
  }
  Ranked<D, Int> to_int(DType dtype = DType::i64, Site site = Site::here()) const {
    return Ranked<D, Int>(tensor_.cast(dtype, site), site);
  }
  Ranked<D, Bool> to_bool(Site site = Site::here()) const {
    return Ranked<D, Bool>(tensor_.cast(DType::bool_, site), site);
  }

  // ── Shape ──────────────────────────────────────────────────────────────────────────────────────
  template <int E>
  Ranked<E, Kind> reshape(Shape shape, Site site = Site::here()) const {
    return Ranked<E, Kind>(tensor_.reshape(shape, site), site);
  }
  template <int E>
  Ranked<E, Kind> expand(Shape shape, Site site = Site::here()) const {
    static_assert(E >= D, "Ranked: expand cannot drop axes; select or reshape first");
    return Ranked<E, Kind>(tensor_.expand(shape, site), site);
  }
  Ranked<D + 1, Kind> unsqueeze(int64_t axis, Site site = Site::here()) const
      requires(D < kMaxRank) {
    return Ranked<D + 1, Kind>(tensor_.unsqueeze(axis, site), site);
  }
  Ranked<D - 1, Kind> squeeze(int64_t axis, Site site = Site::here()) const requires(D > 0) {
    return Ranked<D - 1, Kind>(tensor_.squeeze(axis, site), site);
  }
  Ranked<D - 1, Kind> select(int64_t axis, int64_t index, Site site = Site::here()) const
      requires(D > 0) {
    return Ranked<D - 1, Kind>(tensor_.select(axis, index, site), site);
  }
  Ranked transpose(int64_t a = -2, int64_t b = -1, Site site = Site::here()) const {
    return Ranked(tensor_.transpose(a, b, site), site);
  }
  Ranked permute(Axes axes, Site site = Site::here()) const {
    return Ranked(tensor_.permute(axes, site), site);
  }
  Ranked narrow(int64_t axis, int64_t start, int64_t length, Site site = Site::here()) const {
    return Ranked(tensor_.narrow(axis, start, length, site), site);
  }

  // ── Reductions: of everything, of one axis, which goes or stays ────────────────────────────────
#define FORNAX_RANKED_REDUCTION(name, kind)                                              \
  Ranked<0, kind> name(Site site = Site::here()) const {                                 \
    return Ranked<0, kind>(tensor_.name({}, {}, site), site);                            \
  }                                                                                      \
  Ranked<(D > 0 ? D - 1 : 0), kind> name(int64_t axis, Site site = Site::here()) const { \
    static_assert(D > 0, "Ranked: a single number has no axes to reduce");               \
    return Ranked<(D > 0 ? D - 1 : 0), kind>(tensor_.name(axis, {}, site), site);        \
  }                                                                                      \
  Ranked<D, kind> name(int64_t axis, KeepDims, Site site = Site::here()) const {         \
    return Ranked<D, kind>(tensor_.name(axis, {.keep_dims = true}, site), site);         \
  }
  FORNAX_RANKED_REDUCTION(sum, ranked::summed<Kind>)
  FORNAX_RANKED_REDUCTION(prod, ranked::summed<Kind>)
  FORNAX_RANKED_REDUCTION(mean, Float)
  FORNAX_RANKED_REDUCTION(max, Kind)
  FORNAX_RANKED_REDUCTION(min, Kind)
  FORNAX_RANKED_REDUCTION(any, Bool)
  FORNAX_RANKED_REDUCTION(all, Bool)
#undef FORNAX_RANKED_REDUCTION

  // ── Products ───────────────────────────────────────────────────────────────────────────────────
  template <int E, class Other>
  auto matmul(const Ranked<E, Other>& b, Site site = Site::here()) const {
    static_assert(D >= 2, "Ranked: matmul needs at least 2 axes; unsqueeze a vector");
    ranked::check_ranks<D, E>();
    ranked::check_kinds<ranked::Demand::arithmetic, Kind, Other>();
    return Ranked<D, ranked::wider<Kind, Other>>(tensor_.matmul(Operand(b.tensor(), site)), site);
  }

 private:
  Tensor tensor_;
};

// ── Operators ────────────────────────────────────────────────────────────────────────────────────
// Both sides ranked, or a number on either.  An operator cannot take a call site: its errors name
// this header, those of the named forms the caller's line.
#define FORNAX_RANKED_OPERATOR(symbol, name)                           \
  template <int D, class A, int E, class B>                            \
  auto operator symbol(const Ranked<D, A>& a, const Ranked<E, B>& b) { \
    return a.name(b);                                                  \
  }                                                                    \
  template <int D, class A, class T>                                   \
  requires std::is_arithmetic_v<T>                                     \
  auto operator symbol(const Ranked<D, A>& a, T b) { return a.name(b); }
FORNAX_RANKED_OPERATOR(+, add)
FORNAX_RANKED_OPERATOR(-, sub)
FORNAX_RANKED_OPERATOR(*, mul)
FORNAX_RANKED_OPERATOR(/, div)
FORNAX_RANKED_OPERATOR(%, remainder)
FORNAX_RANKED_OPERATOR(&, bitwise_and)
FORNAX_RANKED_OPERATOR(|, bitwise_or)
FORNAX_RANKED_OPERATOR(^, bitwise_xor)
FORNAX_RANKED_OPERATOR(==, equal)
FORNAX_RANKED_OPERATOR(!=, not_equal)
FORNAX_RANKED_OPERATOR(<, less)
FORNAX_RANKED_OPERATOR(<=, less_equal)
FORNAX_RANKED_OPERATOR(>, greater)
FORNAX_RANKED_OPERATOR(>=, greater_equal)
#undef FORNAX_RANKED_OPERATOR

// A number on the left.
#define FORNAX_RANKED_LEFT(symbol, name)                          \
  template <class T, int D, class A>                              \
  requires std::is_arithmetic_v<T>                                \
  auto operator symbol(T a, const Ranked<D, A>& b) {              \
    using Number = ranked::of_number<T>;                          \
    ranked::check_kinds<ranked::Demand::arithmetic, Number, A>(); \
    using Result = decltype(b.name(a));                           \
    return Result(fornax::name(a, b.tensor()));                   \
  }
FORNAX_RANKED_LEFT(+, add)
FORNAX_RANKED_LEFT(-, sub)
FORNAX_RANKED_LEFT(*, mul)
FORNAX_RANKED_LEFT(/, div)
#undef FORNAX_RANKED_LEFT

template <int D, class A>
auto operator-(const Ranked<D, A>& x) {
  ranked::check_kinds<ranked::Demand::arithmetic, A, A>();
  return x.neg();
}
template <int D, class A>
auto operator~(const Ranked<D, A>& x) {
  ranked::check_kinds<ranked::Demand::bits, A, A>();
  return x.bitwise_not();
}

}  // namespace fornax
