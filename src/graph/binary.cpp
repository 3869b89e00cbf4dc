// The binary form of graphs.
//
//   "FNXG", version (1 byte), the names of the ops used, the names of the dtypes used, the number
//   of steps, the steps, the outputs
//
//   names: how many, then the length and the bytes of each
//   step: op and dtype (positions among the names), sizes, inputs (how far back each is),
//   attributes where the type does not say them, and for full the scalar: kind and 8 bytes,
//   little-endian
//   list: its length and its elements
//   number: seven bits a byte from the lowest on; signed ones have the sign in bit 0
//
// One graph has one encoding.  Reading trusts nothing: counts are checked against the bytes left,
// and what it returns has passed every type rule.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "graph/forms.h"

namespace fornax {
namespace {

constexpr std::string_view kMagic = "FNXG";
constexpr uint64_t kVersion = 1;

// Names in order of first use.
template <class T>
struct Names {
  std::vector<T> list;
  size_t position_of(T item) {
    const auto found = std::find(list.begin(), list.end(), item);
    if (found != list.end()) return size_t(found - list.begin());
    list.push_back(item);
    return list.size() - 1;
  }
};

class Writer {
 public:
  void byte(uint64_t value) { bytes.push_back(std::byte(value & 0xff)); }
  void number(uint64_t value) {
    for (; value >= 128; value >>= 7) byte(value | 128);
    byte(value);
  }
  void signed_number(int64_t value) {
    number((uint64_t(value) << 1) ^ (value < 0 ? ~uint64_t(0) : 0));
  }
  void fixed(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) byte(value >> shift);
  }
  void text(std::string_view text) {
    number(text.size());
    for (char c : text) byte(uint8_t(c));
  }
  void list(std::span<const int64_t> numbers) {
    number(numbers.size());
    for (int64_t value : numbers) signed_number(value);
  }

  std::vector<std::byte> bytes;
};

uint64_t bits_of(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::floating) return std::bit_cast<uint64_t>(scalar.as_double());
  return scalar.as_uint64();
}

void write_step(Writer& out, const Step& step, size_t number, size_t op, size_t dtype) {
  out.number(op);
  out.number(dtype);
  out.list(step.type.shape);
  out.number(step.inputs.size());
  for (int input : step.inputs) out.number(number - size_t(input));
  if (Attributes known; !attributes_from_type(step.op, step.type, known)) {
    out.list(step.attributes);
  }
  if (step.op == Op::full) {
    out.byte(uint64_t(step.scalar.kind()));
    out.fixed(bits_of(step.scalar));
  }
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[noreturn]] void wrong(std::string_view what) const {
    fail(ErrorKind::io, "decode: byte {} of {}: {}", at_, bytes_.size(), what);
  }
  size_t left() const { return bytes_.size() - at_; }
  uint8_t byte() {
    if (at_ == bytes_.size()) wrong("the graph is cut off");
    return uint8_t(bytes_[at_++]);
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t part = byte();
      value |= uint64_t(part & 127) << shift;
      if (part < 128) {
        if (shift == 63 && part > 1) break;
        return value;
      }
    }
    wrong("a number leaves 64 bits");
  }
  int64_t signed_number() {
    const uint64_t value = number();
    return int64_t((value >> 1) ^ (value & 1 ? ~uint64_t(0) : 0));
  }
  uint64_t fixed() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8) value |= uint64_t(byte()) << shift;
    return value;
  }
  // A length: every element takes at least one of the bytes left.
  size_t count(const char* what) {
    const uint64_t value = number();
    if (value > left()) {
      wrong(fmt::format("{} {} do not fit the {} bytes left", value, what, left()));
    }
    return size_t(value);
  }
  size_t position(size_t limit, const char* what) {
    const uint64_t value = number();
    if (value >= limit) wrong(fmt::format("{} {} is not one of {}", what, value, limit));
    return size_t(value);
  }
  std::string text() {
    std::string text(count("characters"), '\0');
    for (char& c : text) c = char(byte());
    return text;
  }
  Attributes list(const char* what) {
    Attributes numbers(count(what));
    for (int64_t& value : numbers) value = signed_number();
    return numbers;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

template <class T>
std::vector<T> read_names(Reader& in, const char* what, bool (*parse)(std::string_view, T&)) {
  std::vector<T> list(in.count(what));
  for (T& item : list) {
    const std::string name = in.text();
    if (!parse(name, item)) {
      in.wrong(fmt::format("\"{}\" is not one of the {} here; it may come from a newer version",
                           printable(name), what));
    }
  }
  return list;
}

Scalar read_scalar(Reader& in) {
  const uint8_t kind = in.byte();
  const uint64_t bits = in.fixed();
  switch (Scalar::Kind(kind)) {
    case Scalar::Kind::boolean:
      return bits != 0;
    case Scalar::Kind::integer:
      return int64_t(bits);
    case Scalar::Kind::unsigned_integer:
      return bits;
    case Scalar::Kind::floating:
      return std::bit_cast<double>(bits);
  }
  in.wrong(fmt::format("no kind {} of number", kind));
}

void read_step(Reader& in, Graph& graph, const std::vector<Op>& ops,
               const std::vector<DType>& dtypes) {
  const Op op = ops[in.position(ops.size(), "op")];
  Type type;
  type.dtype = dtypes[in.position(dtypes.size(), "dtype")];
  const Attributes sizes = in.list("sizes");
  if (sizes.size() > size_t(kMaxRank)) in.wrong(fmt::format("{} axes are too many", sizes.size()));
  type.shape = Shape(std::span(sizes));
  std::vector<int> inputs(in.count("inputs"));
  for (int& input : inputs) {
    const uint64_t back = in.number();
    if (back == 0 || back > graph.steps.size()) {
      in.wrong(fmt::format("step %{} reads {} steps back", graph.steps.size(), back));
    }
    input = int(graph.steps.size() - size_t(back));
  }
  Attributes attributes;
  if (!attributes_from_type(op, type, attributes)) attributes = in.list("attributes");
  const Scalar scalar = op == Op::full ? read_scalar(in) : Scalar();
  std::string problem;
  try {
    graph.add(op, std::move(inputs), std::move(attributes), scalar);
  } catch (const Error& error) {
    problem = reason_of(error);
  }
  if (!problem.empty()) in.wrong(problem);
  if (const Type& inferred = graph.steps.back().type; !(inferred == type)) {
    in.wrong(fmt::format("step %{} is {}, its rule gives {}", graph.steps.size() - 1, text_of(type),
                         text_of(inferred)));
  }
}

}  // namespace

std::vector<std::byte> encode(const Graph& graph) {
  Names<Op> ops;
  Names<DType> dtypes;
  Writer steps;
  for (size_t number = 0; number < graph.steps.size(); number++) {
    const Step& step = graph.steps[number];
    write_step(steps, step, number, ops.position_of(step.op), dtypes.position_of(step.type.dtype));
  }
  Writer out;
  for (char c : kMagic) out.byte(uint8_t(c));
  out.byte(kVersion);
  out.number(ops.list.size());
  for (Op op : ops.list) out.text(info(op).name);
  out.number(dtypes.list.size());
  for (DType dtype : dtypes.list) out.text(name_of(dtype));
  out.number(graph.steps.size());
  out.bytes.insert(out.bytes.end(), steps.bytes.begin(), steps.bytes.end());
  out.number(graph.outputs.size());
  for (int output : graph.outputs) out.number(uint64_t(output));
  return std::move(out.bytes);
}

Graph decode(std::span<const std::byte> bytes) {
  Reader in(bytes);
  for (char c : kMagic) {
    if (in.left() == 0 || in.byte() != uint8_t(c)) in.wrong("this is not a graph");
  }
  if (const uint8_t version = in.byte(); version != kVersion) {
    in.wrong(fmt::format("version {} of the form, this library reads {}", version, kVersion));
  }
  const std::vector<Op> ops = read_names<Op>(in, "ops", parse_op);
  const std::vector<DType> dtypes = read_names<DType>(in, "dtypes", parse_dtype);
  Graph graph;
  for (size_t steps = in.count("steps"); steps > 0; steps--) read_step(in, graph, ops, dtypes);
  graph.outputs.resize(in.count("outputs"));
  for (int& output : graph.outputs) output = int(in.position(graph.steps.size(), "output"));
  if (in.left() > 0) in.wrong("bytes follow the graph");
  // Catches what the reading lets pass: names unused or out of order, numbers longer than need be.
  if (!std::ranges::equal(encode(graph), bytes)) {
    in.wrong("the bytes are not those that this graph is written as");
  }
  return graph;
}

}  // namespace fornax
