#include "guard/report/safe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace attnguard {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // In bytes; 0: no valid sequence starts here.
};

// The code point that starts at `text`, by RFC 3629: no overlong forms, no
// surrogates, nothing beyond U+10FFFF.
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint8_t>(text[i]);
  };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size()) return {};
  std::uint32_t value = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800,
                                                      0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF) return {};
  if (value >= 0xD800 && value < 0xE000) return {};
  return {value, length};
}

// Calls append(code point, its bytes, out) for each valid sequence.
template <typename Append>
std::string map_code_points(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (point.length == 0) {
      out += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    append(point.value, text.substr(0, point.length), out);
    text.remove_prefix(point.length);
  }
  return out;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  return map_code_points(
      text, [](std::uint32_t value, std::string_view bytes, std::string& out) {
        const bool control =
            (value < 0x20 && value != '\n') || (value >= 0x7F && value < 0xA0);
        if (control)
          out += fmt::format("\\x{:02x}", value);
        else
          out += bytes;
      });
}

std::string xml_text(std::string_view text) {
  return map_code_points(
      text, [](std::uint32_t value, std::string_view bytes, std::string& out) {
        const bool legal =
            value >= 0x20 ? value != 0xFFFE && value != 0xFFFF
                          : value == '\t' || value == '\n' || value == '\r';
        if (legal) out += bytes;
      });
}

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace attnguard
