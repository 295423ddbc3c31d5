// The influence map as a PNG picture.
#ifndef ATTNGUARD_CI_MAP_PNG_H_
#define ATTNGUARD_CI_MAP_PNG_H_

#include <string>

#include "guard/base/status.h"
#include "guard/finding/result.h"

namespace attnguard {

// How many pixels a side of a cell has, for a map of that many cells in its
// longer side: as many as keep the picture at about 1200, 24 at most.
int png_cell_size(std::size_t cells);

// The bytes of the file: the cells alone, row by row, without labels. Wrong
// cells have a cross (leak) or a ring (miss) where they are large enough.
// kInvalidArgument for a map without cells.
Result<std::string> map_png(const InfluenceMap& map);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_MAP_PNG_H_
