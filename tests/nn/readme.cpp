// README.md shows a program that is compiled: the text of examples/readme.cpp, word for word.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string text_of(const std::string& name) {
  std::ifstream in(name);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Readme, shows_the_example_that_is_compiled) {
  const std::string example = text_of("examples/readme.cpp");
  const std::string code = example.substr(example.find("#include"));
  ASSERT_GT(code.size(), 500u);
  EXPECT_NE(text_of("README.md").find("```cpp\n" + code + "```"), std::string::npos);
}

}  // namespace
