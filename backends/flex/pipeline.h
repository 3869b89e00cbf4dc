// Pipeline: compiled code at work on stretches of memory.
#pragma once
#include <span>

#include "backends/flex/compile.h"

namespace fornax::flex {

enum class Stores : uint8_t { cached, streamed };
// How values of so many bytes, all of them together, are best stored.
Stores stores_of(int64_t bytes);

// The operands of one thread: constants, spill slots, tiles.
class Pipeline {
 public:
  // What the constructor's memory must have, aligned to 64 bytes.  It may hold anything.
  static size_t bytes(const Code& code);
  Pipeline(const Code& code, char* memory);

  // The value of an input that is constant here.
  void set_constant(int input, DType dtype, Word number);
  // The same, with the element in memory.
  void set_constant(int input, DType dtype, const char* element);
  // Whether all code that reads the constant input reads narrow lanes, so that it may lie
  // elsewhere: in a vector of them.
  static bool may_point(const Code& code, int input);
  // Its operands, whose base may be set to such a vector.
  std::vector<Operand*> operands_of_constant(int input) const;
  // Elements [begin, end) of a stretch: where each input and each output begins, and each vector
  // that is folded into is.  Those of constants are not looked at.
  void run(const char* const* inputs, char* const* outputs, int64_t begin, int64_t end,
           Stores stores = Stores::cached);

 private:
  void stretch(const char* const* inputs, char* const* outputs, int64_t begin, int64_t count,
               Stores stores);
  void blocks(const char* const* inputs, char* const* outputs, int64_t begin, int64_t done,
              int64_t count, Stores stores);
  void rest(const char* const* inputs, char* const* outputs, int64_t begin, int64_t done,
            int64_t count);
  char* tile(int index) const { return tiles_ + size_t(index) * tile_bytes(); }
  char* pad(size_t place) const { return pads_ + place * pad_bytes(); }
  static size_t pad_bytes();
  static size_t tile_bytes();

  const Code& code_;
  const int64_t block_ = block_elements();  // a power of two
  Operand* operands_;
  char *constants_, *slots_, *pads_, *tiles_;
};

}  // namespace fornax::flex
