// Drawing for terminals: colours that can be off, and tables whose columns
// line up.
#ifndef ATTNGUARD_GUARD_REPORT_TERMINAL_H_
#define ATTNGUARD_GUARD_REPORT_TERMINAL_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/finding/finding.h"

namespace attnguard {

enum class Ink { kPlain, kBold, kDim, kRed, kGreen, kYellow, kMagenta };

// Texts are padded before they are painted: escape sequences have no width.
class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}
  std::string operator()(Ink ink, std::string_view text) const;

 private:
  bool color_;
};

// The words and the colour of a verdict: "engine error", magenta.
std::string verdict_words(Verdict verdict);
Ink verdict_ink(Verdict verdict);

// "1 problem", "2 problems".
std::string counted(std::int64_t count, std::string_view noun);

std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);

struct Cell {
  std::string text;
  Ink ink = Ink::kPlain;
};

struct Column {
  std::string title;
  bool right = true;  // Numbers stand right, words left.
  std::vector<Cell> cells;
};

// One line per row, the title's first; two blanks between columns and
// `indent` before the first. Every column has the same number of cells.
std::vector<std::string> table_lines(std::span<const Column> columns,
                                     std::size_t indent, const Painter& paint);

// Each line of a text of several behind `indent` blanks, with a line break.
std::string indented(std::string_view text, std::size_t indent);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_TERMINAL_H_
