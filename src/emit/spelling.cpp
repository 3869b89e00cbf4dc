// Looking rows up, filling patterns, finding helpers.
#include "emit/spelling.h"

#include <fmt/core.h>

#include <bit>
#include <cctype>
#include <cmath>

#include "base/error.h"

namespace fornax::c_like {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether `word` is one of those in `text` that stand between other characters.
bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_word(text[at - 1]);
    if (begins && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

bool lists(std::string_view dtypes, DType dtype) {
  return dtypes.empty() || has_word(dtypes, name_of(dtype));
}

std::string without_sign(DType dtype) {
  std::string name{name_of(dtype)};
  if (name[0] == 'i') name[0] = 'u';
  return name;
}

// Whether the operand at `at` stands alone between parentheses and commas.
bool stands_alone(std::string_view pattern, size_t at) {
  const char before = at == 0 ? ' ' : pattern[at - 1];
  const char after = at + 3 < pattern.size() ? pattern[at + 3] : ' ';
  const bool opens = before == '(' || (before == ' ' && at >= 2 && pattern[at - 2] == ',');
  return opens && (after == ')' || after == ',');
}

// Whether all of the pattern is a name and what stands in the parentheses after it.
bool is_call(std::string_view pattern) {
  size_t at = 0;
  while (at < pattern.size() &&
         (is_word(pattern[at]) || pattern[at] == '{' || pattern[at] == '}')) {
    at++;
  }
  if (at == 0 || at == pattern.size() || pattern[at] != '(') return false;
  int depth = 0;
  for (; at < pattern.size(); at++) {
    depth += pattern[at] == '(' ? 1 : pattern[at] == ')' ? -1 : 0;
    if (depth == 0) return at + 1 == pattern.size();
  }
  return false;
}

// Exactly, in decimal where that is short.
std::string digits_of(double x) {
  const double steps = x * 64;
  if (std::abs(x) < 1e6 && steps == std::trunc(steps)) {
    std::string text = fmt::format("{:.6f}", x);
    while (text.ends_with('0') && !text.ends_with(".0")) text.pop_back();
    return text;
  }
  return fmt::format("{:a}", x);
}

Expression float_literal(DType dtype, double x) {
  if (dtype == DType::f64) {
    if (std::isfinite(x)) return {digits_of(x), !std::signbit(x), {}};
    return {fmt::format("__longlong_as_double({:#x}ll)", std::bit_cast<int64_t>(x)), true, {}};
  }
  const float y = float(x);
  if (std::isfinite(y)) return {digits_of(double(y)) + "f", !std::signbit(y), {}};
  return {fmt::format("__int_as_float({:#x})", std::bit_cast<uint32_t>(y)), true, {}};
}

Expression whole_literal(DType dtype, int64_t bits) {
  const bool negative = is_signed(dtype) && bits < 0;
  switch (dtype) {
    case DType::i32:
      if (bits == INT32_MIN) return {"i32(0x80000000u)", true, {}};
      return {fmt::format("{}", bits), !negative, {}};
    case DType::u32:
      return {fmt::format("{}u", uint32_t(bits)), true, {}};
    case DType::i64:
      if (bits == INT64_MIN) return {"i64(0x8000000000000000ull)", true, {}};
      return {fmt::format("{}ll", bits), !negative, {}};
    case DType::u64:
      return {fmt::format("{}ull", uint64_t(bits)), true, {}};
    default:
      return {fmt::format("{}({})", name_of(dtype), bits), true, {}};
  }
}

}  // namespace

std::string_view pattern_of(const Spelling& spelling, kernel::Code code, DType dtype,
                            Manner manner) {
  std::string_view usual;
  for (const CodeRow& row : spelling.codes) {
    if (row.code != code || !lists(row.dtypes, dtype)) continue;
    if (row.manner == manner) return row.pattern;
    if (row.manner == Manner::usual && usual.empty()) usual = row.pattern;
  }
  if (usual.empty()) {
    fail(ErrorKind::internal, "emit: {} has no spelling of {} for {}", spelling.language,
         kernel::info(code).name, name_of(dtype));
  }
  return usual;
}

std::string_view vector_pattern_of(const Spelling& spelling, kernel::Code code, DType dtype) {
  for (const CodeRow& row : spelling.codes) {
    if (row.manner == Manner::vector && row.code == code && lists(row.dtypes, dtype)) {
      return row.pattern;
    }
  }
  return {};
}

std::string_view pattern_of(const Spelling& spelling, kernel::Atomic how, DType dtype) {
  for (const AtomicRow& row : spelling.atomics) {
    if (row.how == how && lists(row.dtypes, dtype)) return row.pattern;
  }
  fail(ErrorKind::internal, "emit: {} has no spelling of atomic number {} for {}",
       spelling.language, int(how), name_of(dtype));
}

std::string_view conversion_of(const Spelling& spelling, kernel::Code code, DType from, DType to) {
  for (const ConversionRow& row : spelling.conversions) {
    if (row.code == code && lists(row.from, from) && lists(row.to, to)) return row.pattern;
  }
  fail(ErrorKind::internal, "emit: {} has no spelling of {} from {} to {}", spelling.language,
       kernel::info(code).name, name_of(from), name_of(to));
}

std::vector<const Helper*> helpers_in(const Spelling& spelling, std::string_view text) {
  std::vector<char> used(spelling.helpers.size());
  // A helper uses those before it alone, so one walk from the last finds them all.
  for (size_t i = used.size(); i-- > 0;) {
    const std::string_view name = spelling.helpers[i].name;
    used[i] = has_word(text, name);
    for (size_t k = i + 1; k < used.size() && !used[i]; k++) {
      used[i] = used[k] && has_word(spelling.helpers[k].text, name);
    }
  }
  std::vector<const Helper*> result;
  for (size_t i = 0; i < used.size(); i++) {
    if (used[i]) result.push_back(&spelling.helpers[i]);
  }
  return result;
}

Expression fill(std::string_view pattern, std::span<const Expression> operands,
                const Names& names) {
  Expression result;
  result.simple = is_call(pattern);
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '{') {
      result.text += pattern[at++];
      continue;
    }
    FORNAX_CHECK(at + 2 < pattern.size() && pattern[at + 2] == '}');
    const char what = pattern[at + 1];
    if (what >= '1' && what <= '9') {
      const Expression& operand = operands[size_t(what - '1')];
      const bool bare = operand.simple || stands_alone(pattern, at);
      result.text += bare ? operand.text : "(" + operand.text + ")";
      result.reads.insert(result.reads.end(), operand.reads.begin(), operand.reads.end());
    } else if (what == 'T') {
      result.text += name_of(names.type);
    } else if (what == 'S') {
      result.text += name_of(names.source);
    } else if (what == 'U') {
      result.text += without_sign(names.type);
    } else if (what == 'f') {
      if (names.type == DType::f32) result.text += 'f';
    } else {
      FORNAX_CHECK(what == 'a');
      result.text += names.attribute;
    }
    at += 3;
  }
  return result;
}

Expression literal(DType dtype, int64_t bits) {
  if (dtype == DType::bool_) return {bits ? "true" : "false", true, {}};
  if (!is_floating(dtype)) return whole_literal(dtype, bits);
  const double x = std::bit_cast<double>(bits);
  switch (dtype) {
    case DType::f16:
      return {fmt::format("f16({:#x})", Float16(float(x)).bits), true, {}};
    case DType::bf16:
      return {fmt::format("bf16({:#x})", BFloat16(float(x)).bits), true, {}};
    case DType::f8e4m3:
      return {fmt::format("f8e4m3({:#x})", Float8E4M3(float(x)).bits), true, {}};
    case DType::f8e5m2:
      return {fmt::format("f8e5m2({:#x})", Float8E5M2(float(x)).bits), true, {}};
    default:
      return float_literal(dtype, x);
  }
}

}  // namespace fornax::c_like
