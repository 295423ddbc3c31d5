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

// C0, DEL and C1, but the line break.
bool is_control_point(std::uint32_t value) {
  return (value < 0x20 && value != '\n') || (value >= 0x7F && value < 0xA0);
}

// Reorders, hides or joins the text around it, or is no character at all.
bool is_invisible(std::uint32_t value) {
  return (value >= 0x200B && value <= 0x200F) ||
         (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2060 && value <= 0x2069) || value == 0xFEFF ||
         (value & 0xFFFE) == 0xFFFE;
}

void append_html(std::uint32_t value, std::string_view bytes,
                 std::string& out) {
  if (is_control_point(value)) {
    out += fmt::format("\\x{:02x}", value);
  } else if (is_invisible(value)) {
    out += fmt::format("\\u{:04x}", value);
  } else if (std::string_view("&<>\"'").find(bytes) != std::string_view::npos) {
    out += fmt::format("&#{};", value);
  } else {
    out += bytes;
  }
}

std::string percent_encoded(std::string_view text, std::string_view chars) {
  std::string out;
  for (char c : text)
    if (chars.find(c) == std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<std::uint8_t>(c));
  return out;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  return map_code_points(
      text, [](std::uint32_t value, std::string_view bytes, std::string& out) {
        if (is_control_point(value))
          out += fmt::format("\\x{:02x}", value);
        else
          out += bytes;
      });
}

std::string terminal_line(std::string_view text) {
  std::string line;
  for (const char c : terminal_text(text))
    if (c == '\n')
      line += "\\x0a";
    else
      line += c;
  return line;
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

std::string html_text(std::string_view text) {
  return map_code_points(text, append_html);
}

std::string markdown_text(std::string_view text) {
  static constexpr std::string_view kMarkup = "\\`*_[]#|~$@:";
  return map_code_points(
      text, [](std::uint32_t value, std::string_view bytes, std::string& out) {
        if (value == '\n') {
          out += ' ';
        } else if (value < 0x80 && kMarkup.find(bytes) != kMarkup.npos) {
          // Not a backslash, which code spans and links take literally.
          out += fmt::format("&#{};", value);
        } else {
          append_html(value, bytes, out);
        }
      });
}

std::string markdown_code(std::string_view text) {
  std::string plain = terminal_text(text);
  std::ranges::replace(plain, '\n', ' ');
  std::size_t longest = 0, run = 0;
  std::string out;
  for (char c : plain) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|') out += '\\';  // Tables are split before code is seen.
    out += c;
  }
  const std::string fence(longest + 1, '`');
  const bool padded = out.empty() || out.front() == '`' || out.back() == '`';
  return fence + (padded ? " " : "") + out + (padded ? " " : "") + fence;
}

std::string github_message(std::string_view text) {
  return percent_encoded(terminal_text(text), "%\r\n");
}

std::string github_property(std::string_view text) {
  return percent_encoded(terminal_text(text), "%\r\n:,");
}

std::string path_uri(std::string_view path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (char c : path)
    if (kPlain.find(c) != kPlain.npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<std::uint8_t>(c));
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80)
    --end;
  return std::string(text.substr(0, end)) + "...";
}

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace attnguard
