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

}  // namespace fornax
