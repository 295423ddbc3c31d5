// The influence map as a picture: which keys move which rows.
#ifndef ATTNGUARD_GUARD_REPORT_INFLUENCE_MAP_TEXT_H_
#define ATTNGUARD_GUARD_REPORT_INFLUENCE_MAP_TEXT_H_

#include <string>
#include <vector>

#include "guard/finding/result.h"
#include "guard/report/terminal.h"

namespace attnguard {

// The picture with row and column labels, what it shows in words, and the
// legend of the signs that occur. Maps of more than `most` rows or columns are
// cut to a window around the first wrong cell, and say so. Empty for an empty
// map.
std::string draw_influence_map(const InfluenceMap& map, const Painter& paint,
                               std::size_t most = 24);

// What is wrong in the map, for at most `most` rows: "row 0 is moved by keys
// 1-4, and must not be". The last one counts the rest. Empty when all is right.
std::vector<std::string> influence_sentences(const InfluenceMap& map,
                                             std::size_t most);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_INFLUENCE_MAP_TEXT_H_
