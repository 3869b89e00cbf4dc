// Reading, checking and writing headers of safetensors files.
#include "io/header.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/join.h"

namespace fornax::io {
namespace {

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName kNames[] = {
    {"BOOL", DType::bool_}, {"U8", DType::u8},          {"I8", DType::i8},
    {"U16", DType::u16},    {"I16", DType::i16},        {"F16", DType::f16},
    {"BF16", DType::bf16},  {"U32", DType::u32},        {"I32", DType::i32},
    {"F32", DType::f32},    {"U64", DType::u64},        {"I64", DType::i64},
    {"F64", DType::f64},    {"F8_E4M3", DType::f8e4m3}, {"F8_E5M2", DType::f8e5m2}};

// A reader of just this form of JSON, by recursive descent of fixed depth.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header parse() {
    if (text_.empty() || text_[0] != '{') refuse("must start with {");
    object([&](std::string name) {
      if (name == "__metadata__") {
        metadata();
      } else {
        entry(std::move(name));
      }
    });
    blanks();
    if (at_ != text_.size()) refuse("goes on after its object");
    std::stable_sort(header_.entries.begin(), header_.entries.end(),
                     [](const Entry& a, const Entry& b) {
                       return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                     });
    return std::move(header_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    const std::string of = tensor_.empty() ? "" : fmt::format(" of \"{}\"", tensor_);
    fail(ErrorKind::io, "safetensors: {}: the header{} {} (at byte {})", path_, of, what, at_);
  }

  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) at_++;
  }
  bool take(char wanted) {
    blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    at_++;
    return true;
  }
  void expect(char wanted, std::string_view what) {
    if (!take(wanted)) refuse(what);
  }

  template <class Member>
  void object(Member member) {
    expect('{', "needs an object here");
    if (take('}')) return;
    do {
      std::string name = string("has a name that is not a string");
      expect(':', "lacks a colon after a name");
      member(std::move(name));
    } while (take(','));
    expect('}', "has an object that does not end");
  }
  template <class Item>
  void array(std::string_view what, Item item) {
    expect('[', what);
    if (take(']')) return;
    do {
      item();
    } while (take(','));
    expect(']', "has an array that does not end");
  }

  void metadata() {
    if (has_metadata_) refuse("has __metadata__ twice");
    has_metadata_ = true;
    std::unordered_set<std::string> keys;
    object([&](std::string key) {
      if (!keys.insert(key).second) {
        refuse(fmt::format("has the metadata key \"{}\" twice", key));
      }
      header_.metadata.emplace_back(std::move(key),
                                    string("has metadata whose value is not a string"));
    });
  }

  void entry(std::string name) {
    tensor_ = name;
    if (!names_.insert(name).second) refuse("has this tensor twice");
    Entry entry{std::move(name), DType::f32, {}, 0, 0};
    bool has_dtype = false, has_shape = false, has_offsets = false;
    object([&](const std::string& field) {
      if (field == "dtype") {
        once(has_dtype, field);
        entry.dtype = dtype();
      } else if (field == "shape") {
        once(has_shape, field);
        entry.shape = shape();
      } else if (field == "data_offsets") {
        once(has_offsets, field);
        offsets(entry);
      } else {
        refuse(fmt::format("has the unknown field \"{}\"", field));
      }
    });
    if (!has_dtype) refuse("lacks the field dtype");
    if (!has_shape) refuse("lacks the field shape");
    if (!has_offsets) refuse("lacks the field data_offsets");
    check_size(entry);
    header_.entries.push_back(std::move(entry));
    tensor_.clear();
  }

  void once(bool& seen, const std::string& field) {
    if (std::exchange(seen, true)) refuse(fmt::format("has the field {} twice", field));
  }

  DType dtype() {
    const std::string name = string("has a dtype that is not a string");
    for (const DTypeName& known : kNames) {
      if (known.name == name) return known.dtype;
    }
    refuse(fmt::format("has the unknown dtype \"{}\"", name));
  }

  Shape shape() {
    Shape shape;
    array("has a shape that is not an array", [&] {
      const uint64_t size = number("shape");
      if (shape.rank() == kMaxRank) refuse(fmt::format("has more than {} axes", kMaxRank));
      if (size > uint64_t(INT64_MAX)) refuse("has a size that is too large");
      shape.push_back(int64_t(size));
    });
    return shape;
  }

  void offsets(Entry& entry) {
    int count = 0;
    array("has data_offsets that are not an array", [&] {
      const uint64_t value = number("data_offsets");
      if (count < 2) (count == 0 ? entry.begin : entry.end) = value;
      count++;
    });
    if (count != 2) refuse("has data_offsets that are not two numbers");
    if (entry.begin > entry.end) {
      refuse(
          fmt::format("has data that begins at {} and ends before, at {}", entry.begin, entry.end));
    }
  }

  void check_size(const Entry& entry) const {
    uint64_t bytes = size_of(entry.dtype);
    bool overflow = false, empty = false;
    for (const int64_t size : entry.shape) {
      empty = empty || size == 0;
      overflow = __builtin_mul_overflow(bytes, uint64_t(size), &bytes) || overflow;
    }
    if (empty) {
      bytes = 0;
    } else if (overflow || bytes > uint64_t(INT64_MAX)) {
      refuse(fmt::format("has the shape {}, whose size overflows", text_of(entry.shape)));
    }
    if (bytes != entry.end - entry.begin) {
      refuse(fmt::format("needs {} bytes for {}{} and has {}, from {} to {}", bytes,
                         name_of(entry.dtype), text_of(entry.shape), entry.end - entry.begin,
                         entry.begin, entry.end));
    }
  }

  uint64_t number(std::string_view field) {
    blanks();
    const size_t from = at_;
    uint64_t value = 0;
    bool overflow = false;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; at_++) {
      overflow = __builtin_mul_overflow(value, uint64_t(10), &value) || overflow;
      overflow = __builtin_add_overflow(value, uint64_t(text_[at_] - '0'), &value) || overflow;
    }
    if (at_ < text_.size() && text_[at_] == '-') refuse(fmt::format("has a negative {}", field));
    const bool fraction =
        at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string_view::npos;
    const bool zeros = at_ - from > 1 && text_[from] == '0';
    if (from == at_ || fraction || zeros) {
      refuse(fmt::format("has a {} that is not made of whole numbers", field));
    }
    if (overflow) refuse(fmt::format("has a {} with a number that is too large", field));
    return value;
  }

  std::string string(std::string_view what) {
    expect('"', what);
    std::string out;
    while (true) {
      if (at_ == text_.size()) refuse("has a string that does not end");
      const unsigned char byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') {
        at_++;
        return out;
      }
      if (byte < 0x20) refuse("has a control character in a string");
      if (byte == '\\') {
        escape(out);
      } else {
        const size_t length = utf8_length(byte);
        out.append(text_.substr(at_, length));
        at_ += length;
      }
    }
  }

  // Bytes of the UTF-8 character here.
  size_t utf8_length(unsigned char first) const {
    if (first < 0x80) return 1;
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || at_ + length > text_.size()) refuse("is not valid UTF-8");
    uint32_t code = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
      const unsigned char next = static_cast<unsigned char>(text_[at_ + i]);
      if ((next & 0xc0) != 0x80) refuse("is not valid UTF-8");
      code = code << 6 | (next & 0x3fu);
    }
    const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      refuse("is not valid UTF-8");
    }
    return length;
  }

  uint32_t hex4() {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, at_++) {
      const char digit = at_ < text_.size() ? text_[at_] : ' ';
      const size_t value = std::string_view("0123456789abcdefABCDEF").find(digit);
      if (value == std::string_view::npos) refuse("has a broken \\u escape");
      code = code << 4 | uint32_t(value < 16 ? value : value - 6);
    }
    return code;
  }

  void escape(std::string& out) {
    at_++;
    const char kind = at_ < text_.size() ? text_[at_] : ' ';
    at_++;
    const size_t simple = std::string_view("\"\\/bfnrt").find(kind);
    if (simple != std::string_view::npos) {
      out += "\"\\/\b\f\n\r\t"[simple];
      return;
    }
    if (kind != 'u') refuse("has an unknown escape in a string");
    uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) refuse("has half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code < 0xe000) {
      refuse("has half a surrogate pair");
    }
    append_utf8(out, code);
  }

  static void append_utf8(std::string& out, uint32_t code) {
    if (code < 0x80) {
      out += char(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out += char((0xff00u >> (more + 1) & 0xffu) | code >> (6 * more));
    for (int i = more - 1; i >= 0; i--) out += char(0x80 | (code >> (6 * i) & 0x3f));
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  std::string tensor_;  // under way, for errors
  std::unordered_set<std::string> names_;
  bool has_metadata_ = false;
  Header header_;
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", int(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

Header parse_header(std::string_view json, const std::string& path) {
  return Parser(json, path).parse();
}

void check_layout(const std::vector<Entry>& entries, uint64_t data_size, bool allow_trailing,
                  const std::string& path) {
  uint64_t at = 0;
  for (size_t i = 0; i < entries.size(); i++) {
    const Entry& entry = entries[i];
    if (entry.end > data_size) {
      fail(ErrorKind::io,
           "safetensors: {}: \"{}\" ends at byte {} of the data, which has {}; the file is "
           "truncated",
           path, entry.name, entry.end, data_size);
    }
    if (entry.begin < at) {
      fail(ErrorKind::io, "safetensors: {}: \"{}\" overlaps \"{}\": it begins at {}, before {}",
           path, entry.name, entries[i - 1].name, entry.begin, at);
    }
    if (entry.begin > at) {
      fail(ErrorKind::io,
           "safetensors: {}: there is a hole before \"{}\": bytes {} to {} are unused", path,
           entry.name, at, entry.begin);
    }
    at = entry.end;
  }
  if (at != data_size && !allow_trailing) {
    fail(ErrorKind::io,
         "safetensors: {}: {} bytes are left over after the last tensor; set allow_trailing to "
         "ignore them",
         path, data_size - at);
  }
}

std::string write_header(const std::vector<Entry>& entries, const Metadata& metadata) {
  std::string out = "{";
  const auto comma = [&] { out += out.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) pairs.push_back(quoted(key) + ":" + quoted(value));
    out += fmt::format("\"__metadata__\":{{{}}}", join(pairs, ","));
  }
  for (const Entry& entry : entries) {
    comma();
    const auto name =
        std::find_if(std::begin(kNames), std::end(kNames),
                     [&](const DTypeName& known) { return known.dtype == entry.dtype; });
    FORNAX_CHECK(name != std::end(kNames));
    out +=
        fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                    quoted(entry.name), name->name, join(entry.shape, ","), entry.begin, entry.end);
  }
  return out + "}";
}

}  // namespace fornax::io
