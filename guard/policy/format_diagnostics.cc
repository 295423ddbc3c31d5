// The error blocks that a person reads: place, message, line and caret.
#include <algorithm>

#include "guard/policy/policy_yaml.h"
#include "guard/policy/source_text.h"

namespace attnguard {
namespace {

// A longer line is cut around the caret.
constexpr std::size_t kLongestExcerpt = 100;
constexpr std::size_t kKeptBeforeCaret = 60;
constexpr std::size_t kLongestFileName = 300;

struct Excerpt {
  std::string text;
  std::string caret;  // Blanks and '^', as wide as the text before it.
};

// Columns of a cell: its code points, since an escape is plain ASCII.
std::size_t width_of(std::string_view cell) {
  return static_cast<std::size_t>(std::count_if(
      cell.begin(), cell.end(), [](char c) { return (c & '\xc0') != '\x80'; }));
}

Excerpt excerpt_of(std::string_view line, std::size_t column) {
  std::vector<std::size_t> points;  // Where each code point begins.
  for (std::size_t at = 0; at < line.size();
       at += std::max<std::size_t>(utf8_length(line, at), 1))
    points.push_back(at);
  const std::size_t caret = column > 0 ? column - 1 : 0;
  std::size_t first = 0;
  std::size_t last = points.size();
  if (points.size() > kLongestExcerpt) {
    first = caret > kKeptBeforeCaret ? caret - kKeptBeforeCaret : 0;
    first = std::min(first, points.size() - kLongestExcerpt);
    last = first + kLongestExcerpt;
  }
  Excerpt excerpt;
  if (first > 0) excerpt.text = "...";
  std::size_t width = excerpt.text.size();
  for (std::size_t i = first; i < last; ++i) {
    std::size_t length = 0;
    std::string cell = visible_char(line, points[i], length);
    if (line[points[i]] == '\t') cell = " ";
    excerpt.text += cell;
    if (i < caret) width += width_of(cell);
  }
  if (last < points.size()) excerpt.text += "...";
  excerpt.caret = std::string(width, ' ') + '^';
  return excerpt;
}

// "policy.yaml:14:9", as far as it is known.
std::string diagnostic_place(const SourceLocation& at) {
  std::string place = visible_text(at.file, kLongestFileName);
  if (at.line <= 0) return place;
  place += ':' + std::to_string(at.line);
  return at.column > 0 ? place + ':' + std::to_string(at.column) : place;
}

}  // namespace

std::string format_diagnostics(std::span<const PolicyDiagnostic> diagnostics) {
  std::string out;
  for (const PolicyDiagnostic& diagnostic : diagnostics) {
    const SourceLocation& at = diagnostic.location;
    out += diagnostic_place(at) + ": error: " + diagnostic.message + '\n';
    if (diagnostic.source_line.empty()) continue;
    const std::string line = std::to_string(at.line);
    const Excerpt excerpt =
        excerpt_of(diagnostic.source_line,
                   static_cast<std::size_t>(std::max(at.column, 0)));
    out += "  " + line + " | " + excerpt.text + '\n';
    out += "  " + std::string(line.size(), ' ') + " | " + excerpt.caret + '\n';
  }
  return out;
}

}  // namespace attnguard
