// What the tests of this folder share: lists of things that must fail, with the words of each
// error.
#pragma once
#include <fornax/ops.h>

#include <functional>

#include "tests/errors.h"

namespace fornax {

// One thing that must fail: what is done, the kind of error and words that its message holds.
struct Wrong {
  std::function<void()> act;
  ErrorKind kind;
  std::vector<std::string> words;
};

// Each fails so, on one line that names a line of the file that this is called in.
inline void expect_errors(const std::vector<Wrong>& list, Site site = Site::here()) {
  for (const Wrong& wrong : list) {
    SCOPED_TRACE("wanted: " + wrong.words[0]);
    const std::string message = message_of(wrong.kind, wrong.act);
    for (const std::string& word : wrong.words) expect_words(message, word);
    expect_place(message, site);
  }
}

inline constexpr auto kShape = ErrorKind::shape;
inline constexpr auto kIndex = ErrorKind::index;
inline constexpr auto kValue = ErrorKind::value;
inline constexpr auto kDType = ErrorKind::dtype;

}  // namespace fornax
