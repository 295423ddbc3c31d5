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

// The same with line breaks spelled out, too: for names within a line, so that
// what stands in one never begins a line of its own.
std::string terminal_line(std::string_view text);

// For XML 1.0, before escaping: invalid UTF-8 becomes U+FFFD, and characters
// that no XML document may hold, escaped or not, are left out.
std::string xml_text(std::string_view text);

// For HTML, in text and in quoted attributes: as terminal_text, markup is
// escaped, and characters that reorder the text around them are spelled out
// ("\u202e").
std::string html_text(std::string_view text);

// For Markdown within a line, GitHub's tables included: as html_text, without
// line breaks, and with everything that is markup escaped.
std::string markdown_text(std::string_view text);

// The text as a code span of a Markdown line, in tables too.
std::string markdown_code(std::string_view text);

// For GitHub's workflow commands, `::error file=...::message`: the message,
// and the value of a property. Line breaks of messages are kept, escaped.
std::string github_message(std::string_view text);
std::string github_property(std::string_view text);

// A path as a URI reference: what is not unreserved or '/' is in percent form,
// and absolute paths begin with "file://".
std::string path_uri(std::string_view path);

// At most `most` bytes, cut between characters, with "..." where it was cut.
std::string shortened(std::string_view text, std::size_t most);

// The number of characters of a valid UTF-8 text.
std::size_t text_width(std::string_view text);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_SAFE_TEXT_H_
