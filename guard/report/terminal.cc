#include "guard/report/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "guard/report/safe_text.h"

namespace attnguard {

std::string Painter::operator()(Ink ink, std::string_view text) const {
  if (!color_ || ink == Ink::kPlain || text.empty()) return std::string(text);
  const auto code = [ink] {
    switch (ink) {
      case Ink::kBold:
        return "1";
      case Ink::kDim:
        return "2";
      case Ink::kRed:
        return "31";
      case Ink::kGreen:
        return "32";
      case Ink::kYellow:
        return "33";
      case Ink::kMagenta:
      case Ink::kPlain:
        break;
    }
    return "35";
  }();
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string verdict_words(Verdict verdict) {
  std::string words{verdict_name(verdict)};
  std::ranges::replace(words, '_', ' ');
  return words;
}

Ink verdict_ink(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return Ink::kGreen;
    case Verdict::kViolation:
      return Ink::kRed;
    case Verdict::kInconclusive:
      return Ink::kYellow;
    case Verdict::kEngineError:
      return Ink::kMagenta;
    case Verdict::kNotApplicable:
    case Verdict::kUnsupported:
      break;
  }
  return Ink::kDim;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t have = text_width(text);
  return std::string(width > have ? width - have : 0, ' ') + std::string(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t have = text_width(text);
  return std::string(text) + std::string(width > have ? width - have : 0, ' ');
}

std::vector<std::string> table_lines(std::span<const Column> columns,
                                     std::size_t indent, const Painter& paint) {
  const std::size_t rows = columns.empty() ? 0 : columns.front().cells.size();
  std::vector<std::string> lines(rows + 1, std::string(indent, ' '));
  for (const Column& column : columns) {
    const bool last = &column == &columns.back();
    std::size_t width = text_width(column.title);
    for (const Cell& cell : column.cells)
      width = std::max(width, text_width(cell.text));
    // The last column ends where its words do: no blanks at line ends.
    const auto padded = [&](const std::string& text) {
      if (column.right) return pad_left(text, width);
      return last ? text : pad_right(text, width);
    };
    const std::string gap = last ? "" : "  ";
    lines[0] += paint(Ink::kDim, padded(column.title)) + gap;
    for (std::size_t row = 0; row < rows; ++row) {
      const Cell& cell = column.cells[row];
      lines[row + 1] += paint(cell.ink, padded(cell.text)) + gap;
    }
  }
  return lines;
}

std::string indented(std::string_view text, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) out += std::string(indent, ' ') + std::string(line);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace attnguard
