// The elements of a range as one text.
#pragma once
#include <fmt/core.h>

#include <string>
#include <string_view>

namespace fornax {

// {1, 2, 3} joined by ", " is "1, 2, 3".  Elements are what fmt::format takes.
template <class Range>
std::string join(const Range& elements, std::string_view between) {
  std::string text;
  std::string_view before;
  for (const auto& element : elements) {
    text += fmt::format("{}{}", before, element);
    before = between;
  }
  return text;
}

}  // namespace fornax
