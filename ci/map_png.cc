// The only file that includes libpng.
#include "ci/map_png.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "guard/report/influence_map_svg.h"

namespace attnguard {
namespace {

using Color = std::array<std::uint8_t, 3>;

constexpr Color kPaper = {255, 255, 255};
constexpr int kSmallestMarked = 8;  // Pixels of a cell with lines and marks.

// The light colours of map_style().
Color color_of(char sign) {
  switch (sign) {
    case '#':
      return {0x48, 0x78, 0xB0};
    case '.':
      return {0xE6, 0xEA, 0xEF};
    case 'X':
      return {0xD3, 0x33, 0x1E};
    case 'o':
      return {0xED, 0xA1, 0x00};
    default:
      return {0x9A, 0xA3, 0xAD};
  }
}

// Whether the pixel (x, y) of a cell belongs to the mark of its sign: the two
// diagonals of its middle part, or a ring.
bool is_marked(char sign, int x, int y, int cell) {
  const int dx = 2 * x + 1 - cell, dy = 2 * y + 1 - cell;  // Half pixels.
  const int reach = cell / 2, width = std::max(cell / 8, 1);
  if (sign == 'X')
    return std::abs(dx) < reach && std::abs(dy) < reach &&
           std::abs(std::abs(dx) - std::abs(dy)) <= width;
  if (sign != 'o') return false;
  const int square = dx * dx + dy * dy, outer = reach,
            inner = reach - 2 * width;
  return square <= outer * outer && square >= inner * inner;
}

class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, int cell)
      : cell_(cell),
        width_(columns * static_cast<std::size_t>(cell) + 1),
        height_(rows * static_cast<std::size_t>(cell) + 1),
        pixels_(width_ * height_ * 3, 255) {}

  void draw(std::size_t row, std::size_t column, char sign) {
    const bool lined = cell_ >= kSmallestMarked;
    for (int y = 0; y < cell_; ++y)
      for (int x = 0; x < cell_; ++x) {
        const bool paper =
            lined && (x == 0 || y == 0 || is_marked(sign, x, y, cell_));
        set(column * static_cast<std::size_t>(cell_) +
                static_cast<std::size_t>(x),
            row * static_cast<std::size_t>(cell_) + static_cast<std::size_t>(y),
            paper ? kPaper : color_of(sign));
      }
  }

  Result<std::string> encode() const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t size = 0;
    std::string bytes;
    if (png_image_write_to_memory(&image, nullptr, &size, 0, pixels_.data(), 0,
                                  nullptr) != 0) {
      bytes.resize(size);
      if (png_image_write_to_memory(&image, bytes.data(), &size, 0,
                                    pixels_.data(), 0, nullptr) != 0) {
        bytes.resize(size);
        return bytes;
      }
    }
    const std::string message = image.message;
    png_image_free(&image);
    return Status(StatusCode::kIo, "cannot write the PNG: " + message);
  }

 private:
  void set(std::size_t x, std::size_t y, const Color& color) {
    std::copy(
        color.begin(), color.end(),
        pixels_.begin() + static_cast<std::ptrdiff_t>((y * width_ + x) * 3));
  }

  int cell_;
  std::size_t width_, height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace

int png_cell_size(std::size_t cells) {
  const std::size_t size = 1200 / std::max<std::size_t>(cells, 1);
  return static_cast<int>(std::clamp<std::size_t>(size, 1, 24));
}

Result<std::string> map_png(const InfluenceMap& map) {
  const std::size_t columns = map_columns(map), rows = map.cells.size();
  if (columns == 0) return invalid_argument("the map has no cells");
  Canvas canvas(columns, rows, png_cell_size(std::max(columns, rows)));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c)
      canvas.draw(r, c, map.cells[r][c]);
  return canvas.encode();
}

}  // namespace attnguard
