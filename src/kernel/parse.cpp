// Reading kernels from text (text.cpp shows the form).  Trusts nothing: what it returns has passed
// verify.
#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <mutex>
#include <set>
#include <system_error>
#include <unordered_map>

#include "base/error.h"
#include "graph/evaluate.h"
#include "graph/forms.h"
#include "kernel/rules.h"

namespace fornax::kernel {
namespace {

constexpr int kMostDepth = 64;
constexpr size_t kMostFiles = 1000;

// Sites point at names that live forever; beyond so many, kernels read from text lose theirs.
const char* file_name(std::string name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  if (names.size() < kMostFiles) return names.insert(std::move(name)).first->c_str();
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->c_str();
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) { skip(); }

  Kernel whole() {
    header();
    while (take_word("param")) parameter();
    instructions(kernel_.body, 1);
    if (!rest_.empty()) wanted("the end");
    InstructionId at = -1;
    const std::string problem = find_problem(kernel_, at);
    if (!problem.empty()) {
      last_ = at < 0 ? 1 : lines_[size_t(at)];
      wrong(problem);
    }
    return std::move(kernel_);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail(ErrorKind::value, "parse_kernel: line {}: {}", last_, what);
  }
  [[noreturn]] void wanted(const char* what) {
    last_ = line_;
    if (rest_.empty()) wrong(fmt::format("the text ends where {} should stand", what));
    wrong(fmt::format("\"{}\" stands where {} should", printable(rest_.substr(0, rest_.find('\n'))),
                      what));
  }

  void advance(size_t count) {
    last_ = line_;
    rest_.remove_prefix(count);
    skip();
  }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) {
      line_ += rest_[0] == '\n';
      rest_.remove_prefix(1);
    }
  }
  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    advance(1);
    return true;
  }
  void expect(char c, const char* what) {
    if (!take(c)) wanted(what);
  }
  bool starts(std::string_view what) const { return rest_.starts_with(what); }

  // Letters, digits and underscores; what is not taken stays.
  std::string_view peek() const {
    size_t length = 0;
    while (length < rest_.size() &&
           (std::isalnum(uint8_t(rest_[length])) || rest_[length] == '_')) {
      length++;
    }
    return rest_.substr(0, length);
  }
  std::string_view word(const char* what) {
    const std::string_view found = peek();
    if (found.empty()) wanted(what);
    advance(found.size());
    return found;
  }
  bool take_word(std::string_view wanted_word) {
    if (peek() != wanted_word) return false;
    advance(wanted_word.size());
    return true;
  }
  template <class T>
  T integer(const char* what) {
    T value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) wrong(fmt::format("{} is too large", what));
    if (error != std::errc()) wanted(what);
    advance(size_t(end - rest_.data()));
    return value;
  }
  std::string text() {
    if (!starts("\"")) wanted("a text in quotes");
    std::string result;
    size_t i = 1;
    for (; i < rest_.size() && rest_[i] != '"'; i++) {
      if (rest_[i] == '\n') wrong("a text does not end on its line");
      if (rest_[i] != '\\') {
        result += rest_[i];
        continue;
      }
      const std::string_view escape = rest_.substr(++i, 3);
      if (escape.starts_with('x')) {
        uint8_t byte = 0;
        const char* const end = escape.data() + escape.size();
        if (std::from_chars(escape.data() + 1, end, byte, 16).ptr != escape.data() + 3) {
          wrong("\\x has two digits");
        }
        result += char(byte);
        i += 2;
      } else if (escape.starts_with('"') || escape.starts_with('\\')) {
        result += escape[0];
      } else {
        wrong("a text has \\ before neither \\, \" nor x");
      }
    }
    if (i >= rest_.size()) wrong("a text does not end");
    advance(i + 1);
    return result;
  }

  void header() {
    if (!take_word("kernel")) wanted("kernel");
    kernel_.name = text();
    const std::string_view dialect = word("tile or simt");
    if (dialect != "tile" && dialect != "simt") wrong("the dialect is neither tile nor simt");
    kernel_.dialect = dialect == "tile" ? Dialect::tile : Dialect::simt;
    if (!take_word("threads")) wanted("threads");
    kernel_.threads = integer<int>("the number of threads");
    if (take_word("resident")) kernel_.resident = integer<int>("the number of blocks");
    while (!starts("{")) {
      Distribution d;
      const std::string_view kind = word("share, fragments or {");
      if (kind != "share" && kind != "fragments") wrong("neither share nor fragments");
      d.fragments = kind == "fragments";
      expect('{', "{ and three or four numbers");
      d.rows = integer<int>("a number of rows");
      expect(',', ",");
      d.columns = integer<int>("a number of columns");
      expect(',', ",");
      d.vector = integer<int>("a number of elements");
      if (take(',')) d.row_vector = integer<int>("a number of rows");
      expect('}', "}");
      kernel_.distributions.push_back(d);
    }
    expect('{', "{");
  }

  void parameter() {
    const int64_t number = value_number();
    Parameter p;
    p.name = starts("\"") ? text() : std::string(word("a name"));
    expect(':', ": and the type");
    p.type = type();
    if (p.type.memory != Memory::none) {
      p.written = take_word("write");
      if (!p.written && !take_word("read")) wanted("read or write");
    }
    p.aliased = take_word("aliased");
    if (take_word(p.type.memory == Memory::none ? "multiple" : "align")) {
      p.divisor = integer<int64_t>("a divisor");
    }
    if (take_word("most")) p.most = integer<int64_t>("the largest number");
    define(number, p.type, -1);
    kernel_.parameters.push_back(std::move(p));
  }

  ValueType type() {
    ValueType type;
    std::string_view name = word("a type");
    for (const auto& [memory, text] :
         {std::pair(Memory::global, "global"), {Memory::shared, "shared"}, {Memory::map, "map"}}) {
      if (name != text) continue;
      type.memory = memory;
      name = word("a dtype");
      break;
    }
    if (const size_t x = name.rfind('x'); x != std::string_view::npos) {
      const auto [end, error] =
          std::from_chars(name.data() + x + 1, name.data() + name.size(), type.lanes);
      if (error != std::errc() || end != name.data() + name.size() || type.lanes < 2) {
        wrong(fmt::format("\"{}\" is no type", printable(name)));
      }
      name = name.substr(0, x);
    }
    if (!parse_dtype(name, type.dtype)) wrong(fmt::format("no dtype \"{}\"", printable(name)));
    if (take('[')) {
      type.rows = integer<int32_t>("a number of rows");
      expect(',', ",");
      type.columns = integer<int32_t>("a number of columns");
      expect(']', "]");
    }
    // What follows a blank is a site.
    if (starts("@") && rest_.substr(0, 2) != "@ ") {
      advance(1);
      type.layout = integer<uint8_t>("the number of a distribution");
    }
    return type;
  }

  int64_t value_number() {
    expect('%', "a value like %0");
    return integer<int64_t>("the number of a value");
  }
  ValueId define(int64_t number, const ValueType& type, InstructionId by) {
    const auto id = ValueId(kernel_.values.size());
    if (!values_.emplace(number, id).second) wrong(fmt::format("%{} is defined twice", number));
    kernel_.values.push_back({type, by});
    return id;
  }
  ValueId value() {
    const int64_t number = value_number();
    const auto found = values_.find(number);
    if (found == values_.end()) wrong(fmt::format("%{} is not defined above", number));
    return found->second;
  }

  // Up to the closing brace, and over it.
  void instructions(Region& region, int depth) {
    if (depth > kMostDepth) wrong(fmt::format("regions nest deeper than {}", kMostDepth));
    while (!take('}')) {
      if (take_word("yield")) {
        if (depth == 1) wrong("the body yields values");
        while (starts("%")) region.yields.push_back(value());
        expect('}', "}");
        return;
      }
      region.instructions.push_back(instruction(depth));
    }
  }

  InstructionId instruction(int depth) {
    const auto id = InstructionId(kernel_.instructions.size());
    lines_.push_back(line_);
    // A reference: elements of a deque stay where they are.
    Instruction& x = kernel_.instructions.emplace_back();
    std::vector<int64_t> results;
    while (starts("%")) results.push_back(value_number());
    if (!results.empty()) expect('=', "=");
    x.fast = take_word("fast");
    const std::string_view name = word("an instruction");
    if (!parse_code(name, x.code)) wrong(fmt::format("no instruction \"{}\"", printable(name)));
    std::string_view number;
    if (x.code == Code::constant && !starts("{")) {
      number = rest_.substr(0, rest_.find_first_of(" \n"));
      advance(number.size());
    }
    if (take('{')) attributes(x);
    // On the same line: what begins the next one are results.
    while (last_ == line_ && starts("%")) x.operands.push_back(value());
    if (starts("\"")) x.text = text();
    while (starts("(") || starts("{") || take_word("else") || take_word("then")) {
      x.regions.emplace_back();
      if (take('(')) parameters(x.regions.back());
      expect('{', "{ and the instructions of a region");
      instructions(x.regions.back(), depth + 1);
    }
    for (size_t i = 0; i < results.size(); i++) {
      i == 0 ? expect(':', ": and the types of the results") : expect(',', ", and the next type");
      x.results.push_back(define(results[i], type(), id));
    }
    if (!number.empty()) constant(x, number);
    if (take('@')) site(x);
    return id;
  }

  void attributes(Instruction& x) {
    do {
      x.attributes.push_back(integer<int64_t>("an attribute"));
    } while (take(','));
    expect('}', "}");
  }
  void parameters(Region& region) {
    do {
      const int64_t number = value_number();
      expect(':', ": and the type");
      region.parameters.push_back(define(number, type(), -1));
    } while (take(','));
    expect(')', ")");
  }
  void constant(Instruction& x, std::string_view number) {
    Scalar scalar;
    if (x.results.size() != 1 || !parse_scalar(number, scalar)) {
      wrong(fmt::format("\"{}\" is not a number", printable(number)));
    }
    const DType dtype = kernel_.type(x.results[0]).dtype;
    const Word word = scalar.kind() == Scalar::Kind::floating ? word_of(scalar.as_double())
                                                              : Word{scalar.as_uint64()};
    if (!(scalar_of(dtype, word) == scalar)) {
      wrong(fmt::format("{} is not a number of {}", printable(number), name_of(dtype)));
    }
    x.attributes.push_back(int64_t(word.bits));
  }
  void site(Instruction& x) {
    std::string file = text();
    expect(':', ": and the line");
    const int line = integer<int>("the line of the source");
    if (line < 1 || file.size() > 255 || file.find('\0') != std::string::npos) {
      wrong("a site is a name of at most 255 letters and a line from 1 on");
    }
    if (const char* name = file_name(std::move(file))) x.site = Site(name, line);
  }

  Kernel kernel_;
  std::string_view rest_;
  int line_ = 1, last_ = 1;                      // of what is to come, of what was read last
  std::unordered_map<int64_t, ValueId> values_;  // by their numbers in the text
  std::vector<int> lines_;                       // by instruction
};

}  // namespace

Kernel parse_kernel(std::string_view text) { return Parser(text).whole(); }

}  // namespace fornax::kernel
