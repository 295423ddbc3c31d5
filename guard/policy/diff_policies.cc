// What two policies differ in, in effect rather than in text.
#include <algorithm>
#include <map>
#include <set>

#include "guard/base/text.h"
#include "guard/policy/policy_text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/resolved_values.h"
#include "guard/policy/source_text.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostListed = 20;  // Problems of each side.
constexpr std::size_t kNameWidth = 34;

struct Change {
  std::string path;
  std::string before, after;

  friend bool operator==(const Change&, const Change&) = default;
};

// Four dtypes that change alike are one change of the check.
void merge_dtypes(std::vector<Change>& changes) {
  std::map<std::string, std::vector<const Change*>> by_check;
  const auto check_of = [](const Change& change) {
    return change.path.substr(0, change.path.rfind('.'));
  };
  for (const Change& change : changes)
    if (change.path.starts_with("tolerances."))
      by_check[check_of(change)].push_back(&change);
  std::set<std::string> alike;
  for (const auto& [check, same] : by_check)
    if (same.size() == all_dtypes().size() &&
        std::ranges::all_of(same, [&, &same = same](const Change* change) {
          return change->before == same.front()->before &&
                 change->after == same.front()->after;
        }))
      alike.insert(check);
  for (Change& change : changes)
    if (alike.contains(check_of(change)) &&
        change.path.starts_with("tolerances."))
      change.path = check_of(change);
  changes.erase(std::unique(changes.begin(), changes.end()), changes.end());
}

std::vector<Change> changes_for(const Policy& before, const Policy& after,
                                std::string_view engine,
                                std::span<const std::string_view> check_ids) {
  const auto a = resolved_values(before, engine, check_ids);
  const auto b = resolved_values(after, engine, check_ids);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].value != b[i].value)
      changes.push_back({a[i].path(), a[i].value, b[i].value});
  merge_dtypes(changes);
  return changes;
}

std::string change_lines(const std::vector<Change>& changes) {
  std::string out;
  for (const Change& change : changes) {
    std::string name = "  " + change.path;
    if (name.size() < kNameWidth) name.resize(kNameWidth, ' ');
    out += name + "  " + change.before + " -> " + change.after + '\n';
  }
  return out;
}

// Patterns of both, each once.
std::vector<std::string> globs_of(const Policy& before, const Policy& after) {
  std::vector<std::string> globs;
  for (const Policy* policy : {&before, &after})
    for (const SettingsPatch& patch : policy->patches)
      if (!glob_match(patch.engine_glob, "") &&
          std::ranges::find(globs, patch.engine_glob) == globs.end())
        globs.push_back(patch.engine_glob);
  return globs;
}

std::string settings_diff(const Policy& before, const Policy& after,
                          std::span<const std::string_view> check_ids) {
  const std::vector<Change> general = changes_for(before, after, "", check_ids);
  std::string out = change_lines(general);
  if (!out.empty()) out = "every engine\n" + out;
  for (const std::string& glob : globs_of(before, after)) {
    // A pattern fits itself, and so do all wider ones.
    std::vector<Change> own = changes_for(before, after, glob, check_ids);
    std::erase_if(own, [&](const Change& change) {
      return std::ranges::find(general, change) != general.end();
    });
    if (!own.empty())
      out += "engines " + visible_text(quoted_yaml(glob), 200) + '\n' +
             change_lines(own);
  }
  return out;
}

// What each side has more often than the other, in order, and what both have.
struct Difference {
  std::vector<std::string> removed, added;
  std::size_t same = 0;
};

Difference compare(const std::vector<std::string>& before,
                   const std::vector<std::string>& after) {
  Difference difference;
  std::map<std::string, std::int64_t> left;
  for (const std::string& text : before) ++left[text];
  for (const std::string& text : after) {
    if (left[text]-- > 0)
      ++difference.same;
    else
      difference.added.push_back(text);
  }
  for (const std::string& text : before)
    if (left[text]-- > 0) difference.removed.push_back(text);
  return difference;
}

std::string listed(const std::vector<std::string>& texts, char sign) {
  std::string out;
  for (std::size_t i = 0; i < texts.size() && i < kMostListed; ++i)
    out += std::string("  ") + sign + ' ' + texts[i] + '\n';
  if (texts.size() > kMostListed)
    out += std::string("  ") + sign + " and " +
           std::to_string(texts.size() - kMostListed) + " more\n";
  return out;
}

std::string list_diff(const char* what, const std::vector<std::string>& before,
                      const std::vector<std::string>& after) {
  const Difference difference = compare(before, after);
  if (difference.removed.empty() && difference.added.empty()) return {};
  return std::string(what) + ": " + std::to_string(difference.removed.size()) +
         " removed, " + std::to_string(difference.added.size()) + " added, " +
         std::to_string(difference.same) + " in both\n" +
         listed(difference.removed, '-') + listed(difference.added, '+');
}

std::vector<std::string> problem_texts(const Policy& policy) {
  std::vector<std::string> texts;
  for (const PolicyProblem& problem : policy.problems)
    texts.push_back(problem.problem.text());
  return texts;
}

// Each on one line.
std::vector<std::string> suppression_texts(const Policy& policy) {
  std::vector<std::string> texts;
  for (const Suppression& one : policy.suppressions) {
    std::string text = suppression_entry_text(one).substr(4);
    text.pop_back();
    for (std::size_t at = 0; (at = text.find("\n    ")) != text.npos;)
      text.replace(at, 5, ", ");
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

std::string diff_policies(const Policy& before, const Policy& after,
                          std::span<const std::string_view> check_ids) {
  return settings_diff(before, after, check_ids) +
         list_diff("problems", problem_texts(before), problem_texts(after)) +
         list_diff("suppressions", suppression_texts(before),
                   suppression_texts(after));
}

}  // namespace attnguard
