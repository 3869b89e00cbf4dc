// Tensor::text(): what PyTorch prints.  Long tensors are cut to their edges before anything is
// read.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tensor/compose.h"

namespace fornax {
namespace {

constexpr int64_t kThreshold = 1000;  // more elements are summarised
constexpr int64_t kEdge = 3;          // elements shown at either end of an axis then
constexpr int64_t kLineWidth = 80;
constexpr int kDigits = 4;

// How all numbers of a tensor are written: alike, so that they align.
struct Style {
  bool whole = true;  // no float with a fraction: "1."
  bool scientific = false;
  size_t width = 1;
};

std::string text_of(double value, const Style& style) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (style.scientific) return fmt::format("{:.{}e}", value, kDigits);
  return style.whole ? fmt::format("{:.0f}.", value) : fmt::format("{:.{}f}", value, kDigits);
}

// Scientific where the magnitudes lie far apart or far from 1.
Style style_of(const std::vector<double>& values) {
  Style style;
  double smallest = HUGE_VAL, largest = 0;
  const auto counts = [](double value) { return std::isfinite(value) && value != 0; };
  for (double value : values) {
    if (!counts(value)) continue;
    smallest = std::min(smallest, std::abs(value));
    largest = std::max(largest, std::abs(value));
    style.whole &= value == std::ceil(value);
  }
  if (largest == 0) return style;
  style.scientific =
      largest / smallest > 1000 || largest > 1e8 || (!style.whole && smallest < 1e-4);
  for (double value : values) {
    if (counts(value)) style.width = std::max(style.width, text_of(value, style).size());
  }
  return style;
}

std::vector<std::string> texts_of(const Tensor& x) {
  std::vector<std::string> texts;
  if (is_floating(x.dtype())) {
    const std::vector<double> values = x.to_vector<double>();
    const Style style = style_of(values);
    for (double value : values)
      texts.push_back(fmt::format("{:>{}}", text_of(value, style), style.width));
    return texts;
  }
  if (is_boolean(x.dtype())) {
    for (uint8_t value : x.to_vector<uint8_t>()) texts.push_back(value ? "True" : "False");
  } else if (x.dtype() == DType::u64) {
    for (uint64_t value : x.to_vector<uint64_t>()) texts.push_back(fmt::format("{}", value));
  } else {
    for (int64_t value : x.to_vector<int64_t>()) texts.push_back(fmt::format("{}", value));
  }
  size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  return texts;
}

// x without the middle of its long axes.
Tensor edges_of(Tensor x) {
  for (int axis = 0; axis < x.rank(); axis++) {
    const int64_t size = x.shape()[axis];
    if (size <= 2 * kEdge) continue;
    const Tensor head = sliced(x, axis, 0, kEdge), tail = sliced(x, axis, size - kEdge, kEdge);
    x = record(Op::cat, {&head, &tail}, {axis});
  }
  return x;
}

struct Writer {
  const Shape& shape;  // of the whole tensor
  const Shape& shown;  // of what is written
  bool summarised;
  const std::vector<std::string>& texts;
  size_t next = 0;  // the next text to be written

  bool is_cut(int axis) const { return summarised && shape[axis] != shown[axis]; }

  std::string row(int64_t indent) {
    std::vector<std::string> items;
    const int axis = shape.rank() - 1;
    for (int64_t i = 0; i < shown[axis]; i++) {
      if (i == kEdge && is_cut(axis)) items.push_back(" ...");
      items.push_back(texts[next++]);
    }
    const int64_t width = items.empty() ? 1 : int64_t(items[0].size()) + 2;
    const auto per_line = size_t(std::max<int64_t>(1, (kLineWidth - indent) / width));
    std::string text = "[";
    for (size_t i = 0; i < items.size(); i++) {
      if (i) text += i % per_line ? ", " : ",\n" + std::string(size_t(indent) + 1, ' ');
      text += items[i];
    }
    return text + "]";
  }

  std::string block(int axis, int64_t indent) {
    if (axis == shape.rank() - 1) return row(indent);
    const std::string between = "," + std::string(size_t(shape.rank() - 1 - axis), '\n') +
                                std::string(size_t(indent) + 1, ' ');
    std::string text = "[";
    for (int64_t i = 0; i < shown[axis]; i++) {
      if (i) text += between;
      if (i == kEdge && is_cut(axis)) text += "..." + between;
      text += block(axis + 1, indent + 1);
    }
    return text + "]";
  }
};

// What tells this tensor from a default one of the same values.
std::vector<std::string> notes_on(const Tensor& x) {
  std::vector<std::string> notes;
  const DType dtype = x.dtype();
  const bool empty = x.element_count() == 0;
  if (empty && x.rank() != 1) notes.push_back("size=" + fornax::text_of(x.shape()));
  const bool plain = dtype == DType::f32 || (!empty && (dtype == DType::i64 || is_boolean(dtype)));
  if (!plain) notes.push_back(fmt::format("dtype={}", name_of(dtype)));
  if (!(x.device() == Device())) notes.push_back(fmt::format("device={}", x.device().name()));
  return notes;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << x.text({}); }

std::string Tensor::text(Site site) const {
  Call call("text", site);
  Untracked untracked;
  constexpr std::string_view kOpening = "tensor(";
  std::string text(kOpening);
  if (element_count() == 0) {
    text += "[]";
  } else {
    const bool summarised = element_count() > kThreshold;
    const Tensor part = summarised ? edges_of(*this) : *this;
    const std::vector<std::string> texts = texts_of(part);
    Writer writer{shape(), part.shape(), summarised, texts};
    text += rank() == 0 ? texts[0] : writer.block(0, int64_t(kOpening.size()));
  }
  for (const std::string& note : notes_on(*this)) {
    const size_t line = text.size() - (text.rfind('\n') + 1);
    const bool fits = int64_t(line + note.size() + 3) <= kLineWidth;
    text += fits ? ", " : ",\n" + std::string(kOpening.size(), ' ');
    text += note;
  }
  return text + ")";
}

}  // namespace fornax
