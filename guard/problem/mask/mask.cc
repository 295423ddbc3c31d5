#include "guard/problem/mask/mask.h"

#include <algorithm>

#include "guard/base/text.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const MaskKind* kind : all_mask_kinds()) names.push_back(kind->name);
  return names;
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
    const auto value = equals == std::string_view::npos
                           ? std::nullopt
                           : parse_int(trim(piece.substr(equals + 1)));
    if (!value || *value < parameter.lowest)
      return invalid_argument(
          "mask " + kind + ": '" + std::string(piece) + "' needs " +
          std::string(name) +
          "=N with an integer N >= " + std::to_string(parameter.lowest));
    term.values[i] = *value;
    given[i] = true;
    return ok_status();
  }
  if (known.empty())
    return invalid_argument("mask " + kind + " takes no parameters, got '" +
                            std::string(piece) + "'");
  return invalid_argument("mask " + kind + " has no parameter '" +
                          std::string(name) + "'" + suggestion(name, known));
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
    term.values.push_back(parameter.fallback);
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
                              std::string(parameter.name) + "=N (" +
                              std::string(parameter.help) + ")");
  }
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
      text += '=' + std::to_string(term.values[i]);
    }
    if (!term.values.empty()) text += ')';
  }
  return text;
}

bool Mask::has(std::string_view kind_name) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const MaskTerm& term) {
    return term.kind->name == kind_name;
  });
}

void Mask::allowed(const RowPlace& row, KeyRanges& out) const {
  out.clear();
  terms_.front().kind->allowed(terms_.front().values, row, out);
  KeyRanges term_keys, both;
  for (std::size_t i = 1; i < terms_.size(); ++i) {
    term_keys.clear();
    terms_[i].kind->allowed(terms_[i].values, row, term_keys);
    intersect(out, term_keys, both);
    std::swap(out, both);
  }
}

}  // namespace attnguard
