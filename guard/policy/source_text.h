// The text of a policy file, its lines, and the errors found in it.
//
// Places are byte offsets into text(); location() turns one into a line and a
// column. Columns count Unicode code points, so that a caret printed under the
// line lands where an editor's cursor does.
#ifndef ATTNGUARD_GUARD_POLICY_SOURCE_TEXT_H_
#define ATTNGUARD_GUARD_POLICY_SOURCE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/policy_yaml.h"

namespace attnguard {

// Bytes of the well-formed UTF-8 sequence at `at`, or 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

// The code point at `at` as a terminal may safely show it: control characters
// and stray bytes become escapes such as \x1b, direction overrides \u202e.
// `length` is set to the bytes it took, at least 1.
std::string visible_char(std::string_view text, std::size_t at,
                         std::size_t& length);

// The whole text made visible, cut to at most `most` code points and "...".
std::string visible_text(std::string_view text, std::size_t most);

class SourceText {
 public:
  // A byte order mark is dropped, and CR LF and a lone CR become LF: every
  // later stage counts the same lines.
  SourceText(std::string_view text, std::string_view name);

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

  // Offsets past the end mean the end.
  SourceLocation location(std::size_t offset) const;
  int line_number(std::size_t offset) const;
  std::string_view line_at(std::size_t offset) const;

  // `line` and `column` count from 0, the column in bytes.
  std::size_t offset_of(int line, int column) const;

 private:
  std::size_t line_index(std::size_t offset) const;

  std::string text_;
  std::string name_;
  std::vector<std::size_t> line_starts_ = {0};
};

// Collects the errors of one text.
class DiagnosticSink {
 public:
  // A file with more errors than this says how many are not shown.
  static constexpr std::size_t kMostKept = 50;

  explicit DiagnosticSink(const SourceText& source) : source_(source) {}

  void error(std::size_t offset, std::string_view message);
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }

  // For messages that point at a second place.
  std::string line_of(std::size_t offset) const {
    return std::to_string(source_.line_number(offset));
  }

  // In the order of the text, each error once.
  std::vector<PolicyDiagnostic> take();

 private:
  const SourceText& source_;
  std::vector<PolicyDiagnostic> kept_;
  std::size_t count_ = 0;
  std::size_t first_dropped_ = 0;
};

// Reports what YAML cannot hold: bytes that are not UTF-8 and control
// characters. False when there is any.
bool check_encoding(const SourceText& source, DiagnosticSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_SOURCE_TEXT_H_
