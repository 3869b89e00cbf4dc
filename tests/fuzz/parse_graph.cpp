// parse_graph() on any text: Error(value) or a valid graph, which reads back from both its forms.
#include <fornax/error.h>

#include <vector>

#include "graph/graph.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fornax;

void target(std::string_view text) {
  Graph graph;
  try {
    graph = parse_graph(text);
  } catch (const Error& error) {
    FORNAX_FUZZ_EXPECT(error.kind() == ErrorKind::value);
    return;
  }
  verify(graph);
  FORNAX_FUZZ_EXPECT(parse_graph(text_of(graph)) == graph);
  FORNAX_FUZZ_EXPECT(decode(encode(graph)) == graph);
  const Graph simple = simplify(graph);
  verify(simple);
  FORNAX_FUZZ_EXPECT(simple.outputs.size() == graph.outputs.size());
}

[[maybe_unused]] const std::vector<std::string> kSeeds = {
    "",
    "return\n",
    "%0 = leaf : f32[4,3]\n%1 = full 2.0 : f32[]\n%2 = sum %0 {1} : f32[4,1]\nreturn %2\n",
    "%0 = leaf : i32[6]\n%1 = slice %0 {5,3,-2} : i32[3]\n%2 = slice %1 {1,2,1} : i32[2]\n"
    "%3 = reshape %2 : i32[1,2]\n%4 = expand %3 : i32[7,2]\nreturn %4 %1\n",
    "%0 = leaf : f16[2,4,5,6]\n%1 = leaf : f16[6,2,3,2]\n"
    "%2 = convolve %0 %1 {3,2,1,1,0,0,0,0,1,1,2,0,0} : f16[2,6,3,5]\n"
    "%3 = unfold %2 {3,2,2,1,5,2,2,1,1,3} : f16[2,6,2,2,2,2]\nreturn %3\n",
    "%0 = leaf : u8[3]\n%1 = full 7u : u8[]\n%2 = pad %0 %1 {1,2,3} : u8[12]\n"
    "%3 = cat %2 %0 %0 {0} : u8[18]\n%4 = argsort %3 {0,1} : i64[18]\n"
    "%5 = gather %3 %4 {0} : u8[18]\n%6 = cast %5 : bool[18]\n%7 = where %6 %5 %1 : u8[18]\n"
    "return %7\n",
};

}  // namespace

FORNAX_FUZZ_TARGET(parse_graph, target, kSeeds)
