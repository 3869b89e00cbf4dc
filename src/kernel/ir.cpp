// The table of codes, and types in words.
#include "kernel/ir.h"

#include <fmt/core.h>

#include <algorithm>

namespace fornax::kernel {
namespace {

constexpr std::string_view without_underscore(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

constexpr CodeInfo kCodes[] = {
#define FORNAX_CODE(name, operands, dialect, effect, documentation) \
  {without_underscore(#name), operands, Dialect::dialect, Effect::effect, documentation},
#include "kernel/codes.def"
};

}  // namespace

const CodeInfo& info(Code code) { return kCodes[size_t(code)]; }
int code_count() { return int(std::size(kCodes)); }

bool parse_code(std::string_view name, Code& out) {
  const auto found = std::find_if(std::begin(kCodes), std::end(kCodes),
                                  [&](const CodeInfo& row) { return row.name == name; });
  if (found == std::end(kCodes)) return false;
  out = Code(found - kCodes);
  return true;
}

std::string text_of(const ValueType& type) {
  std::string text{name_of(type.dtype)};
  if (type.memory != Memory::none) {
    constexpr const char* kNames[] = {"", "global ", "shared ", "map "};
    return kNames[int(type.memory)] + text;
  }
  if (type.lanes > 1) text += fmt::format("x{}", type.lanes);
  if (type.tile()) text += fmt::format("[{},{}]", type.rows, type.columns);
  if (type.layout > 0) text += fmt::format("@{}", type.layout);
  return text;
}

}  // namespace fornax::kernel
