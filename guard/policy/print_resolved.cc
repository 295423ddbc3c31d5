// The policy with the place of every value behind it.
#include <algorithm>

#include "guard/base/text.h"
#include "guard/policy/policy_text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/resolved_values.h"
#include "guard/policy/source_text.h"

namespace attnguard {
namespace {

constexpr std::size_t kCommentColumn = 36;

std::string place_text(const SourceLocation& place) {
  if (place.file.empty()) return "built-in";
  return visible_text(place.file, 300) + ':' + std::to_string(place.line);
}

std::string with_place(std::string line, const SourceLocation& place) {
  if (line.size() < kCommentColumn) line.resize(kCommentColumn, ' ');
  return line + " # " + place_text(place) + '\n';
}

bool one_line(std::span<const ResolvedValue> values) {
  return std::ranges::all_of(values, [&](const ResolvedValue& value) {
    return value.value == values.front().value &&
           value.place == values.front().place;
  });
}

// The values of one check: a line for all dtypes, or one for each.
std::string tolerance_lines(std::span<const ResolvedValue> values,
                            const std::string& indent) {
  const ResolvedValue& first = values.front();
  const std::string name = indent + first.check + ':';
  if (one_line(values) && values.size() == all_dtypes().size())
    return with_place(name + ' ' + first.value, first.place);
  std::string out = name + '\n';
  for (const ResolvedValue& value : values)
    out += with_place(indent + "  " + value.dtype + ": " + value.value,
                      value.place);
  return out;
}

std::string settings_lines(std::span<const ResolvedValue> values,
                           const std::string& indent) {
  std::string out, key;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ResolvedValue& value = values[i];
    if (value.check.empty()) {
      out += with_place(indent + value.key + ": " + value.value, value.place);
      continue;
    }
    if (key != value.key) out += indent + value.key + ":\n";
    key = value.key;
    if (value.dtype.empty()) {
      out += with_place(indent + "  " + value.check + ": " + value.value,
                        value.place);
      continue;
    }
    std::size_t end = i;
    while (end < values.size() && values[end].key == key &&
           values[end].check == value.check)
      ++end;
    out += tolerance_lines(values.subspan(i, end - i), indent + "  ");
    i = end - 1;
  }
  return out;
}

std::string problem_lines(const std::vector<PolicyProblem>& problems) {
  if (problems.empty()) return {};
  std::string out = "problems:\n";
  const std::span<const PolicyProblem> all(problems);
  for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
    while (end < all.size() && all[end].location == all[i].location) ++end;
    out += "  # " + place_text(all[i].location) + ": " +
           std::to_string(end - i) +
           (end - i == 1 ? " problem\n" : " problems\n");
    out += problem_entries_text(all.subspan(i, end - i));
  }
  return out;
}

// What a patch says, for the engines that its pattern fits.
std::vector<ResolvedValue> patch_values(
    const SettingsPatch& patch, std::span<const std::string_view> check_ids) {
  Policy alone;
  alone.patches.push_back(patch);
  std::vector<ResolvedValue> values =
      resolved_values(alone, patch.engine_glob, check_ids);
  std::erase_if(values, [](const ResolvedValue& value) {
    return value.place.file.empty();
  });
  return values;
}

std::string engine_lines(const Policy& policy,
                         std::span<const std::string_view> check_ids) {
  std::string out;
  std::vector<std::string_view> seen;
  for (const SettingsPatch& patch : policy.patches) {
    const std::vector<ResolvedValue> values = patch_values(patch, check_ids);
    if (glob_match(patch.engine_glob, "") || values.empty()) continue;
    // A key can stand only once: the later of two is a comment.
    const bool again = std::ranges::find(seen, patch.engine_glob) != seen.end();
    seen.push_back(patch.engine_glob);
    std::string lines = "  " + quoted_yaml(patch.engine_glob) + ":\n" +
                        settings_lines(values, "    ");
    if (again) {
      std::string comment = "  # and later, winning over the above:\n";
      for (std::string_view rest = lines; !rest.empty();) {
        const std::size_t line_end = rest.find('\n') + 1;
        comment += "  #" + std::string(rest.substr(0, line_end));
        rest.remove_prefix(line_end);
      }
      lines = std::move(comment);
    }
    out += lines;
  }
  return out.empty() ? "engines: {}\n" : "engines:\n" + out;
}

}  // namespace

std::string print_resolved(const Policy& policy, std::string_view engine,
                           std::span<const std::string_view> check_ids) {
  std::string out = "version: 1\n";
  out += settings_lines(resolved_values(policy, engine, check_ids), "");
  out += problem_lines(policy.problems);
  out += engine.empty() ? engine_lines(policy, check_ids) : "engines: {}\n";
  std::string suppressions;
  for (const Suppression& one : policy.suppressions) {
    if (!engine.empty() && !one.fits_engine(engine)) continue;
    suppressions +=
        "  # " + place_text(one.location) + '\n' + suppression_entry_text(one);
  }
  return out + (suppressions.empty() ? "" : "suppressions:\n" + suppressions);
}

}  // namespace attnguard
