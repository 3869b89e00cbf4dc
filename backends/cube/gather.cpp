// gather: elements picked along one axis.  A thread per element of the result reads its index;
// where the index repeats along rows of x, as it does for embeddings, a thread per vector.
#include <algorithm>

#include "backends/cube/frame.h"
#include "backends/cube/indices.h"
#include "backends/cube/kernels.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {

Complaint index_complaint(Op op, DType index, int axis, const Type& indexed) {
  return [=](int64_t number) {
    const bool negative = is_signed(index) && number < 0;
    fail(ErrorKind::index, "{}: index {}{} is outside axis {} of {}, which has {} elements",
         info(op).name, negative ? "-" : "", negative ? -uint64_t(number) : uint64_t(number), axis,
         text_of(indexed), indexed.shape[axis]);
  };
}

Value checked_index(Builder& k, Value index, Value size, Value& inside, Site site) {
  const Value wide = k.cast(index, DType::i64);
  inside = (wide >= 0) & (wide < size);
  k.require(inside, "index {} is outside its axis", wide, site);
  return wide;
}

namespace {

class Gather {
 public:
  Gather(Device& device, const Group& group)
      : device_(device), anchor_(anchor_of(group)), axis_(axis_of(anchor_.attributes)) {
    const Shape& domain = anchor_.result.shape;
    Strides x = strides_over(domain, x_of().type.shape, x_of().layout);
    axis_stride_ = x[size_t(axis_)];
    x[size_t(axis_)] = 0;  // the index says where
    nest_ = collapse(domain, {std::move(x), strides_over(domain, domain, index_of().layout),
                              row_major_strides({domain.begin(), domain.end()})});
  }

  std::unique_ptr<PreparedGroup> prepare() const {
    const int lanes = best_lanes();
    if (lanes == 1) return make(1);
    return std::make_unique<VectorGroup>(
        lanes, std::vector<VectorGroup::Operand>{{x_of().place, x_of().type.dtype, 0}},
        [self = *this](int n) { return self.make(n); });
  }

 private:
  const Input& x_of() const { return anchor_.inputs[0]; }
  const Input& index_of() const { return anchor_.inputs[1]; }

  int best_lanes() const {
    if (nest_.rank() == 0 || x_of().number || nest_.strides[0].back() != 1 ||
        nest_.strides[1].back() != 0) {
      return 1;
    }
    std::vector<int64_t> numbers = {nest_.extents.back(), axis_stride_};
    for (const size_t view : {size_t(0), size_t(2)}) {
      numbers.insert(numbers.end(), nest_.strides[view].begin(), nest_.strides[view].end() - 1);
    }
    return common_power(numbers, 16 / int(size_of(x_of().type.dtype)));
  }

  std::unique_ptr<PreparedGroup> make(int lanes) const {
    auto list = std::make_unique<LaunchList>(device_);
    if (nest_.count() == 0) return list;
    std::vector<int64_t> x_extents = nest_.extents;
    Strides x_strides = nest_.strides[0];
    x_extents.push_back(std::max<int64_t>(x_of().type.shape[axis_], 1));
    x_strides.push_back(axis_stride_);
    Frame frame;
    frame.read("x", x_of(), x_extents, x_strides, lanes);
    frame.read("index", index_of(), nest_.extents, nest_.strides[1]);
    frame.write("y", Place::output(0), anchor_.result.dtype, nest_.extents, nest_.strides[2],
                lanes);
    frame.number("size", DType::i64, x_of().type.shape[axis_]);
    const auto body = [](Builder& k, const Framed& f, const At& at) {
      Value inside;
      const Value raw = f.views[1].load(k, at.position);
      const Value index = checked_index(k, raw, f.numbers[0], inside);
      k.when(inside, [&] {
        Position from = at.position;
        from.push_back(k.cast(index, at.element.dtype()));
        const Value x = f.views[0].load_vector(k, from, at.lanes);
        f.views[2].store(k, at.position, x);
      });
    };
    list->add(walk(device_, {.name = "gather",
                             .frame = std::move(frame),
                             .extents = nest_.extents,
                             .lanes = lanes,
                             .body = body,
                             .complaint = index_complaint(anchor_.op, index_of().type.dtype, axis_,
                                                          x_of().type)}));
    return list;
  }

  Device& device_;
  Anchor anchor_;
  int axis_;
  int64_t axis_stride_ = 0;
  Nest nest_;  // of x, the index and the result
};

}  // namespace

std::unique_ptr<PreparedGroup> prepare_gather(Device& device, const Group& group) {
  return Gather(device, group).prepare();
}

}  // namespace fornax::cube
