// decode() on any bytes: Error(io) or a valid graph whose encoding they are.
#include <fornax/error.h>

#include <algorithm>
#include <vector>

#include "graph/graph.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fornax;

void target(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  Graph graph;
  try {
    graph = decode(bytes);
  } catch (const Error& error) {
    FORNAX_FUZZ_EXPECT(error.kind() == ErrorKind::io);
    return;
  }
  verify(graph);
  FORNAX_FUZZ_EXPECT(std::ranges::equal(encode(graph), bytes));
  FORNAX_FUZZ_EXPECT(parse_graph(text_of(graph)) == graph);
}

std::string encoded(const char* text) {
  std::string bytes;
  for (std::byte b : encode(parse_graph(text))) bytes += char(b);
  return bytes;
}

[[maybe_unused]] const std::vector<std::string> kSeeds = {
    "",
    encoded("return\n"),
    encoded("%0 = leaf : f32[4,3]\n%1 = full 2.0 : f32[]\n%2 = sum %0 {1} : f32[4,1]\n"
            "%3 = mul %2 %1 : f32[4,1]\n%4 = expand %3 : f32[4,9]\nreturn %4\n"),
    encoded("%0 = leaf : u8[3]\n%1 = full 7u : u8[]\n%2 = pad %0 %1 {1,2,3} : u8[12]\n"
            "%3 = cat %2 %0 %0 {0} : u8[18]\nreturn %3\n"),
};

}  // namespace

FORNAX_FUZZ_TARGET(decode, target, kSeeds)
