// The influence map as a vector picture, alone or inside of a page.
#ifndef ATTNGUARD_GUARD_REPORT_INFLUENCE_MAP_SVG_H_
#define ATTNGUARD_GUARD_REPORT_INFLUENCE_MAP_SVG_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "guard/finding/result.h"

namespace attnguard {

// What a picture shows of each cell.
enum class MapView {
  kExpected,   // Which keys may move which rows.
  kObserved,   // Which do.
  kDifference  // Both: what is right in two colours, what is wrong in two more.
};

// The words and the style class of a cell's sign; '?' for one that is none.
struct CellLook {
  char sign = '?';
  std::string_view css;      // "leak"
  std::string_view meaning;  // "moves it, and must not"
  bool wrong = false;
};
CellLook cell_look(char sign);

// The longest row of the map, in cells.
std::size_t map_columns(const InfluenceMap& map);

struct MapPicture {
  MapView view = MapView::kDifference;
  std::string id;     // Prefix of the ids inside; unique in a page.
  std::string title;  // For screen readers; escaped here.

  // Wrong cells that are links to "#<id>-q<row>-k<column>"; the first so many.
  std::size_t links = 0;
};

// An <svg> element without style. Rows and columns are numbered. The cells are
// a group "<id>-cells" with one unit per cell, for pages that zoom into it.
std::string map_svg(const InfluenceMap& map, const MapPicture& picture);

// The style rules of the pictures, light and dark.
std::string_view map_style();

// A file of its own: <svg> with style, title and legend.
std::string map_svg_file(const InfluenceMap& map, std::string_view title);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_INFLUENCE_MAP_SVG_H_
