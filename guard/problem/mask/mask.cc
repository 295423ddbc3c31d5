#include "guard/problem/mask/mask.h"

#include <algorithm>

#include "guard/base/text.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

// Far above any length, and far enough below overflow for sums of places.
constexpr std::int64_t kLargestValue = std::int64_t{1} << 40;

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const MaskKind* kind : all_mask_kinds()) names.push_back(kind->name);
  return names;
}

// "prefix=N" or "lengths=N:N:..."
std::string usage_of(const MaskParameter& parameter) {
  return std::string(parameter.name) + (parameter.list ? "=N:N:..." : "=N");
}

// Empty unless the text holds what the parameter takes.
std::vector<std::int64_t> parse_values(std::string_view text,
                                       const MaskParameter& parameter) {
  std::vector<std::int64_t> values;
  for (std::string_view piece : split(text, ':')) {
    const auto value = parse_int(piece);
    if (!value || *value < parameter.lowest || *value > kLargestValue)
      return {};
    values.push_back(*value);
  }
  if (values.size() > 1 && !parameter.list) values.clear();
  return values;
}

Status parse_parameter(std::string_view piece, MaskTerm& term,
                       std::vector<bool>& given) {
  const std::string kind(term.kind->name);
  const auto equals = piece.find('=');
  const std::string_view name = trim(piece.substr(0, equals));
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < term.kind->parameters.size(); ++i) {
    const MaskParameter& parameter = term.kind->parameters[i];
    known.push_back(parameter.name);
    if (parameter.name != name) continue;
    if (given[i])
      return invalid_argument("mask " + kind + ": '" + std::string(name) +
                              "' is given twice");
    std::vector<std::int64_t> values;
    if (equals != std::string_view::npos)
      values = parse_values(trim(piece.substr(equals + 1)), parameter);
    if (values.empty())
      return invalid_argument("mask " + kind + ": '" + std::string(piece) +
                              "' needs " + usage_of(parameter) + " with " +
                              (parameter.list ? "integers" : "an integer") +
                              " N >= " + std::to_string(parameter.lowest) +
                              " and at most 2^40");
    term.values.set(i, std::move(values));
    given[i] = true;
    return ok_status();
  }
  if (known.empty())
    return invalid_argument("mask " + kind + " takes no parameters, got '" +
                            std::string(piece) + "'");
  return invalid_argument("mask " + kind + " has no parameter '" +
                          std::string(name) + "'" + suggestion(name, known));
}

// "mask documents: " before what one of the kind's functions says.
Status named(const MaskKind& kind, const Status& status) {
  if (status.ok()) return status;
  return {status.code(),
          "mask " + std::string(kind.name) + ": " + status.message()};
}

Result<MaskTerm> parse_term(std::string_view text) {
  const auto open = text.find('(');
  const std::string_view name = trim(text.substr(0, open));
  MaskTerm term;
  term.kind = find_mask_kind(name);
  if (term.kind == nullptr)
    return invalid_argument("unknown mask '" + std::string(name) + "'" +
                            suggestion(name, kind_names()));
  std::vector<bool> given(term.kind->parameters.size(), false);
  for (const MaskParameter& parameter : term.kind->parameters)
    term.values.push_back({parameter.fallback});
  if (open != std::string_view::npos) {
    if (text.back() != ')')
      return invalid_argument("mask '" + std::string(text) +
                              "': expected ')' at the end");
    const auto inside = text.substr(open + 1, text.size() - open - 2);
    for (std::string_view piece : split(inside, ','))
      if (Status status = parse_parameter(piece, term, given); !status.ok())
        return status;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const MaskParameter& parameter = term.kind->parameters[i];
    if (parameter.required && !given[i])
      return invalid_argument("mask " + std::string(name) + " needs " +
                              usage_of(parameter) + " (" +
                              std::string(parameter.help) + ")");
  }
  if (term.kind->check != nullptr)
    if (Status status = term.kind->check(term.values); !status.ok())
      return named(*term.kind, status);
  return term;
}

}  // namespace

Mask::Mask() : terms_{{&kMaskFull, {}}} {}

Result<Mask> Mask::parse(std::string_view text) {
  Mask mask;
  mask.terms_.clear();
  for (std::string_view piece : split(trim(text), '+')) {
    Result<MaskTerm> term = parse_term(piece);
    if (!term.ok()) return term.status();
    for (const MaskTerm& other : mask.terms_) {
      if (other.kind->exclusive_group != term.value().kind->exclusive_group)
        continue;
      return invalid_argument("mask '" + std::string(text) +
                              "': " + std::string(other.kind->name) + " and " +
                              std::string(term.value().kind->name) +
                              " cannot be combined; keep one");
    }
    mask.terms_.push_back(std::move(term.value()));
  }
  return mask;
}

std::string Mask::text() const {
  std::string text;
  for (const MaskTerm& term : terms_) {
    if (!text.empty()) text += '+';
    text += term.kind->name;
    for (std::size_t i = 0; i < term.values.size(); ++i) {
      text += i == 0 ? '(' : ',';
      text += term.kind->parameters[i].name;
      text += '=';
      bool first = true;
      for (std::int64_t value : term.values.list(i)) {
        if (!first) text += ':';
        text += std::to_string(value);
        first = false;
      }
    }
    if (!term.values.empty()) text += ')';
  }
  return text;
}

Mask Mask::without(std::size_t term) const {
  Mask mask;
  if (terms_.size() == 1) return mask;
  mask.terms_ = terms_;
  mask.terms_.erase(mask.terms_.begin() + static_cast<std::ptrdiff_t>(term));
  return mask;
}

bool Mask::has(std::string_view kind_name) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const MaskTerm& term) {
    return term.kind->name == kind_name;
  });
}

void Mask::allowed(const RowPlace& row, KeyRanges& out) const {
  out.clear();
  terms_.front().kind->allowed(terms_.front().values, row, out);
  // Kept between calls: the live guard asks for rows on a hot path.
  thread_local KeyRanges term_keys, both;
  for (std::size_t i = 1; i < terms_.size(); ++i) {
    term_keys.clear();
    terms_[i].kind->allowed(terms_[i].values, row, term_keys);
    intersect(out, term_keys, both);
    std::swap(out, both);
  }
}

Status Mask::validate(const Problem& problem) const {
  for (const MaskTerm& term : terms_) {
    if (term.kind->validate == nullptr) continue;
    const Status status = term.kind->validate(term.values, problem);
    if (!status.ok()) return named(*term.kind, status);
  }
  return ok_status();
}

Mask Mask::shrunk_to(const Problem& problem) const {
  Mask mask = *this;
  for (MaskTerm& term : mask.terms_)
    if (term.kind->shrink != nullptr) term.kind->shrink(term.values, problem);
  return mask;
}

}  // namespace attnguard
