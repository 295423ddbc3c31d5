// The policy as canonical YAML. Problems are grouped back into products, so
// what is printed is about as long as what was written.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "guard/base/text.h"
#include "guard/policy/policy_reader.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

// For each field of all_problem_fields(), its values as text. A field that
// the problem line leaves out has the one value "".
using Product = std::vector<std::vector<std::string>>;

Product product_of(const Problem& problem) {
  Product product;
  for (const ProblemField& field : all_problem_fields())
    product.push_back(
        {field.get == nullptr ? std::string() : field.get(problem)});
  return product;
}

bool left_out(const std::vector<std::string>& values) {
  return values.front().empty();
}

// Whether b's problems follow a's when b's values of this field are appended
// to a's: all other fields are equal.
bool extends(const Product& a, const Product& b, std::size_t field) {
  if (left_out(a[field]) || left_out(b[field])) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (i != field && a[i] != b[i]) return false;
  return true;
}

// From the last field to the first, so that whatever varies slower is still a
// single value: the expansion then gives back the same order.
std::vector<Product> grouped(const std::vector<PolicyProblem>& problems) {
  std::vector<Product> products;
  for (const PolicyProblem& problem : problems)
    products.push_back(product_of(problem.problem));
  for (std::size_t field = all_problem_fields().size(); field-- > 0;) {
    std::vector<Product> merged;
    for (Product& product : products) {
      if (!merged.empty() && extends(merged.back(), product, field)) {
        auto& values = merged.back()[field];
        values.insert(values.end(), product[field].begin(),
                      product[field].end());
      } else {
        merged.push_back(std::move(product));
      }
    }
    products = std::move(merged);
  }
  return products;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    const std::string shown = visible_char(text, at, length);
    if (shown == "\"" || shown == "\\") out += '\\';
    out += shown;
  }
  return out + '"';
}

std::string value_text(const std::string& value) {
  const auto pieces = split(value, ',');
  if (pieces.size() > 1 &&
      std::all_of(pieces.begin(), pieces.end(), [](std::string_view p) {
        return parse_int(p).has_value();
      })) {
    std::string list;
    for (std::string_view piece : pieces)
      list += (list.empty() ? "[" : ", ") + std::string(piece);
    return list + ']';
  }
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
  };
  return std::all_of(value.begin(), value.end(), plain) ? value : quoted(value);
}

std::string values_text(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values)
    list += (list.empty() ? "" : ", ") + value_text(value);
  // A value of several numbers is a list in a list.
  const bool alone = values.size() == 1 && list.front() != '[';
  return alone ? list : '[' + list + ']';
}

std::string problems_text(const std::vector<PolicyProblem>& problems) {
  if (problems.empty()) return {};
  std::string out = "problems:\n";
  for (const Product& product : grouped(problems)) {
    std::string_view lead = "  - ";
    for (std::size_t i = 0; i < product.size(); ++i) {
      if (left_out(product[i])) continue;
      out += lead;
      out += std::string(all_problem_fields()[i].name) + ": " +
             values_text(product[i]) + '\n';
      lead = "    ";
    }
  }
  return out;
}

std::string tolerance_text(const Tolerance& tolerance) {
  switch (tolerance.kind) {
    case Tolerance::Kind::kExact:
      return "exact";
    case Tolerance::Kind::kNumber:
      return format_double(tolerance.number);
    case Tolerance::Kind::kAuto:
      break;
  }
  return "auto";
}

std::string tolerances_text(const std::map<Dtype, Tolerance>& by_dtype) {
  const auto& first = by_dtype.begin()->second;
  const bool same =
      by_dtype.size() == all_dtypes().size() &&
      std::all_of(by_dtype.begin(), by_dtype.end(),
                  [&](const auto& item) { return item.second == first; });
  if (same) return tolerance_text(first);
  std::string out;
  for (const auto& [dtype, tolerance] : by_dtype)
    out += (out.empty() ? "{" : ", ") + std::string(dtype_name(dtype)) + ": " +
           tolerance_text(tolerance);
  return out + '}';
}

std::string settings_text(const SettingsPatch& patch,
                          const std::string& indent) {
  std::string out;
  if (patch.coverage)
    out += indent + "coverage: " + std::string(coverage_name(*patch.coverage)) +
           '\n';
  if (!patch.severities.empty()) out += indent + "checks:\n";
  for (const auto& [id, severity] : patch.severities)
    out +=
        indent + "  " + id + ": " + std::string(severity_name(severity)) + '\n';
  std::string tolerances;
  for (const auto& [id, by_dtype] : patch.tolerances)
    if (!by_dtype.empty())
      tolerances +=
          indent + "  " + id + ": " + tolerances_text(by_dtype) + '\n';
  if (!tolerances.empty()) out += indent + "tolerances:\n" + tolerances;
  return out;
}

std::string suppressions_text(const std::vector<Suppression>& suppressions) {
  std::string out;
  for (const Suppression& one : suppressions) {
    if (one.baseline) continue;
    std::string_view lead = "  - ";
    for (const SuppressionKeyInfo& info : suppression_keys()) {
      const bool left_out = info.text == nullptr
                                ? !one.expires
                                : !info.required && (one.*(info.text)).empty();
      if (left_out ||
          (!info.required && info.text != nullptr && one.*(info.text) == "*"))
        continue;
      out += lead;
      out += std::string(info.name) + ": " +
             (info.text == nullptr ? date_text(*one.expires)
                                   : quoted(one.*(info.text))) +
             '\n';
      lead = "    ";
    }
  }
  return out.empty() ? out : "suppressions:\n" + out;
}

// A key can stand only once: patches of one glob become one, at the place of
// the last.
std::vector<SettingsPatch> distinct_globs(std::vector<SettingsPatch> patches) {
  std::vector<SettingsPatch> distinct;
  for (SettingsPatch& patch : patches) {
    const auto same = std::find_if(
        distinct.begin(), distinct.end(), [&](const SettingsPatch& other) {
          return other.engine_glob == patch.engine_glob;
        });
    if (same != distinct.end()) {
      SettingsPatch combined = std::move(*same);
      distinct.erase(same);
      override_with(combined, patch);
      patch = std::move(combined);
    }
    distinct.push_back(std::move(patch));
  }
  return distinct;
}

}  // namespace

std::string print_policy(const Policy& policy) {
  std::string out = "version: 1\nseed: " + std::to_string(policy.seed) + '\n';
  std::vector<SettingsPatch> patches = policy.patches;
  if (!patches.empty() && patches.front().engine_glob == "*") {
    out += settings_text(patches.front(), "");
    patches.erase(patches.begin());
  }
  out += problems_text(policy.problems);
  std::string engines;
  for (const SettingsPatch& patch : distinct_globs(std::move(patches))) {
    const std::string settings = settings_text(patch, "    ");
    engines += "  " + quoted(patch.engine_glob) + ':' +
               (settings.empty() ? " {}\n" : '\n' + settings);
  }
  // Left out would mean the built-in overrides.
  out += engines.empty() ? "engines: {}\n" : "engines:\n" + engines;
  return out + suppressions_text(policy.suppressions);
}

}  // namespace attnguard
