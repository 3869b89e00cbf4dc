// What tests of several folders expect of an error: its kind and its words.
#pragma once
#include <fornax/error.h>
#include <gtest/gtest.h>

#include <string>

namespace fornax {

// The message of the error that `work` throws; empty where there is none.
template <class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The message of the error that `work` must throw, of that kind.
template <class Work>
std::string message_of(ErrorKind kind, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.kind()), name_of(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_words(const std::string& message, const std::string& words) {
  EXPECT_NE(message.find(words), std::string::npos) << message << "\nlacks: " << words;
}

// The message is one line and ends with a place, in the file that `site` is in.
inline void expect_place(const std::string& message, Site site) {
  expect_words(message, std::string(" (at ") + site.file + ":");
  EXPECT_EQ(message.find(" (at "), message.rfind(" (at ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

// `work` fails so, at a line of the file that this is called in.
template <class Work>
void expect_error_here(ErrorKind kind, const std::string& words, Work&& work,
                       Site site = Site::here()) {
  const std::string message = message_of(kind, work);
  expect_words(message, words);
  expect_place(message, site);
}

}  // namespace fornax
