// Tensor: an 8-byte handle to a value that is recorded, or computed and in memory on a device.
//
// Handles have value semantics: a copy is the same immutable value, an assignment rebinds the
// handle, and no op changes what another handle sees.  Ops record and return at once; reading a
// value, sync and memory pressure run what was recorded.  Wrong shapes, dtypes and devices are
// errors at the call. Different handles may be used from different threads; one handle may not be
// assigned while it is read elsewhere.
#pragma once
#include <fornax/axes.h>
#include <fornax/device.h>
#include <fornax/dtype.h>
#include <fornax/error.h>
#include <fornax/index.h>
#include <fornax/scalar.h>
#include <fornax/shape.h>

#include <initializer_list>
#include <iosfwd>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fornax {

struct Node;
class Operand;
class Indexed;
class Nested;
struct MaxResult;

struct ReduceOptions {
  bool keep_dims = false;  // keep reduced axes with size 1
};
struct BackwardOptions {
  bool retain_graph = false;  // the graph can be walked again
};
struct VarianceOptions {
  int64_t correction = 1;  // divisor is the element count minus this; 0 is the biased variance
  bool keep_dims = false;
};
struct SortOptions {
  int64_t axis = -1;
  bool descending = false;
};

class Tensor {
 public:
  // No value; every use but assignment and defined() is an error.
  Tensor() = default;
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Tensor() {
    if (node_) release();
  }

  // ── What it is ─────────────────────────────────────────────────────────────────────────────────
  bool defined() const { return node_ != nullptr; }
  const Shape& shape() const;
  int64_t shape(int64_t axis) const;  // axis may be negative.  Error(index)
  int rank() const { return shape().rank(); }
  int64_t element_count() const { return shape().element_count(); }
  DType dtype() const;
  Device device() const;  // with the marks that its results inherit

  // ── Reading: runs what is recorded and waits ───────────────────────────────────────────────────
  // The only element.  Error(shape): there is not exactly one.
  template <class T>
  T item(Site site = Site::here()) const;
  // All elements in row-major order, converted as cast does.
  template <class T>
  std::vector<T> to_vector(Site site = Site::here()) const;
  // Copies all elements in row-major order.  Error(shape): `out` has another length.
  template <class T>
  void copy_to(std::span<T> out, Site site = Site::here()) const;
  // As PyTorch prints: values, then dtype and device where they are not the default ones.
  std::string text(Site site = Site::here()) const;

  // ── Elementwise ops, from ops.def: x.exp(), x.add(y) ───────────────────────────────────────────
#define OP1(name, ...) Tensor name(Site site = Site::here()) const;
#define OP2(name, ...) Tensor name(const Operand& b) const;
#include <fornax/ops.def>
  Tensor clamp(const Operand& low, const Operand& high) const;  // NaN stays; gradient 1 at a bound
  Tensor cast(DType dtype, Site site = Site::here()) const;     // differentiable between floats

  Tensor& operator+=(const Operand& b);
  Tensor& operator-=(const Operand& b);
  Tensor& operator*=(const Operand& b);
  Tensor& operator/=(const Operand& b);

  // ── Shape.  Axes may be negative.  Error(shape, index) where sizes or axes do not fit ──────────
  Tensor reshape(Shape shape, Site site = Site::here()) const;  // one size may be -1: inferred
  Tensor flatten(int64_t first = 0, int64_t last = -1, Site site = Site::here()) const;
  Tensor squeeze(Axes axes = {}, Site site = Site::here()) const;  // none named: every size-1 axis
  Tensor unsqueeze(int64_t axis, Site site = Site::here()) const;
  Tensor transpose(int64_t a = -2, int64_t b = -1, Site site = Site::here()) const;
  Tensor permute(Axes axes, Site site = Site::here()) const;
  Tensor move_axis(int64_t from, int64_t to, Site site = Site::here()) const;
  Tensor expand(Shape shape, Site site = Site::here()) const;   // -1 keeps a size
  Tensor repeat(Shape counts, Site site = Site::here()) const;  // whole copies along each axis
  Tensor flip(Axes axes, Site site = Site::here()) const;
  Tensor roll(int64_t shift, int64_t axis, Site site = Site::here()) const;
  Tensor narrow(int64_t axis, int64_t start, int64_t length, Site site = Site::here()) const;
  Tensor select(int64_t axis, int64_t index, Site site = Site::here()) const;  // drops the axis
  std::vector<Tensor> split(int64_t size, int64_t axis = 0, Site site = Site::here()) const;
  std::vector<Tensor> chunk(int64_t count, int64_t axis = 0, Site site = Site::here()) const;
  // (before, after) per axis, the last pair for the last axis; negative numbers crop.
  Tensor pad(std::vector<std::pair<int64_t, int64_t>> padding, Scalar value = 0,
             Site site = Site::here()) const;
  // Windows of `size` every `step` along `axis`, appended as a last axis.
  Tensor unfold(int64_t axis, int64_t size, int64_t step, Site site = Site::here()) const;
  Tensor triu(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor tril(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor diagonal(Site site = Site::here()) const;    // of the last two axes
  Tensor contiguous(Site site = Site::here()) const;  // never needed for correctness

  // ── Indexing (index.h): x(0), x(slice(1, 5), ellipsis, -1), x(mask), x(positions) ──────────────
  Tensor operator()(Index a, Index b = {}, Index c = {}, Index d = {}, Index e = {}, Index f = {},
                    Index g = {}, Index h = {}) const;
  // x.at(...) = value rebinds x to a copy with these elements replaced; += adds at each position.
  Indexed at(Index a, Index b = {}, Index c = {}, Index d = {}, Index e = {}, Index f = {},
             Index g = {}, Index h = {});
  Tensor gather(int64_t axis, const Tensor& index, Site site = Site::here()) const;
  // index of any rank takes the place of the axis.
  Tensor take(const Tensor& index, int64_t axis = 0, Site site = Site::here()) const;
  Tensor scatter(int64_t axis, const Tensor& index, const Operand& values) const;
  Tensor scatter_add(int64_t axis, const Tensor& index, const Operand& values) const;
  Tensor scatter_max(int64_t axis, const Tensor& index, const Operand& values) const;
  Tensor scatter_min(int64_t axis, const Tensor& index, const Operand& values) const;
  Tensor masked_fill(const Tensor& mask, const Operand& value) const;
  Tensor nonzero(Site site = Site::here()) const;  // i64[count, rank]; waits for the values

  // ── Reductions over `axes`, all of them by default ─────────────────────────────────────────────
  Tensor sum(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor mean(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor prod(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor max(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor min(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor any(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor all(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  // Without an axis: the position in row-major order.
  Tensor argmax(Site site = Site::here()) const;
  Tensor argmin(Site site = Site::here()) const;
  Tensor argmax(int64_t axis, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor argmin(int64_t axis, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor variance(Axes axes = {}, VarianceOptions o = {}, Site site = Site::here()) const;
  Tensor deviation(Axes axes = {}, VarianceOptions o = {}, Site site = Site::here()) const;
  Tensor norm(double p = 2, Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;
  Tensor logsumexp(Axes axes = {}, ReduceOptions o = {}, Site site = Site::here()) const;

  // ── Along one axis ─────────────────────────────────────────────────────────────────────────────
  Tensor cumsum(int64_t axis, Site site = Site::here()) const;
  Tensor cumprod(int64_t axis, Site site = Site::here()) const;
  Tensor cummax(int64_t axis, Site site = Site::here()) const;
  Tensor cummin(int64_t axis, Site site = Site::here()) const;
  Tensor sort(SortOptions o = {}, Site site = Site::here()) const;
  Tensor argsort(SortOptions o = {}, Site site = Site::here()) const;  // stable
  // The k largest along an axis, largest first, and their positions.
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t axis = -1, Site site = Site::here()) const;

  // ── Linear algebra ─────────────────────────────────────────────────────────────────────────────
  // Rank 1 counts as a row on the left and a column on the right; leading axes broadcast.
  Tensor matmul(const Operand& b) const;
  Tensor dot(const Operand& b) const;    // of two rank-1 tensors
  Tensor outer(const Operand& b) const;  // of two rank-1 tensors
  Tensor trace(Site site = Site::here()) const;

  // ── Devices and gradients (grad.h has scopes, grad() and custom ops) ───────────────────────────
  Tensor to(Device device, Site site = Site::here()) const;  // differentiable
  // The same value, tracked: backward() leaves its gradient in grad().  Error(dtype): not floating.
  Tensor require_grad(Site site = Site::here()) const;
  bool requires_grad() const;  // tracked, as a leaf or as a result of tracked values
  Tensor detach(Site site = Site::here()) const;
  // Accumulates the gradient of this value, a single number, into the leaves it came from; given
  // `gradient`, of this value's shape, that of (gradient * value).sum().  Error(value): not
  // tracked, more than one element and no `gradient`, or already spent.
  void backward(BackwardOptions o = {}, Site site = Site::here()) const;
  void backward(const Tensor& gradient, BackwardOptions o = {}, Site site = Site::here()) const;
  // What backward() left here; undefined before.  Leaves, and results after retain_grad().
  Tensor grad() const;
  // Replaces it; undefined clears it.
  void set_grad(const Tensor& gradient, Site site = Site::here()) const;
  void retain_grad(Site site = Site::here()) const;

  // For the rooms that build on nodes; takes over one handle.
  explicit Tensor(Node* node) : node_(node) {}
  Node* node() const { return node_; }

 private:
  void release();
  void release_tracked();
  void read(const char* name, void* out, size_t count, DType dtype, Site site) const;
  // How many elements to_vector() gives.  Error(out_of_memory): more than fit into memory.
  size_t countable(size_t element_size, Site site) const;
  [[noreturn]] void no_memory(Site site) const;
  Node* node_ = nullptr;
};
static_assert(sizeof(Tensor) == 8);

// What a function takes where a tensor or a number will do, and the line that it was given on.  A
// number adopts the dtype of the tensor it meets (docs/semantics.md).  Lives during the call.
class Operand {
 public:
  Operand(const Tensor& tensor, Site site = Site::here())
      : tensor_(&tensor), site_(site) {}  // NOLINT
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T number, Site site = Site::here())
      : scalar_(number), site_(site) {}                                               // NOLINT
  Operand(Scalar number, Site site = Site::here()) : scalar_(number), site_(site) {}  // NOLINT

  bool is_number() const { return !tensor_; }
  const Tensor& tensor() const { return *tensor_; }  // Requires: !is_number()
  Scalar number() const { return scalar_; }
  const Site& site() const { return site_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
  Site site_;
};

// ── Elementwise ops, from ops.def, as functions and operators ────────────────────────────────────
#define OP1(name, ...) Tensor name(const Operand& x);
#define OP2(name, ...) Tensor name(const Operand& a, const Operand& b);
#define OP3(name, ...) Tensor name(const Operand& a, const Operand& b, const Operand& c);
#include <fornax/ops.def>

inline Tensor operator-(const Operand& x) { return neg(x); }
inline Tensor operator~(const Operand& x) { return bitwise_not(x); }
inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor operator%(const Operand& a, const Operand& b) { return remainder(a, b); }
inline Tensor operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
inline Tensor operator==(const Operand& a, const Operand& b) { return equal(a, b); }
inline Tensor operator!=(const Operand& a, const Operand& b) { return not_equal(a, b); }
inline Tensor operator<(const Operand& a, const Operand& b) { return less(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return greater(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }

// text()
std::ostream& operator<<(std::ostream& out, const Tensor& x);

template <class T>
T Tensor::item(Site site) const {
  T value;
  read("item", &value, 1, dtype_of<T>, site);
  return value;
}
template <class T>
std::vector<T> Tensor::to_vector(Site site) const {
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no array of bools
    const std::vector<uint8_t> bytes = cast(DType::bool_, site).to_vector<uint8_t>(site);
    return std::vector<bool>(bytes.begin(), bytes.end());
  } else {
    std::vector<T> values;
    try {
      values.resize(countable(sizeof(T), site));
    } catch (const std::bad_alloc&) {
      no_memory(site);
    }
    read("to_vector", values.data(), values.size(), dtype_of<T>, site);
    return values;
  }
}
template <class T>
void Tensor::copy_to(std::span<T> out, Site site) const {
  read("copy_to", out.data(), out.size(), dtype_of<T>, site);
}

}  // namespace fornax
