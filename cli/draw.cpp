// Pictures in a terminal: half blocks in 24 greys where there are colours, shades of ASCII
// elsewhere. Either way a character cell shows two pixels, one above the other.
#include <fornax/train.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/commands.h"

namespace cli {
namespace {

using fornax::data::Pictures;

// Columns between pictures.
constexpr int64_t kGap = 2;

int pixel(const Pictures& pictures, int64_t picture, int64_t row, int64_t column) {
  if (row >= pictures.height) return 0;
  return pictures.pixels[size_t(picture * pictures.size_of_one() + row * pictures.width + column)];
}

std::string coloured_cell(int upper, int lower) {
  const auto grey = [](int value) { return std::to_string(232 + value * 23 / 255); };
  return "\x1b[38;5;" + grey(upper) + ";48;5;" + grey(lower) + "m\u2580";
}

std::string shaded_cell(int upper, int lower) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const size_t value = size_t(upper + lower) / 2;
  return std::string(1, kShades[value * (kShades.size() - 1) / 255]);
}

std::string fitted(std::string text, int64_t width) {
  text.resize(size_t(width), ' ');
  return text;
}

}  // namespace

void draw(const Pictures& pictures, const std::vector<Caption>& captions) {
  const int width = fornax::train::terminal_width();
  const char* terminal = std::getenv("TERM");
  const bool coloured =
      width > 0 && terminal && std::string_view(terminal) != "dumb" && !std::getenv("NO_COLOR");
  const int64_t columns = std::max<int64_t>(width > 0 ? width : 100, pictures.width);
  const size_t fits = size_t((columns + kGap) / (pictures.width + kGap));
  const size_t count = std::min(captions.size(), fits);
  for (int64_t row = 0; row < pictures.height; row += 2) {
    std::string line;
    for (size_t i = 0; i < count; i++) {
      for (int64_t column = 0; column < pictures.width; column++) {
        const int upper = pixel(pictures, captions[i].picture, row, column);
        const int lower = pixel(pictures, captions[i].picture, row + 1, column);
        line += coloured ? coloured_cell(upper, lower) : shaded_cell(upper, lower);
      }
      line += (coloured ? "\x1b[0m" : "") + std::string(kGap, ' ');
    }
    std::puts(line.c_str());
  }
  std::string line;
  for (size_t i = 0; i < count; i++) {
    const std::string text = fitted(captions[i].text, pictures.width + kGap);
    line += coloured ? (captions[i].good ? "\x1b[32m" : "\x1b[31m") + text + "\x1b[0m" : text;
  }
  std::puts(line.c_str());
}

}  // namespace cli
