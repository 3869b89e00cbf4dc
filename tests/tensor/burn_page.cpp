// docs/burn.md: burn's functions, ours, and the primitives that ours record.  The test compares the
// page with what is recorded now; with FORNAX_WRITE_PAGES=1 it writes it (./do docs).
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <unordered_set>

#include "graph/node.h"
#include "tensor/record.h"
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

constexpr const char* kPage = "docs/burn.md";

// Operands, none of them computed yet: a view of what is computed would not be recorded.
struct Operands {
  Device device{"reference"};
  Tensor x = number({4, 6}), y = number({4, 6}), row = number({6}), batch = number({2, 4, 6});
  Tensor picture = number({1, 2, 8, 8}), kernel = number({2, 2, 3, 3});
  Tensor line = number({1, 2, 8}), line_kernel = number({2, 2, 3});
  Tensor mask = number({4, 6}) > 0.5;
  Tensor ids = arange(4, {.device = device}) * 1, index = arange(24, {.device = device}) * 1;

  Operands() { index = (index % 4).reshape({4, 6}); }
  Tensor number(const Shape& shape) const {
    return arange(double(shape.element_count()), {.device = device}).reshape(shape) * 0.5;
  }
  std::vector<Tensor> all() const {
    return {x, y, row, batch, picture, kernel, line, line_kernel, mask, ids, index};
  }
};

// What a row's expressions give.
struct Results {
  std::vector<Tensor> tensors;
  Results(Tensor tensor) : tensors{std::move(tensor)} {}                                 // NOLINT
  Results(std::vector<Tensor> list) : tensors(std::move(list)) {}                        // NOLINT
  Results(std::pair<Tensor, Tensor> two) : tensors{std::move(two.first), two.second} {}  // NOLINT
};

// x with its first `axes` axes' inner part replaced by the same part of `value`.
Tensor assigned(Tensor x, int axes, const Operand& value) {
  const auto put = [&](Indexed place, const Tensor& part) {
    value.is_number() ? void(place = value.number()) : void(place = part);
  };
  const Tensor other = value.is_number() ? x : value.tensor();
  if (axes == 0) put(x.at(slice(1, 3)), other(slice(1, 3)));
  if (axes == 1) put(x.at(slice(1, 3), slice(1, 3)), other(slice(1, 3), slice(1, 3)));
  return x;
}
Tensor assigned_at(Tensor x, const Tensor& positions) {
  x.at(positions) = 7;
  return x;
}

class Page {
 public:
  void section(const char* title) {
    text_ += fmt::format("\n## {}\n| burn | Fornax | made of |\n|---|---|---|\n", title);
  }
  void row(const std::string& burn, const std::string& ours, const Operands& operands,
           std::initializer_list<Results> results) {
    seen_.clear();
    ops_.clear();
    for (const Tensor& operand : operands.all()) seen_.insert(operand.node());
    for (const Results& list : results) {
      for (const Tensor& tensor : list.tensors) {
        const Node& node = *tensor.node();
        node.state.load() == NodeState::constant ? note(node.op) : walk(node);
      }
    }
    std::string made = ops_.empty() ? "-" : "";
    for (const Op op : ops_) made += fmt::format("{}`{}`", made.empty() ? "" : " ", info(op).name);
    text_ += fmt::format("| {} | {} | {} |\n", escaped(burn), escaped(ours), made);
  }
  const std::string& text() const { return text_; }

 private:
  // Operands first, each op once; numbers are not listed.
  void walk(const Node& node) {
    if (!seen_.insert(&node).second) return;
    for (const Ref<Node>& input : node.inputs) walk(*input);
    if (node.state.load() != NodeState::constant) note(node.op);
  }
  void note(Op op) {
    if (std::find(ops_.begin(), ops_.end(), op) == ops_.end()) ops_.push_back(op);
  }
  static std::string escaped(const std::string& cell) {
    std::string text;
    for (const char c : cell) text += c == '|' ? "\\|" : std::string(1, c);
    return text;
  }

  std::unordered_set<const Node*> seen_;
  std::vector<Op> ops_;
  std::string text_ =
      "# Burn's tensor functions, and what they are here\n"
      "Generated from docs/burn.def by `./do docs`.\n\n"
      "For those who come from burn 0.22: the function, how it is written here, and the "
      "primitives\n"
      "of [ops.md](ops.md) that are recorded for it, numbers left out. \"-\" where nothing is\n"
      "recorded, or where we have no such function.\n";
};

std::string page() {
  Page page;
#define SECTION(title) page.section(title);
#define ROW(burn, ours, ...)                \
  {                                         \
    const Operands t;                       \
    page.row(burn, ours, t, {__VA_ARGS__}); \
  }
#include "docs/burn.def"
  return page.text();
}

TEST(BurnPage, says_what_is_recorded) {
  const std::string wanted = page();
  if (std::getenv("FORNAX_WRITE_PAGES")) std::ofstream(kPage) << wanted;
  std::stringstream found;
  found << std::ifstream(kPage).rdbuf();
  EXPECT_EQ(found.str(), wanted) << "run ./do docs";
}

}  // namespace
}  // namespace fornax
