// Kernels as text.  Reading is in parse.cpp.
//
//   kernel "double" simt threads 128 {
//     param %0 x : global f32 read align 16
//     param %1 n : i32 most 1000
//     %2 = thread : i32 @ "double.cpp":12
//     %3 = less %2 %1 : bool
//     if %3 {
//       %4 = load %0 %2 : f32
//       store %0 %2 %4
//     } else {
//     }
//   }
//
// An instruction is: results =, fast, code, a constant's number, operands, {attributes}, "text",
// regions, : the results' types, @ site.  A region is: (parameters : types), instructions, yield.
#include <fmt/core.h>

#include <algorithm>

#include "base/join.h"
#include "graph/evaluate.h"
#include "graph/forms.h"
#include "kernel/rules.h"

namespace fornax::kernel {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      (result += '\\') += c;
    } else if (c < ' ' || c > '~') {
      result += fmt::format("\\x{:02x}", uint8_t(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

bool is_plain(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string whole() {
    text_ = fmt::format("kernel {} {} threads {}", quoted(kernel_.name),
                        kernel_.dialect == Dialect::tile ? "tile" : "simt", kernel_.threads);
    if (kernel_.resident > 1) text_ += fmt::format(" resident {}", kernel_.resident);
    for (const Distribution& d : kernel_.distributions) {
      text_ += fmt::format(" {} {{{},{},{}", d.fragments ? "fragments" : "share", d.rows, d.columns,
                           d.vector);
      text_ += d.row_vector == 1 ? "}" : fmt::format(",{}}}", d.row_vector);
    }
    text_ += " {\n";
    for (size_t i = 0; i < kernel_.parameters.size(); i++) parameter(i);
    instructions(kernel_.body, 1);
    return text_ + "}\n";
  }

  std::string line(const Instruction& x) {
    head(x);
    for (size_t i = 0; i < x.regions.size(); i++) text_ += " {...}";
    tail(x);
    return text_;
  }

 private:
  void parameter(size_t number) {
    const Parameter& p = kernel_.parameters[number];
    const bool buffer = p.type.memory != Memory::none;
    text_ += fmt::format("  param %{} {} : {}", number, is_plain(p.name) ? p.name : quoted(p.name),
                         text_of(p.type));
    if (buffer) text_ += p.written ? " write" : " read";
    if (p.aliased) text_ += " aliased";
    if (p.divisor != 1) text_ += fmt::format(" {} {}", buffer ? "align" : "multiple", p.divisor);
    if (p.most != INT32_MAX) text_ += fmt::format(" most {}", p.most);
    text_ += '\n';
  }

  void instructions(const Region& region, size_t depth) {
    for (const InstructionId id : region.instructions) {
      const Instruction& x = kernel_.at(id);
      text_.append(2 * depth, ' ');
      head(x);
      for (size_t i = 0; i < x.regions.size(); i++) inner(x, i, depth);
      tail(x);
      text_ += '\n';
    }
  }
  void inner(const Instruction& x, size_t number, size_t depth) {
    const Region& region = x.regions[number];
    if (number > 0) text_ += x.code == Code::if_ ? " else" : " then";
    if (!region.parameters.empty()) {
      text_ += " (";
      for (size_t i = 0; i < region.parameters.size(); i++) {
        const ValueId value = region.parameters[i];
        text_ += fmt::format("{}%{} : {}", i ? ", " : "", value, text_of(kernel_.type(value)));
      }
      text_ += ')';
    }
    text_ += " {\n";
    instructions(region, depth + 1);
    if (!region.yields.empty()) {
      text_.append(2 * depth + 2, ' ');
      text_ += "yield";
      values(region.yields);
      text_ += '\n';
    }
    text_.append(2 * depth, ' ');
    text_ += '}';
  }

  void values(const std::vector<ValueId>& list) {
    for (const ValueId value : list) text_ += fmt::format(" %{}", value);
  }
  void head(const Instruction& x) {
    for (const ValueId result : x.results) text_ += fmt::format("%{} ", result);
    if (!x.results.empty()) text_ += "= ";
    if (x.fast) text_ += "fast ";
    text_ += info(x.code).name;
    if (x.code == Code::constant && x.attributes.size() == 1 && x.results.size() == 1) {
      const DType dtype = kernel_.type(x.results[0]).dtype;
      text_ += ' ' + text_of_scalar(scalar_of(dtype, {uint64_t(x.attributes[0])}));
    } else if (!x.attributes.empty()) {
      text_ += fmt::format(" {{{}}}", join(x.attributes, ","));
    }
    values(x.operands);
    if (!x.text.empty()) text_ += ' ' + quoted(x.text);
  }
  void tail(const Instruction& x) {
    for (size_t i = 0; i < x.results.size(); i++) {
      text_ += (i == 0 ? " : " : ", ") + text_of(kernel_.type(x.results[i]));
    }
    if (x.site.line > 0) text_ += fmt::format(" @ {}:{}", quoted(x.site.file), x.site.line);
  }

  const Kernel& kernel_;
  std::string text_;
};

}  // namespace

std::string line_of(const Kernel& kernel, InstructionId id) {
  return Printer(kernel).line(kernel.at(id));
}
std::string text_of(const Kernel& kernel) { return Printer(kernel).whole(); }

}  // namespace fornax::kernel
