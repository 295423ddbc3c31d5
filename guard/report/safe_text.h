// Names and messages come from engines and users and may hold anything. These
// make them fit to print.
#ifndef ATTNGUARD_GUARD_REPORT_SAFE_TEXT_H_
#define ATTNGUARD_GUARD_REPORT_SAFE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace attnguard {

// For a terminal: invalid UTF-8 becomes U+FFFD, and every control character
// but the line break is spelled out ("\x1b"), so that no name can move the
// cursor or colour the screen.
std::string terminal_text(std::string_view text);

// For XML 1.0, before escaping: invalid UTF-8 becomes U+FFFD, and characters
// that no XML document may hold, escaped or not, are left out.
std::string xml_text(std::string_view text);

// The number of characters of a valid UTF-8 text.
std::size_t text_width(std::string_view text);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_SAFE_TEXT_H_
