// Reference values of reductions and scans.  Each gathers the elements that one result depends on
// and walks them in row-major order, in double or in 64-bit integers that wrap.
#include <algorithm>
#include <numeric>

#include "backends/reference/value.h"
#include "graph/attributes.h"

namespace fornax::reference {
namespace {

using numbers::Boolean;
using numbers::Signed;

// Words of `dtype` as the number type of sums and products: of a bool, the integers 0 and 1.
DType counted(DType dtype) { return is_boolean(dtype) ? DType::i64 : dtype; }

// result = word_of(body(elements)) for each result, elements being those along the reduced axes.
template <class Body>
void reduce(const Work& work, Value& result, DType dtype, Body&& body) {
  const Value& x = work.input(0);
  const Shape& shape = x.type.shape;
  Shape inner = shape;
  for (int axis = 0; axis < shape.rank(); axis++) inner[axis] = 1;
  for (int64_t axis : axes_of(work.attributes())) inner[int(axis)] = shape[int(axis)];
  with_number_type(dtype, [&](auto number) {
    using N = decltype(number);
    std::vector<N> elements(size_t(inner.element_count()));
    each(result.type.shape, [&](const Position& outer, size_t i) {
      each(inner, [&](const Position& at, size_t k) {
        Position from = outer;
        for (size_t axis = 0; axis < from.size(); axis++) from[axis] += at[axis];
        elements[k] = as<N>(x.words[flat_of(shape, from)]);
      });
      result.words[i] = word_of(body(std::span<const N>(elements)));
    });
  });
}

// result along the axis = body(elements along the axis, results to be), for each line of input 0.
template <class Body>
void scan(const Work& work, Value& result, DType dtype, Body&& body) {
  const Value& x = work.input(0);
  const Shape& shape = x.type.shape;
  const int axis = axis_of(work.attributes());
  const size_t length = size_t(shape[axis]);
  const size_t stride = size_t(row_major(shape).strides[axis]);
  Shape outer = shape;
  outer[axis] = std::min<int64_t>(shape[axis], 1);
  with_number_type(dtype, [&](auto number) {
    using N = decltype(number);
    std::vector<N> line(length);
    std::vector<Word> results(length);
    each(outer, [&](const Position& at, size_t) {
      const size_t first = flat_of(shape, at);
      for (size_t k = 0; k < line.size(); k++) line[k] = as<N>(x.words[first + k * stride]);
      body(std::span<const N>(line), std::span<Word>(results));
      for (size_t k = 0; k < line.size(); k++) result.words[first + k * stride] = results[k];
    });
  });
}

// A scan whose results run: combine(result so far, element).
template <class Combine>
void run(const Work& work, Value& result, DType dtype, Combine&& combine) {
  scan(work, result, dtype, [&]<class N>(std::span<const N> line, std::span<Word> results) {
    N so_far = line[0];
    for (size_t k = 0; k < line.size(); k++) {
      if (k > 0) so_far = combine(so_far, line[k]);
      results[k] = word_of(so_far);
    }
  });
}

// The first element that no other beats; NaN beats every number.
template <class N, class Beats>
Signed first_best(std::span<const N> elements, Beats&& beats) {
  size_t best = 0;
  for (size_t k = 1; k < elements.size() && !numbers::is_nan(elements[best]); k++) {
    if (numbers::is_nan(elements[k]) || beats(elements[k], elements[best])) best = k;
  }
  return Signed(int64_t(best));
}

// Whether a is sorted before b going up: NaN after all numbers.
template <class N>
bool precedes(N a, N b) {
  return numbers::is_nan(a) || numbers::is_nan(b) ? !numbers::is_nan(a) : a < b;
}

}  // namespace

void value_sum(const Work& work, Value& result) {
  reduce(work, result, counted(work.input(0).type.dtype),
         []<class N>(std::span<const N> elements) { return sum_of(elements); });
}

void value_prod(const Work& work, Value& result) {
  reduce(work, result, counted(work.input(0).type.dtype), []<class N>(std::span<const N> elements) {
    N product(1);
    for (N element : elements) product = product * element;
    return product;
  });
}

void value_max(const Work& work, Value& result) {
  reduce(work, result, result.type.dtype, []<class N>(std::span<const N> elements) {
    N largest = elements[0];
    for (N element : elements) largest = numbers::maximum(largest, element);
    return largest;
  });
}

void value_min(const Work& work, Value& result) {
  reduce(work, result, result.type.dtype, []<class N>(std::span<const N> elements) {
    N smallest = elements[0];
    for (N element : elements) smallest = numbers::minimum(smallest, element);
    return smallest;
  });
}

void value_any(const Work& work, Value& result) {
  reduce(work, result, work.input(0).type.dtype, []<class N>(std::span<const N> elements) {
    return Boolean(std::any_of(elements.begin(), elements.end(), [](N x) { return x != N(0); }));
  });
}

void value_all(const Work& work, Value& result) {
  reduce(work, result, work.input(0).type.dtype, []<class N>(std::span<const N> elements) {
    return Boolean(std::all_of(elements.begin(), elements.end(), [](N x) { return x != N(0); }));
  });
}

void value_argmax(const Work& work, Value& result) {
  reduce(work, result, work.input(0).type.dtype, []<class N>(std::span<const N> elements) {
    return first_best(elements, [](N a, N b) { return a > b; });
  });
}

void value_argmin(const Work& work, Value& result) {
  reduce(work, result, work.input(0).type.dtype, []<class N>(std::span<const N> elements) {
    return first_best(elements, [](N a, N b) { return a < b; });
  });
}

void value_cumsum(const Work& work, Value& result) {
  run(work, result, counted(work.input(0).type.dtype), [](auto a, auto b) { return a + b; });
}

void value_cumprod(const Work& work, Value& result) {
  run(work, result, counted(work.input(0).type.dtype), [](auto a, auto b) { return a * b; });
}

void value_cummax(const Work& work, Value& result) {
  run(work, result, result.type.dtype, [](auto a, auto b) { return numbers::maximum(a, b); });
}

void value_cummin(const Work& work, Value& result) {
  run(work, result, result.type.dtype, [](auto a, auto b) { return numbers::minimum(a, b); });
}

void value_argsort(const Work& work, Value& result) {
  const bool descending = SortSettings(work.attributes()).descending;
  scan(work, result, work.input(0).type.dtype,
       [&]<class N>(std::span<const N> line, std::span<Word> results) {
         std::vector<size_t> order(line.size());
         std::iota(order.begin(), order.end(), size_t(0));
         std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
           return descending ? precedes(line[b], line[a]) : precedes(line[a], line[b]);
         });
         for (size_t k = 0; k < order.size(); k++) results[k] = word_of(Signed(int64_t(order[k])));
       });
}

}  // namespace fornax::reference
