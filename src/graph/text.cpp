// The text form of graphs: one line per step, `return` last.  Blank lines and lines that start with
// # may stand between.  Reading trusts nothing: what it returns has passed every type rule.
#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "base/join.h"
#include "graph/forms.h"

namespace fornax {
namespace {

constexpr uint64_t kNan = 0x7ff8000000000000u;
constexpr uint64_t kSign = uint64_t(1) << 63;

std::string text_of_double(double value) {
  if (value != value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    if (bits == kNan) return "nan";
    return bits == (kNan | kSign) ? "-nan" : fmt::format("nan({:x})", bits);
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::string text(digits, end);
  return text.find_first_of(".enf") == std::string::npos ? text + ".0" : text;  // "inf" stays
}

template <class T>
bool parse_all(std::string_view text, T& value, auto... base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// One line of text, read from the left.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(text), number_(number) { skip(); }

  [[noreturn]] void wrong(const std::string& what) const {
    fail(ErrorKind::value, "parse_graph: line {}: {}", number_, what);
  }
  [[noreturn]] void wanted(const char* what) const {
    if (rest_.empty()) wrong(fmt::format("ends where {} should stand", what));
    wrong(fmt::format("\"{}\" stands where {} should", printable(rest_), what));
  }

  bool at_end() const { return rest_.empty(); }
  bool starts_with(char c) const { return !rest_.empty() && rest_[0] == c; }
  bool take(char c) {
    if (!starts_with(c)) return false;
    advance(1);
    return true;
  }
  void expect(char c, const char* what) {
    if (!take(c)) wanted(what);
  }

  // The characters up to a blank or punctuation of the form.
  std::string_view word() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t\r%{}[]:,=#"));
    advance(word.size());
    return word;
  }

  int64_t integer(const char* what) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) wrong("a number leaves 64 bits");
    if (error != std::errc()) wanted(what);
    advance(size_t(end - rest_.data()));
    return value;
  }

  // "%7" with 7 below `count`.
  int step(size_t count) {
    expect('%', "a step like %0");
    const int64_t number = integer("the number of a step");
    if (number < 0 || uint64_t(number) >= count) {
      wrong(fmt::format("%{} is not an earlier step", number));
    }
    return int(number);
  }

  // "1,2" up to `close`.
  Attributes numbers(char close, const char* close_text) {
    Attributes list;
    if (take(close)) return list;
    do {
      list.push_back(integer("a number"));
    } while (take(','));
    expect(close, close_text);
    return list;
  }

 private:
  void advance(size_t count) {
    rest_.remove_prefix(count);
    skip();
  }
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }

  std::string_view rest_;
  int number_;
};

Type parse_type(Line& line) {
  Type type;
  const std::string_view name = line.word();
  if (!parse_dtype(name, type.dtype)) line.wrong(fmt::format("no dtype \"{}\"", printable(name)));
  line.expect('[', "[ and the sizes");
  const Attributes sizes = line.numbers(']', "]");
  if (sizes.size() > size_t(kMaxRank)) {
    line.wrong(fmt::format("{} axes, at most {} are possible", sizes.size(), kMaxRank));
  }
  type.shape = Shape(std::span(sizes));
  return type;
}

// What follows the first %.
void parse_step(Line& line, Graph& graph) {
  const int64_t number = line.integer("the number of the step");
  if (number < 0 || uint64_t(number) != graph.steps.size()) {
    line.wrong(fmt::format("step %{} should be %{}", number, graph.steps.size()));
  }
  line.expect('=', "=");
  const std::string_view name = line.word();
  Op op;
  if (!parse_op(name, op)) line.wrong(fmt::format("no op \"{}\"", printable(name)));
  Scalar scalar;
  if (op == Op::full) {
    const std::string_view text = line.word();
    if (!parse_scalar(text, scalar)) {
      line.wrong(fmt::format("\"{}\" is not a number", printable(text)));
    }
  }
  std::vector<int> inputs;
  while (line.starts_with('%')) inputs.push_back(line.step(graph.steps.size()));
  const bool braces = line.take('{');
  Attributes attributes;
  if (braces) attributes = line.numbers('}', "}");
  line.expect(':', ": and the type");
  const Type type = parse_type(line);
  if (!line.at_end()) line.wanted("the end of the line");
  if (Attributes known; attributes_from_type(op, type, known)) {
    if (braces) line.wrong(fmt::format("{} takes its attributes from its type", name));
    attributes = known;
  }
  std::string problem;
  try {
    graph.add(op, std::move(inputs), std::move(attributes), scalar);
  } catch (const Error& error) {
    problem = reason_of(error);
  }
  if (!problem.empty()) line.wrong(problem);
  if (const Type& inferred = graph.steps.back().type; !(inferred == type)) {
    line.wrong(
        fmt::format("{} gives {}, the line says {}", name, text_of(inferred), text_of(type)));
  }
}

}  // namespace

std::string text_of_scalar(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::boolean:
      return scalar.as_int64() ? "true" : "false";
    case Scalar::Kind::integer:
      return std::to_string(scalar.as_int64());
    case Scalar::Kind::unsigned_integer:
      return std::to_string(scalar.as_uint64()) + "u";
    case Scalar::Kind::floating:
      break;
  }
  return text_of_double(scalar.as_double());
}

bool parse_scalar(std::string_view text, Scalar& out) {
  if (text == "true" || text == "false") {
    out = text == "true";
    return true;
  }
  if (text == "nan" || text == "-nan") {
    out = std::bit_cast<double>(text == "nan" ? kNan : kNan | kSign);
    return true;
  }
  if (text.starts_with("nan(") && text.ends_with(')')) {
    uint64_t bits;
    if (!parse_all(text.substr(4, text.size() - 5), bits, 16)) return false;
    const auto value = std::bit_cast<double>(bits);
    out = value;
    return value != value;
  }
  if (text.ends_with('u')) {
    uint64_t value;
    if (!parse_all(text.substr(0, text.size() - 1), value)) return false;
    out = value;
    return true;
  }
  if (text.find_first_of(".enf") == std::string_view::npos) {
    int64_t value;
    if (!parse_all(text, value)) return false;
    out = value;
    return true;
  }
  double value;
  if (!parse_all(text, value) || value != value) return false;
  out = value;
  return true;
}

std::string text_of(const Graph& graph) {
  std::string text;
  for (size_t number = 0; number < graph.steps.size(); number++) {
    const Step& step = graph.steps[number];
    text += fmt::format("%{} = {}", number, info(step.op).name);
    if (step.op == Op::full) text += ' ' + text_of_scalar(step.scalar);
    for (int input : step.inputs) text += fmt::format(" %{}", input);
    Attributes known;
    if (!step.attributes.empty() && !attributes_from_type(step.op, step.type, known)) {
      text += fmt::format(" {{{}}}", join(step.attributes, ","));
    }
    text += " : " + text_of(step.type) + '\n';
  }
  text += "return";
  for (int output : graph.outputs) text += fmt::format(" %{}", output);
  return text + '\n';
}

Graph parse_graph(std::string_view text) {
  Graph graph;
  bool returned = false;
  int number = 0;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, length), ++number);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.at_end() || line.starts_with('#')) continue;
    if (returned) line.wrong("stands after return");
    if (line.take('%')) {
      parse_step(line, graph);
      continue;
    }
    if (line.word() != "return") line.wrong("starts with neither a step like %0 nor return");
    while (!line.at_end()) graph.outputs.push_back(line.step(graph.steps.size()));
    returned = true;
  }
  if (!returned) {
    fail(ErrorKind::value, "parse_graph: line {}: the text ends without return", number);
  }
  return graph;
}

}  // namespace fornax
