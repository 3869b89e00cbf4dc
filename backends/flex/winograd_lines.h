// The vector loops of Winograd's convolutions (winograd.h), one line of tiles at a time.
// Pure functions over the caller's memory; safe from any thread.
//
// A tile is a square of four by four elements of the source, two apart, and the two by two results
// that it gives.  What it is transformed to is 16 numbers, which lie in as many matrices.
#pragma once
#include <cstdint>
#include <span>

namespace fornax::flex {

inline constexpr int kWinogradMatrices = 16;
inline constexpr int64_t kWinogradSlack = 16;  // elements that are written behind a line of tiles

// Where the tiles' numbers lie: data[number * matrix + channel * pitch + tile].  Lines of tiles lie
// one after another; behind the last one of a channel kWinogradSlack elements may be overwritten,
// which are the next channel's or nobody's.
template <class T>
struct TileMatrices {
  T* data;
  int64_t pitch, matrix;
  int64_t channels;
  int64_t tiles;  // per line
  // Of channels [begin, end).
  TileMatrices some(int64_t begin, int64_t end) const {
    return {data + begin * pitch, pitch, matrix, end - begin, tiles};
  }
};

// A line of tiles reads four lines of the source, `line` and those below.  Those that are outside
// the picture are 0.
struct SourceLine {
  const float* picture;  // of channel 0
  int64_t line;
};
struct SourceCall {
  std::span<const SourceLine> lines;
  int64_t first;          // channel of the source
  int64_t channel, row;   // strides of the source
  int64_t height, width;  // of the picture
  int64_t before;         // columns of padding
  TileMatrices<float> to;
};
void winograd_source(const SourceCall& call);

// A line of tiles gives two lines of results, of which `count` are wanted.
struct ResultLine {
  float* picture;  // the first line of channel 0
  int64_t count;
};
struct ResultCall {
  std::span<const ResultLine> lines;
  int64_t channel;  // stride of the result
  int64_t width;    // of the result, and the stride of its lines
  TileMatrices<const float> from;
};
// False: some result may be infinite or no number.
bool winograd_result(const ResultCall& call);

// The gradient of the results as the gradient of the tiles' numbers: `count` lines of two.
struct GradientLine {
  const float* picture;  // the first line of channel 0
  int64_t count;
};
struct GradientCall {
  std::span<const GradientLine> lines;
  int64_t first;         // channel of the gradient
  int64_t channel, row;  // strides of the gradient
  int64_t width;
  TileMatrices<float> to;
};
void winograd_gradient(const GradientCall& call);

}  // namespace fornax::flex
