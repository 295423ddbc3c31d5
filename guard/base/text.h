// Small text helpers shared by the parsers: splitting, integers, and the
// nearest known name for an unknown one.
#ifndef ATTNGUARD_GUARD_BASE_TEXT_H_
#define ATTNGUARD_GUARD_BASE_TEXT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnguard {

std::string_view trim(std::string_view text);

// Splits at each `separator` that is not inside parentheses; pieces are
// trimmed, and an empty text gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);

// Whole text only; nullopt on anything else, including overflow.
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// The shortest decimal that parses back to the same double; "nan", "inf" and
// "-inf" for the rest. Independent of the locale.
std::string format_double(double value);

// The known name at the smallest edit distance, or empty when none is near
// enough to be what was meant: up to a third of the letters may be wrong, and
// in words of up to five letters one. Else the only name that begins so.
std::string_view nearest_name(std::string_view name,
                              std::span<const std::string_view> known);

// "; did you mean 'x'?" or, when nothing is near, "; known: a, b, c".
std::string suggestion(std::string_view name,
                       std::span<const std::string_view> known);

// The text as one word of a POSIX shell, quoted where it needs to be.
std::string shell_quote(std::string_view text);

// Shell-style match: '*' any run, '?' any one character.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_TEXT_H_
