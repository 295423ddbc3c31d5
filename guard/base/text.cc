#include "guard/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace attnguard {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != separator || depth > 0)) continue;
    pieces.push_back(trim(text.substr(start, i - start)));
    start = i + 1;
  }
  return pieces;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

namespace {

char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Insertions, deletions, replacements and swaps of neighbours that make one
// text the other, whatever the case of letters.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  const auto same = [&](std::size_t i, std::size_t j) {
    return ascii_lower(a[i - 1]) == ascii_lower(b[j - 1]);
  };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({above[j - 1] + !same(i, j), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

// The dashes of an option are no letters of it that somebody got right.
std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// Whether somebody who wrote `name` can have meant `candidate`. Among short
// words nearly all are two edits apart. One edit of up to three letters still
// makes another word of many, if it is not the first letter that was right.
bool can_mean(std::string_view name, std::string_view candidate,
              std::size_t distance) {
  constexpr std::size_t kShort = 3, kLettersPerEdit = 3;
  const std::string_view letters = without_dashes(name);
  const std::string_view meant = without_dashes(candidate);
  if (letters.empty() || meant.empty()) return false;
  if (letters.size() > kShort)
    return distance <=
           std::max<std::size_t>(letters.size() / kLettersPerEdit, 1);
  const bool swapped = letters.size() > 1 && meant.size() > 1 &&
                       letters.size() == meant.size() &&
                       ascii_lower(letters[0]) == ascii_lower(meant[1]) &&
                       ascii_lower(letters[1]) == ascii_lower(meant[0]);
  return distance <= 1 &&
         (ascii_lower(letters[0]) == ascii_lower(meant[0]) || swapped);
}

// The one known name that begins with `name`; empty when several do.
std::string_view completed(std::string_view name,
                           std::span<const std::string_view> known) {
  std::string_view found;
  if (without_dashes(name).size() < 2) return found;
  for (std::string_view candidate : known) {
    if (!candidate.starts_with(name)) continue;
    if (!found.empty()) return {};
    found = candidate;
  }
  return found;
}

}  // namespace

std::string_view nearest_name(std::string_view name,
                              std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = name.size() + 1;
  for (std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance || !can_mean(name, candidate, distance))
      continue;
    best_distance = distance;
    best = candidate;
  }
  return best.empty() ? completed(name, known) : best;
}

std::string suggestion(std::string_view name,
                       std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(name, known);
  if (!nearest.empty()) return "; did you mean '" + std::string(nearest) + "'?";
  std::string text = "; known:";
  for (std::string_view candidate : known)
    text += (candidate == known.front() ? " " : ", ") + std::string(candidate);
  return text;
}

std::string shell_quote(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-+=:,./@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) &&
        pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace attnguard
