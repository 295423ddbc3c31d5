// The pictures of the HTML report that show keys and rows.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "guard/report/html_parts.h"
#include "guard/report/influence_map_svg.h"
#include "guard/report/influence_map_text.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostZooms = 24;     // Wrong cells with a picture each.
constexpr std::size_t kMostSentences = 6;  // Wrong rows in words.
constexpr std::int64_t kBands = 96;        // Rows of the whole matrix.
constexpr double kMatrix = 240;            // Its longer side.
constexpr std::size_t kZoomRadius = 2;     // Cells around the one zoomed into.

std::string legend(const InfluenceMap& map) {
  std::string items;
  for (char sign : std::string_view("#.Xo")) {
    const bool occurs =
        std::ranges::any_of(map.cells, [sign](const std::string& row) {
          return row.find(sign) != std::string::npos;
        });
    if (!occurs) continue;
    const CellLook look = cell_look(sign);
    const std::string_view mark =
        sign == 'X'   ? "<path class=\"mark\" d=\"M.3 .3l.4 .4m0 -.4l-.4 .4\"/>"
        : sign == 'o' ? "<path class=\"mark\" d=\"M.3 .5a.2 .2 0 1 0 .4 0a.2 "
                        ".2 0 1 0 -.4 0\"/>"
                      : "";
    items += fmt::format(
        "<li><svg class=\"map\" viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect "
        "class=\"{}\" width=\"1\" height=\"1\"/>{}</svg>{}</li>",
        look.css, mark, look.meaning);
  }
  return "<ul class=\"legend\">" + items + "</ul>";
}

std::string panel(const InfluenceMap& map, const std::string& id, MapView view,
                  std::string_view css, std::string_view words) {
  const MapPicture picture{
      .view = view,
      .id = id,
      .title = std::string(words),
      .links = view == MapView::kDifference ? kMostZooms : 0};
  return fmt::format(
      "<figure class=\"{}\"><figcaption>{}</figcaption>{}</figure>", css,
      html_text(words), map_svg(map, picture));
}

// The neighbourhood of one wrong cell, and what is wrong with it. Shown when
// the page's fragment names it.
std::string zoom(const InfluenceMap& map, const std::string& id,
                 std::size_t row, std::size_t column) {
  const char sign = map.cells[row][column];
  const auto corner = [](std::size_t at) {
    return static_cast<double>(at) - static_cast<double>(kZoomRadius);
  };
  return fmt::format(
      "<div class=\"zoom\" id=\"{0}-q{1}-k{2}\" role=\"group\" "
      "aria-label=\"query {1}, key {2}\"><svg class=\"map\" viewBox=\"{3} {4} "
      "{5} {5}\" aria-hidden=\"true\"><use href=\"#{0}-cells\"/><rect "
      "class=\"frame\" x=\"{6}\" y=\"{7}\" width=\"1\" height=\"1\"/></svg>"
      "<div><p><strong>query {1}, key {2}</strong></p>"
      "<p>expected: changing token {2} {8} row {1}</p>"
      "<p>observed: it {9}</p><p><a href=\"#{0}\">back to the map</a></p>"
      "</div></div>",
      id, map.first_row + static_cast<std::int64_t>(row),
      map.first_column + static_cast<std::int64_t>(column), corner(column),
      corner(row), 2 * kZoomRadius + 1, column, row,
      sign == 'X' ? "leaves" : "moves", sign == 'X' ? "moves it" : "does not");
}

std::string zooms(const InfluenceMap& map, const std::string& id) {
  std::string out;
  std::size_t made = 0, wrong = 0;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      if (!cell_look(map.cells[r][c]).wrong) continue;
      ++wrong;
      if (made == kMostZooms) continue;
      ++made;
      out += zoom(map, id, r, c);
    }
  if (made == 0) return {};
  const std::string hint =
      "<p class=\"soft\">Select a marked cell to look at it" +
      (wrong > made
           ? fmt::format("; the first {} of {} can be selected", made, wrong)
           : "") +
      ".</p>";
  return hint + out;
}

// A head of the problem with findings that name a row.
struct Matrix {
  std::int64_t batch = 0, head = 0;
  std::vector<const Finding*> findings;
};

Matrix most_found(const ProblemResult& problem) {
  std::map<std::pair<std::int64_t, std::int64_t>, Matrix> heads;
  for (const CheckResult& check : problem.checks)
    for (const Finding& finding : check.findings) {
      const Problem& p = problem.problem;
      const bool inside = finding.batch >= 0 && finding.batch < p.batch &&
                          finding.query >= 0 &&
                          finding.query < p.len_q(finding.batch) &&
                          finding.key < p.len_kv(finding.batch) &&
                          check.verdict == Verdict::kViolation;
      if (!inside) continue;
      const std::int64_t head = std::max<std::int64_t>(finding.head, 0);
      Matrix& matrix = heads[{finding.batch, head}];
      matrix.batch = finding.batch;
      matrix.head = head;
      matrix.findings.push_back(&finding);
    }
  Matrix best;
  for (auto& [place, matrix] : heads)
    if (matrix.findings.size() > best.findings.size()) best = matrix;
  return best;
}

// What the mask allows, row by row or, where there are many, band by band.
std::string allowed_bands(const Problem& problem, std::int64_t batch, double sx,
                          double sy) {
  const std::int64_t rows = problem.len_q(batch);
  const std::int64_t bands = std::min(rows, kBands);
  const double height = static_cast<double>(rows) * sy;
  const double band = height / static_cast<double>(bands);
  std::string path;
  KeyRanges allowed;
  for (std::int64_t b = 0; b < bands; ++b) {
    const std::int64_t row = (2 * b + 1) * rows / (2 * bands);
    problem.mask.allowed(problem.row(batch, row), allowed);
    for (const KeyRange& range : allowed.ranges())
      path += fmt::format(
          "M{:.2f} {:.2f}h{:.2f}v{:.2f}h-{:.2f}z",
          static_cast<double>(range.begin) * sx, static_cast<double>(b) * band,
          static_cast<double>(range.end - range.begin) * sx, band + 0.05,
          static_cast<double>(range.end - range.begin) * sx);
  }
  return "<path class=\"may\" d=\"" + path + "\"/>";
}

std::string found_marks(const Matrix& matrix, double sx, double sy,
                        double width) {
  std::string out;
  for (const Finding* finding : matrix.findings) {
    const double side = 4;
    const double y = (static_cast<double>(finding->query) + 0.5) * sy;
    const double x = finding->key < 0
                         ? width + 6
                         : (static_cast<double>(finding->key) + 0.5) * sx;
    out += fmt::format(
        "<rect class=\"found\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{}\" "
        "height=\"{}\"/>",
        x - side / 2, y - side / 2, side, side);
  }
  return out;
}

}  // namespace

std::string html_whole_matrix(const ProblemResult& problem,
                              const std::string& id) {
  const Matrix matrix = most_found(problem);
  if (matrix.findings.empty()) return {};
  const Problem& p = problem.problem;
  const std::int64_t rows = p.len_q(matrix.batch);
  const std::int64_t columns = p.len_kv(matrix.batch);
  if (rows < 1 || columns < 1) return {};
  const double longest = static_cast<double>(std::max(rows, columns));
  // A decode step is one row of thousands of keys: still a visible strip.
  const double width =
      std::max(kMatrix * static_cast<double>(columns) / longest, 12.0);
  const double height =
      std::max(kMatrix * static_cast<double>(rows) / longest, 12.0);
  const double sx = width / static_cast<double>(columns);
  const double sy = height / static_cast<double>(rows);
  const std::string words = fmt::format(
      "The whole matrix, batch {}, head {}: {} by {}, with the places of {}",
      matrix.batch, matrix.head, counted(rows, "row"), counted(columns, "key"),
      counted(std::ssize(matrix.findings), "finding"));
  return fmt::format(
             "<figure><figcaption>{0}. Marks beside it are rows.</figcaption>"
             "<svg class=\"matrix\" role=\"img\" aria-labelledby=\"{1}-title\" "
             "viewBox=\"-4 -4 {2:.1f} {3:.1f}\" width=\"{2:.0f}\" "
             "height=\"{3:.0f}\"><title id=\"{1}-title\">{0}</title><rect "
             "class=\"not\" width=\"{4:.2f}\" height=\"{5:.2f}\"/>",
             words, id, width + 18, height + 8, width, height) +
         allowed_bands(p, matrix.batch, sx, sy) +
         found_marks(matrix, sx, sy, width) + "</svg></figure>\n";
}

std::string html_influence_map(const ProblemResult& problem,
                               const std::string& id) {
  if (!problem.map || map_columns(*problem.map) == 0) return {};
  const InfluenceMap& map = *problem.map;
  std::string sentences;
  for (const std::string& sentence : influence_sentences(map, kMostSentences))
    sentences += "<li>" + html_text(sentence) + "</li>";
  return fmt::format(
             "<h5 id=\"{}\">Which keys move which rows</h5>"
             "<p class=\"soft\">Measured on the smallest failing case, batch "
             "{}, head {}: <code>{}</code></p><div class=\"panels\">",
             id, map.batch, map.head, html_name(map.problem)) +
         panel(map, id, MapView::kDifference, "main",
               "Observed against expected") +
         panel(map, id + "-e", MapView::kExpected, "small", "Expected") +
         panel(map, id + "-o", MapView::kObserved, "small", "Observed") +
         "</div>" + legend(map) +
         (sentences.empty() ? ""
                            : "<ul class=\"lines\">" + sentences + "</ul>") +
         zooms(map, id) + "\n";
}

}  // namespace attnguard
