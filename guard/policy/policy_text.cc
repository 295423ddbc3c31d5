#include "guard/policy/policy_text.h"

#include <algorithm>
#include <vector>

#include "guard/base/text.h"
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
std::vector<Product> grouped(std::span<const PolicyProblem> problems) {
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
  return std::all_of(value.begin(), value.end(), plain) ? value
                                                        : quoted_yaml(value);
}

std::string values_text(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values)
    list += (list.empty() ? "" : ", ") + value_text(value);
  // A value of several numbers is a list in a list.
  const bool alone = values.size() == 1 && list.front() != '[';
  return alone ? list : '[' + list + ']';
}

}  // namespace

std::string quoted_yaml(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    const std::string shown = visible_char(text, at, length);
    if (shown == "\"" || shown == "\\") out += '\\';
    out += shown;
  }
  return out + '"';
}

std::string problem_entries_text(std::span<const PolicyProblem> problems) {
  std::string out;
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

std::string suppression_entry_text(const Suppression& suppression) {
  std::string out;
  std::string_view lead = "  - ";
  for (const SuppressionKeyInfo& info : suppression_keys()) {
    std::string value;
    if (info.text == nullptr && suppression.expires)
      value = date_text(*suppression.expires);
    if (info.text != nullptr) value = suppression.*(info.text);
    if (!info.required && (value.empty() || value == "*")) continue;
    out += lead;
    out += std::string(info.name) + ": " +
           (info.text == nullptr ? value : quoted_yaml(value)) + '\n';
    lead = "    ";
  }
  return out;
}

}  // namespace attnguard
