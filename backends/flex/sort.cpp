// argsort: stable, NaN the greatest, ties in order in both directions.
//
// Each element becomes an unsigned key whose order is the wanted one; keys with their positions are
// then sorted by radix, or by insertion where a line is short.
#include "backends/flex/sort.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

template <size_t kBytes>
using Bits = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_class_v<T>) {
    return float(value) != float(value);
  } else {
    return value != value;
  }
}

// Ascending keys: floats by sign and magnitude with both zeros equal and NaN on top.
template <class T>
Bits<sizeof(T)> key_of(T value) {
  using Key = Bits<sizeof(T)>;
  constexpr Key kSign = Key(Key(1) << (sizeof(T) * 8 - 1));
  const Key bits = std::bit_cast<Key>(value);
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return bits;
  } else if constexpr (std::is_integral_v<T>) {
    return Key(bits ^ kSign);
  } else {
    if (is_nan(value)) return std::numeric_limits<Key>::max();
    if (Key(bits & Key(~kSign)) == 0) return kSign;
    return bits & kSign ? Key(~bits) : Key(bits | kSign);
  }
}

template <class Key>
struct Item {
  Key key;
  uint32_t position;
};

template <class Key>
void insertion_sort(Item<Key>* items, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const Item<Key> item = items[i];
    int64_t j = i;
    for (; j > 0 && items[j - 1].key > item.key; j--) items[j] = items[j - 1];
    items[j] = item;
  }
}

// Sorts by byte after byte from the lowest; bytes that all keys share are skipped.  Returns where
// the sorted items are: in `items` or in `spare`.
template <class Key>
Item<Key>* radix_sort(Item<Key>* items, Item<Key>* spare, int64_t count) {
  for (size_t byte = 0; byte < sizeof(Key); byte++) {
    int64_t starts[257] = {};
    const auto digit = [byte](const Item<Key>& item) {
      return size_t(item.key >> (8 * byte)) & 255;
    };
    for (int64_t i = 0; i < count; i++) starts[digit(items[i]) + 1]++;
    if (starts[digit(items[0]) + 1] == count) continue;
    for (size_t d = 0; d < 256; d++) starts[d + 1] += starts[d];
    for (int64_t i = 0; i < count; i++) spare[starts[digit(items[i])]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

struct ArgSort : Kernel {
  explicit ArgSort(AnchorPlan p) : plan(std::move(p)), settings(plan.attributes) {
    length = plan.result.shape[settings.axis];
    if (length > int64_t(std::numeric_limits<uint32_t>::max())) {
      fail(ErrorKind::shape, "argsort: axis {} has {} elements, at most 4294967295 can be sorted",
           settings.axis, length);
    }
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan.result.shape.element_count() == 0) return;
    const InputView x(plan, 0, inputs);
    const Layout layout = row_major(plan.result.shape);
    const WithoutAxis from = without_axis(plan.result.shape, x.strides, settings.axis);
    const WithoutAxis to = without_axis(plan.result.shape, layout.strides, settings.axis);
    with_type(x.type.dtype, [&](auto type) {
      using T = decltype(type);
      parallel(from.shape.element_count(), 2000 / length + 1, [&](int64_t begin, int64_t end) {
        StridedWalk<2> walk(from.shape, {from.strides.data(), to.strides.data()});
        walk.seek(begin);
        for (int64_t line = begin; line < end; line++, walk.next()) {
          sort_line(x.as<T>() + walk.offsets[0], x.strides[settings.axis],
                    data_of<int64_t>(outputs[0]) + walk.offsets[1], layout.strides[settings.axis]);
        }
      });
    });
  }

  template <class T>
  void sort_line(const T* x, int64_t x_step, int64_t* y, int64_t y_step) const {
    using Key = Bits<sizeof(T)>;
    constexpr int64_t kShort = 48;
    Workspace memory(size_t(length) * 2 * sizeof(Item<Key>));
    Item<Key>* items = memory.as<Item<Key>>();
    for (int64_t i = 0; i < length; i++) {
      const Key key = key_of(x[i * x_step]);
      items[i] = {settings.descending ? Key(~key) : key, uint32_t(i)};
    }
    if (length <= kShort) {
      insertion_sort(items, length);
    } else {
      items = radix_sort(items, items + length, length);
    }
    for (int64_t i = 0; i < length; i++) y[i * y_step] = items[i].position;
  }

  AnchorPlan plan;
  SortSettings settings;
  int64_t length = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_argsort(AnchorPlan plan) {
  return std::make_unique<ArgSort>(std::move(plan));
}

}  // namespace fornax::flex
