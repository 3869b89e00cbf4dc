// compile(): a pointwise graph as lists of stages.
//
// The steps are split into segments of one lane width; values pass between segments in tiles that
// stay in the L1 cache.  Code is constant once made.
#pragma once
#include <span>
#include <vector>

#include "backends/flex/fold.h"
#include "backends/flex/stages.h"
#include "graph/graph.h"

namespace fornax::flex {

inline constexpr int64_t kTile = 1024;  // elements; a few tiles of 4 bytes fit the L1 cache

// Where a stage's operand lies, known before the data is.
struct Place {
  enum class Kind : uint8_t {
    input,     // index: which; where its element 0 is
    output,    // index: which
    constant,  // index: which vector of the constants
    slot,      // index: which spill slot
    tile,      // index: which tile
    folded,    // index: which output, which is folded into what lies there, element by element
    vector,    // index: which output, which is folded into a vector there
  };
  Kind kind;
  int index;
  DType dtype;  // of the memory; of slots and constants, the lane
};

// A vector that is filled before the stages run.
struct Constant {
  int input;  // -1: the truth value true
  bool wide;
};

struct Segment {
  std::vector<Instruction> cached, streamed;  // streamed: stores past the caches, with prefetches
  std::vector<Instruction> padded;            // as cached, with stores in place of vectors' folds
};

// An output that waits in a tile because segments after its own still read inputs it may overwrite.
struct Delayed {
  int tile, output;
  DType dtype;
};

// An output that is folded into what lies where it goes.
struct FoldedOutput {
  Fold fold;
  bool to_vector;  // all of its elements into one vector, at most kBlock of them in one go
};

struct Code {
  std::vector<Place> places;     // an instruction's x and y index these
  std::vector<uint32_t> moving;  // of those, all but constants and slots
  std::vector<Constant> constants;
  std::vector<Segment> segments;
  std::vector<Delayed> delayed;
  std::vector<FoldedOutput> folds;  // the first outputs
  int slots = 0, tiles = 0;
  double cost = 0;  // nanoseconds per element, estimated, without memory
};

// How the code finds an input.
enum class Reach : uint8_t {
  constant,      // one element or number, everywhere
  direct,        // its memory is walked element by element
  near,          // likewise, and has just been read or written
  row_constant,  // one element per row
  gathered,      // copied to a tile first
};

// Nanoseconds per element that a pointwise op or a cast takes, roughly.
double cost_of(Op op);

struct CompileOptions {
  bool apart = false;  // no output shares memory with an input
  int close = 0;       // so many outputs, the first ones, are never stored past the caches
  bool ahead = false;  // memory is asked for ahead whatever the stores
  std::vector<uint32_t> far = {};        // per input: also so many bytes ahead; 0: not
  std::vector<FoldedOutput> folds = {};  // the first outputs
};

// Requires: the first `reaches.size()` steps are inputs and all others pointwise or cast; what is
// folded is of a dtype that reductions compute in, and if that is f32 not made from one of 8 bytes;
// to vectors only f32.
Code compile(const Graph& graph, std::span<const Reach> reaches, CompileOptions options = {});

}  // namespace fornax::flex
