#include "guard/report/influence_map_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace attnguard {
namespace {

constexpr std::size_t kMostTold = 3;  // Wrong rows told in words.
constexpr std::size_t kIndent = 2;

struct Sign {
  char sign;
  Ink ink;
  const char* meaning;
};

constexpr std::array<Sign, 4> kSigns = {{
    {'#', Ink::kPlain, "moves it, and may"},
    {'.', Ink::kDim, "does not move it, and must not"},
    {'X', Ink::kRed, "moves it, and must not"},
    {'o', Ink::kYellow, "does not move it, and should"},
}};

bool is_wrong_cell(char cell) { return cell == 'X' || cell == 'o'; }

struct Window {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The part of `size` that is drawn: from 0 when `first_wrong` is within it.
Window window_around(std::size_t size, std::size_t first_wrong,
                     std::size_t most) {
  if (size <= most) return {0, size};
  if (first_wrong < most) return {0, most};
  const std::size_t begin = std::min(first_wrong - most / 2, size - most);
  return {begin, begin + most};
}

std::size_t num_columns(const InfluenceMap& map) {
  std::size_t columns = 0;
  for (const std::string& row : map.cells)
    columns = std::max(columns, row.size());
  return columns;
}

std::string label(std::int64_t first, std::size_t offset) {
  return std::to_string(first + static_cast<std::int64_t>(offset));
}

std::string cell_text(char cell, std::size_t width, const Painter& paint) {
  const auto* found = std::ranges::find(kSigns, cell, &Sign::sign);
  const std::string padded = pad_left(std::string(1, cell), width);
  return found == kSigns.end() ? pad_left("?", width)
                               : paint(found->ink, padded);
}

std::string picture(const InfluenceMap& map, const Window& rows,
                    const Window& columns, const Painter& paint) {
  const std::string corner(kIndent + std::string("query ").size(), ' ');
  const std::size_t row_width = label(map.first_row, rows.end - 1).size();
  const std::size_t width = label(map.first_column, columns.end - 1).size() + 1;
  const std::string margin = corner + std::string(row_width + 1, ' ');
  std::string titles;
  for (std::size_t c = columns.begin; c < columns.end; ++c)
    titles += pad_left(label(map.first_column, c), width);
  std::string out = margin + std::string(width - 1, ' ') +
                    paint(Ink::kDim, "key") + "\n" + margin +
                    paint(Ink::kDim, titles) + "\n";
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    const std::string head = (r == rows.begin ? "query " : "      ") +
                             pad_left(label(map.first_row, r), row_width);
    out += std::string(kIndent, ' ') + paint(Ink::kDim, head) + " ";
    for (std::size_t c = columns.begin;
         c < std::min(columns.end, map.cells[r].size()); ++c)
      out += cell_text(map.cells[r][c], width, paint);
    out += "\n";
  }
  return out;
}

// "key 3" or "keys 1-4, 7": the columns of the row that hold the sign; empty
// for none.
std::string key_list(const InfluenceMap& map, const std::string& row,
                     char sign) {
  std::string list;
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (row[c] != sign) continue;
    const std::size_t begin = c;
    while (c + 1 < row.size() && row[c + 1] == sign) ++c;
    list += (list.empty() ? "" : ", ") + label(map.first_column, begin);
    if (c > begin) list.append("-").append(label(map.first_column, c));
  }
  if (list.empty()) return list;
  return (std::ranges::count(row, sign) == 1 ? "key " : "keys ") + list;
}

std::string in_words(const InfluenceMap& map) {
  std::string out;
  for (const std::string& sentence : influence_sentences(map, kMostTold))
    out += "  " + sentence + "\n";
  return out.empty() ? out : out + "\n";
}

std::string legend(const InfluenceMap& map, const Painter& paint) {
  std::string out;
  for (const Sign& sign : kSigns) {
    const bool occurs =
        std::ranges::any_of(map.cells, [&](const std::string& row) {
          return row.find(sign.sign) != std::string::npos;
        });
    if (!occurs) continue;
    out += "  " + paint(sign.ink, std::string(1, sign.sign)) + "  " +
           paint(Ink::kDim, sign.meaning) + "\n";
  }
  return out;
}

}  // namespace

std::vector<std::string> influence_sentences(const InfluenceMap& map,
                                             std::size_t most) {
  std::vector<std::string> out;
  std::size_t told = 0, wrong = 0;
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    const std::string moved = key_list(map, map.cells[r], 'X');
    const std::string missed = key_list(map, map.cells[r], 'o');
    if (moved.empty() && missed.empty()) continue;
    ++wrong;
    if (told == most) continue;
    ++told;
    const std::string row = "row " + label(map.first_row, r);
    if (!moved.empty())
      out.push_back(row + " is moved by " + moved + ", and must not be");
    if (!missed.empty())
      out.push_back(row + " is not moved by " + missed + ", and should be");
  }
  if (wrong > told)
    out.push_back("and so on in " +
                  counted(static_cast<std::int64_t>(wrong - told), "more row"));
  return out;
}

std::string draw_influence_map(const InfluenceMap& map, const Painter& paint,
                               std::size_t most) {
  const std::size_t columns = num_columns(map);
  if (columns == 0) return {};
  std::size_t wrong_row = 0, wrong_column = 0;
  for (std::size_t r = map.cells.size(); r-- > 0;) {
    const auto wrong = std::ranges::find_if(map.cells[r], is_wrong_cell);
    if (wrong == map.cells[r].end()) continue;
    wrong_row = r;
    wrong_column = static_cast<std::size_t>(wrong - map.cells[r].begin());
  }
  const Window shown_rows = window_around(map.cells.size(), wrong_row, most);
  const Window shown_columns = window_around(columns, wrong_column, most);
  std::string out = picture(map, shown_rows, shown_columns, paint);
  if (map.cells.size() > most || columns > most)
    out += paint(Ink::kDim, fmt::format("  a part of {} rows and {} keys",
                                        map.cells.size(), columns)) +
           "\n";
  return out + "\n" + in_words(map) + legend(map, paint);
}

}  // namespace attnguard
