#include "guard/policy/source_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace attnguard {
namespace {

constexpr std::size_t kLongestMessage = 500;

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// Of a well-formed sequence of `length` bytes.
std::uint32_t code_point(std::string_view text, std::size_t at,
                         std::size_t length) {
  if (length == 1) return byte_at(text, at);
  std::uint32_t value = byte_at(text, at) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
    value = (value << 6) | (byte_at(text, at + i) & 0x3fu);
  return value;
}

std::string hex(std::string_view prefix, std::uint32_t value, int digits) {
  char buffer[16];
  std::snprintf(buffer, sizeof(buffer), "%0*x", digits, value);
  return std::string(prefix) + buffer;
}

bool is_control_character(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

// These reorder the text around them on screen.
bool is_direction_override(std::uint32_t point) {
  return (point >= 0x202a && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

// Control characters that YAML allows: tab, line feed, next line.
bool is_yaml_char(std::uint32_t point) {
  return !is_control_character(point) || point == '\t' || point == '\n' ||
         point == 0x85;
}

std::string normalized(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool ends_line = text[i] == '\r';
    if (ends_line && i + 1 < text.size() && text[i + 1] == '\n') ++i;
    out += ends_line ? '\n' : text[i];
  }
  return out;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const std::uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0   ? 4
                             : lead >= 0xe0 ? 3
                             : lead >= 0xc2 ? 2
                                            : 0;
  if (length == 0 || lead > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte_at(text, at + i) & 0xc0) != 0x80) return 0;
  const std::uint32_t point = code_point(text, at, length);
  const bool overlong =
      (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return overlong || surrogate || point > 0x10ffff ? 0 : length;
}

std::string visible_char(std::string_view text, std::size_t at,
                         std::size_t& length) {
  length = utf8_length(text, at);
  if (length == 0) {
    length = 1;
    return hex("\\x", byte_at(text, at), 2);
  }
  const std::uint32_t point = code_point(text, at, length);
  if (is_control_character(point)) return hex("\\x", point, 2);
  if (is_direction_override(point)) return hex("\\u", point, 4);
  return std::string(text.substr(at, length));
}

std::string visible_text(std::string_view text, std::size_t most) {
  std::string out;
  std::size_t shown = 0;
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    if (shown++ == most) return out + "...";
    out += visible_char(text, at, length);
  }
  return out;
}

SourceText::SourceText(std::string_view text, std::string_view name)
    : text_(normalized(text)), name_(name) {
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
}

std::size_t SourceText::line_index(std::size_t offset) const {
  const auto after =
      std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::size_t>(after - line_starts_.begin()) - 1;
}

SourceLocation SourceText::location(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const std::size_t line = line_index(offset);
  int column = 1;
  for (std::size_t at = line_starts_[line]; at < offset; ++column)
    at += std::max<std::size_t>(utf8_length(text_, at), 1);
  return {name_, static_cast<int>(line) + 1, column};
}

int SourceText::line_number(std::size_t offset) const {
  return static_cast<int>(line_index(std::min(offset, text_.size()))) + 1;
}

std::string_view SourceText::line_at(std::size_t offset) const {
  const std::size_t start =
      line_starts_[line_index(std::min(offset, text_.size()))];
  const std::string_view rest = std::string_view(text_).substr(start);
  return rest.substr(0, rest.find('\n'));
}

std::size_t SourceText::offset_of(int line, int column) const {
  if (line < 0 || column < 0) return 0;
  const auto row = static_cast<std::size_t>(line);
  if (row >= line_starts_.size()) return text_.size();
  const std::size_t offset =
      line_starts_[row] + static_cast<std::size_t>(column);
  return std::min(offset, text_.size());
}

void DiagnosticSink::error(std::size_t offset, std::string_view message) {
  if (count_++ >= kMostKept) {
    if (count_ == kMostKept + 1) first_dropped_ = offset;
    return;
  }
  kept_.push_back({source_.location(offset),
                   visible_text(message, kLongestMessage),
                   std::string(source_.line_at(offset))});
}

std::vector<PolicyDiagnostic> DiagnosticSink::take() {
  std::stable_sort(kept_.begin(), kept_.end(),
                   [](const PolicyDiagnostic& a, const PolicyDiagnostic& b) {
                     if (a.location.line != b.location.line)
                       return a.location.line < b.location.line;
                     return a.location.column < b.location.column;
                   });
  const auto same = [](const PolicyDiagnostic& a, const PolicyDiagnostic& b) {
    return a.location == b.location && a.message == b.message;
  };
  kept_.erase(std::unique(kept_.begin(), kept_.end(), same), kept_.end());
  if (count_ > kMostKept)
    kept_.push_back({source_.location(first_dropped_),
                     "too many errors: " + std::to_string(count_ - kMostKept) +
                         " more are not shown",
                     std::string(source_.line_at(first_dropped_))});
  return std::move(kept_);
}

bool check_encoding(const SourceText& source, DiagnosticSink& sink) {
  const std::string_view text = source.text();
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    sink.error(0, "the file is UTF-16; save it as UTF-8");
    return false;
  }
  bool good = true;
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text, at);
    if (length == 0) {
      sink.error(at, "the byte " + hex("0x", byte_at(text, at), 2) +
                         " is not UTF-8; save the file as UTF-8");
      return false;  // What follows is guesswork.
    }
    const std::uint32_t point = code_point(text, at, length);
    if (is_yaml_char(point)) continue;
    sink.error(at, "the control character " + hex("U+", point, 4) +
                       " is not allowed; remove it");
    good = false;
  }
  return good;
}

}  // namespace attnguard
