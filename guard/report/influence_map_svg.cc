#include "guard/report/influence_map_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guard/report/influence_map_text.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

constexpr double kDigit = 6.2;    // Width of one digit of a label.
constexpr double kCellsTop = 36;  // Above the cells: "key" and the numbers.
constexpr std::size_t kMostDescribed = 24;  // Of the description.

constexpr std::array<CellLook, 4> kLooks = {{
    {'#', "seen", "moves it, and may", false},
    {'.', "unseen", "does not move it, and must not", false},
    {'X', "leak", "moves it, and must not", true},
    {'o', "miss", "does not move it, and should", true},
}};

// As the view shows it: a cell that is seen or not, or what is wrong with it.
std::string_view css_in(MapView view, char sign) {
  const CellLook look = cell_look(sign);
  if (view == MapView::kDifference || look.css == "unknown") return look.css;
  const bool expected = sign == '#' || sign == 'o';
  const bool observed = sign == '#' || sign == 'X';
  return (view == MapView::kExpected ? expected : observed) ? "seen" : "unseen";
}

// One rectangle for each run of cells that look the same.
std::string cell_runs(const InfluenceMap& map, MapView view) {
  std::string out;
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    const std::string& row = map.cells[r];
    for (std::size_t c = 0; c < row.size();) {
      std::size_t end = c + 1;
      while (end < row.size() && css_in(view, row[end]) == css_in(view, row[c]))
        ++end;
      out += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"1\"/>",
          css_in(view, row[c]), c, r, end - c);
      c = end;
    }
  }
  return out;
}

// A cross in what must not be seen and a ring in what is missed: the picture
// can be read without its colours.
std::string marks(const InfluenceMap& map) {
  std::string crosses, rings;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      if (map.cells[r][c] == 'X')
        crosses += fmt::format("M{0}.3 {1}.3l.4 .4m0 -.4l-.4 .4", c, r);
      else if (map.cells[r][c] == 'o')
        rings += fmt::format("M{0}.3 {1}.5a.2 .2 0 1 0 .4 0a.2 .2 0 1 0 -.4 0",
                             c, r);
    }
  std::string out;
  for (const std::string* path : {&crosses, &rings})
    if (!path->empty())
      out += fmt::format("<path class=\"mark\" d=\"{}\"/>", *path);
  return out;
}

std::string grid(std::size_t rows, std::size_t columns) {
  std::string path;
  for (std::size_t r = 0; r <= rows; ++r)
    path += fmt::format("M0 {}h{}", r, columns);
  for (std::size_t c = 0; c <= columns; ++c)
    path += fmt::format("M{} 0v{}", c, rows);
  return "<path class=\"grid\" d=\"" + path + "\"/>";
}

// Links above the first wrong cells, each with its words.
std::string links(const InfluenceMap& map, const MapPicture& picture) {
  std::string out;
  std::size_t made = 0;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const CellLook look = cell_look(map.cells[r][c]);
      if (!look.wrong || made++ >= picture.links) continue;
      const auto query = map.first_row + static_cast<std::int64_t>(r);
      const auto key = map.first_column + static_cast<std::int64_t>(c);
      out += fmt::format(
          "<a href=\"#{0}-q{1}-k{2}\" aria-label=\"query {1}, key {2}: {3}\">"
          "<title>query {1}, key {2}: {3}</title><rect class=\"target\" "
          "x=\"{4}\" y=\"{5}\" width=\"1\" height=\"1\"/></a>",
          picture.id, query, key, look.meaning, c, r);
    }
  return out;
}

struct Size {
  double cell = 20, left = 0, width = 0, height = 0;
};

// Cells of large maps are smaller, and have neither marks nor lines.
constexpr double kSmallestMarked = 8;

Size size_of(const InfluenceMap& map) {
  Size size;
  const auto columns = static_cast<double>(map_columns(map));
  const auto rows = static_cast<double>(map.cells.size());
  size.cell = std::clamp(1280 / std::max({rows, columns, 1.0}), 2.0, 20.0);
  const double digits = static_cast<double>(
      std::to_string(map.first_row + std::ssize(map.cells)).size());
  size.left = std::max(44.0, kDigit * digits + 12);
  size.width = size.left + columns * size.cell + 2;
  size.height = kCellsTop + rows * size.cell + 2;
  return size;
}

// The numbers of rows and columns, as many as have room.
std::string labels(std::size_t rows, std::size_t columns,
                   const InfluenceMap& map, const Size& size) {
  const double left = size.left, cell = size.cell;
  const auto number = [](std::int64_t first, std::size_t offset) {
    return std::to_string(first + static_cast<std::int64_t>(offset));
  };
  const double widest =
      kDigit * static_cast<double>(number(map.first_column, columns).size());
  const auto step = static_cast<std::size_t>((widest + 6) / cell) + 1;
  const auto row_step = static_cast<std::size_t>(13 / cell) + 1;
  std::string out = fmt::format(
      "<text class=\"axis\" x=\"{}\" y=\"12\">key</text>"
      "<text class=\"axis\" x=\"2\" y=\"{}\">query</text>",
      left, kCellsTop - 6);
  for (std::size_t c = 0; c < columns; c += step)
    out +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    left + (static_cast<double>(c) + 0.5) * cell, kCellsTop - 6,
                    number(map.first_column, c));
  for (std::size_t r = 0; r < rows; r += row_step)
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                       left - 6,
                       kCellsTop + (static_cast<double>(r) + 0.5) * cell + 4,
                       number(map.first_row, r));
  return out;
}

std::string description(const InfluenceMap& map) {
  std::string out;
  for (const std::string& sentence : influence_sentences(map, kMostDescribed))
    out += (out.empty() ? "" : "; ") + sentence;
  return out.empty() ? "every cell is as it should be" : out;
}

// What stands between <svg> and </svg>.
std::string body(const InfluenceMap& map, const MapPicture& picture) {
  const std::size_t rows = map.cells.size(), columns = map_columns(map);
  const bool difference = picture.view == MapView::kDifference;
  const Size size = size_of(map);
  const bool marked = size.cell >= kSmallestMarked;
  return fmt::format("<title id=\"{0}-title\">{1}</title>", picture.id,
                     html_text(picture.title)) +
         (difference ? fmt::format("<desc id=\"{0}-desc\">{1}</desc>",
                                   picture.id, description(map))
                     : "") +
         labels(rows, columns, map, size) +
         fmt::format(
             "<g transform=\"translate({} {}) scale({})\">"
             "<g id=\"{}-cells\">",
             size.left, kCellsTop, size.cell, picture.id) +
         cell_runs(map, picture.view) +
         (difference && marked ? marks(map) : "") +
         (marked ? grid(rows, columns) : "") + "</g>" +
         (difference ? links(map, picture) : "") + "</g>";
}

}  // namespace

CellLook cell_look(char sign) {
  const auto* found = std::ranges::find(kLooks, sign, &CellLook::sign);
  return found == kLooks.end()
             ? CellLook{'?', "unknown", "was not measured", false}
             : *found;
}

std::size_t map_columns(const InfluenceMap& map) {
  std::size_t columns = 0;
  for (const std::string& row : map.cells)
    columns = std::max(columns, row.size());
  return columns;
}

std::string map_svg(const InfluenceMap& map, const MapPicture& picture) {
  const Size size = size_of(map);
  const bool described = picture.view == MapView::kDifference;
  return fmt::format(
             "<svg class=\"map\" role=\"{}\" viewBox=\"0 0 {} {}\" "
             "width=\"{}\" height=\"{}\" aria-labelledby=\"{}-title\"{}>",
             picture.links > 0 ? "group" : "img", size.width, size.height,
             size.width, size.height, picture.id,
             described
                 ? fmt::format(" aria-describedby=\"{}-desc\"", picture.id)
                 : "") +
         body(map, picture) + "</svg>";
}

// Copies that <use> makes are outside of .map, but inherit its colours.
std::string_view map_style() {
  return R"css(.map{--seen:#4878b0;--unseen:#e6eaef;--leak:#d3331e;--miss:#eda100;--unknown:#9aa3ad;--line:#fff;--mark:#fff;--words:#47525e}
@media (prefers-color-scheme:dark){.map{--seen:#4f86c6;--unseen:#262e37;--leak:#ff5a43;--miss:#ffc03a;--unknown:#5d6873;--line:#12171c;--mark:#12171c;--words:#aab4bf}}
.map text{font:11px system-ui,sans-serif;fill:var(--words)}
.map .axis{font-weight:600}
.seen{fill:var(--seen)}
.unseen{fill:var(--unseen)}
.leak{fill:var(--leak)}
.miss{fill:var(--miss)}
.unknown{fill:var(--unknown)}
.grid{fill:none;stroke:var(--line);stroke-width:.06}
.mark{fill:none;stroke:var(--mark);stroke-width:.09;stroke-linecap:round}
.map .target{fill:#fff;fill-opacity:0;stroke:var(--words);stroke-width:0}
.map a:hover .target,.map a:focus .target{stroke-width:.14}
)css";
}

std::string map_svg_file(const InfluenceMap& map, std::string_view title) {
  MapPicture picture{.id = "map", .title = std::string(title)};
  const Size size = size_of(map);
  constexpr double kLine = 20;
  const double width = std::max(size.width, 260.0);
  double y = size.height + kLine;
  std::string legend;
  for (const CellLook& look : kLooks) {
    const bool occurs =
        std::ranges::any_of(map.cells, [&](const std::string& row) {
          return row.find(look.sign) != std::string::npos;
        });
    if (!occurs) continue;
    legend += fmt::format(
        "<rect class=\"{}\" x=\"4\" y=\"{}\" width=\"12\" height=\"12\"/>"
        "<text x=\"24\" y=\"{}\">{}</text>",
        look.css, y - 10, y, look.meaning);
    y += kLine;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"map\" "
             "role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
             "height=\"{1}\" aria-labelledby=\"map-title map-desc\">\n<style>",
             width, y) +
         std::string(map_style()) +
         "svg{background:#fff}\n"
         "@media (prefers-color-scheme:dark){svg{background:#12171c}}\n"
         "</style>\n" +
         body(map, picture) + legend + "</svg>\n";
}

}  // namespace attnguard
