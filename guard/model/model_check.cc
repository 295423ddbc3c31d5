#include "guard/model/model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostKept = 50;
constexpr double kNoiseMargin = 4;  // Repeats show less than all there is.
constexpr double kLeastRoundoff = 0x1p-20;
constexpr double kLeastSensitivity = 2;  // In units of the bound.
constexpr int kNoiseRepeats = 4;

std::int32_t draw_token(std::uint64_t bits, std::int32_t vocab_size) {
  return static_cast<std::int32_t>(uniform_below(bits, vocab_size));
}

double median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void ModelFindings::add(Finding finding) {
  if (!seen_.insert({finding.kind, finding.batch, finding.query}).second)
    return;
  ++count_;
  if (kept_.size() < kMostKept) kept_.push_back(std::move(finding));
}

void ModelFindings::move_to(CheckResult& result) {
  std::ranges::stable_sort(kept_, {}, [](const Finding& finding) {
    return std::pair(finding.batch, finding.query);
  });
  result.findings = std::move(kept_);
  result.num_findings = count_;
}

ModelCheckContext::ModelCheckContext(const Model& checked,
                                     const ModelOptions& chosen)
    : model(checked), options(chosen), runner(checked), tokens(chosen.text) {
  if (tokens.empty()) {
    std::int64_t size = chosen.num_tokens;
    if (checked.context_length > 0)
      size = std::min(size, checked.context_length);
    tokens = other_text(size, 0);
  }
}

Status ModelCheckContext::prepare() {
  Result<Logits> first = runner.one_pass(tokens);
  if (!first.ok()) return first.status();
  base = std::move(first.value());
  for (int r = 0; r < kNoiseRepeats && !model.deterministic; ++r) {
    const Result<Logits> again = runner.one_pass(tokens);
    if (!again.ok()) return again.status();
    for (std::int64_t i = 0; i < base.rows(); ++i)
      noise_ = std::max(
          noise_, compare_rows(base.row(i), again.value().row(i)).largest);
  }
  return ok_status();
}

Tokens ModelCheckContext::other_text(std::int64_t size,
                                     std::uint64_t variant) const {
  Tokens text;
  const std::uint64_t stream = derive_seed(options.seed, variant);
  for (std::int64_t i = 0; i < size; ++i)
    text.push_back(draw_token(
        derive_seed(stream, static_cast<std::uint64_t>(i)), model.vocab_size));
  return text;
}

Tokens ModelCheckContext::replaced_from(std::int64_t cut,
                                        std::uint64_t variant) const {
  Tokens text = tokens;
  const std::uint64_t stream =
      derive_seed(derive_seed(options.seed, 0x7e91ace), variant);
  for (std::size_t i = static_cast<std::size_t>(cut); i < text.size(); ++i) {
    // A step of 1 ... vocab_size - 1: never the token that stood there.
    const std::int64_t step =
        1 + uniform_below(derive_seed(stream, i), model.vocab_size - 1);
    text[i] = static_cast<std::int32_t>((text[i] + step) % model.vocab_size);
  }
  return text;
}

double ModelCheckContext::exact_bound() const { return kNoiseMargin * noise_; }

double ModelCheckContext::bound(double scale) const {
  return exact_bound() +
         options.rounding * std::max(model.roundoff, kLeastRoundoff) * scale;
}

bool ModelCheckContext::differs_exactly(const RowDifference& difference) const {
  return !difference.same_bits &&
         (model.deterministic || difference.largest > exact_bound());
}

bool ModelCheckContext::differs(const RowDifference& difference) const {
  return !(difference.largest <= bound(difference.scale));
}

Result<Sensitivity> ModelCheckContext::sensitivity() {
  if (sensitivity_) return *sensitivity_;
  std::vector<double> moves, in_bounds;
  for (const std::int64_t changed :
       {std::int64_t{0}, length() / 4, length() / 2, length() - 2}) {
    Tokens text = tokens;
    const auto at = static_cast<std::size_t>(changed);
    text[at] = replaced_from(changed, 1)[at];
    const Result<Logits> moved = runner.one_pass(text);
    if (!moved.ok()) return moved.status();
    for (std::int64_t i = changed + 1; i < length(); ++i) {
      const RowDifference difference =
          compare_rows(base.row(i), moved.value().row(i));
      // Rows beyond the windows of all layers are not reached, and must not be.
      if (!differs_exactly(difference)) continue;
      const double limit = bound(difference.scale);
      moves.push_back(difference.largest);
      in_bounds.push_back(limit > 0 ? difference.largest / limit : 0);
    }
  }
  sensitivity_ = moves.empty() ? Sensitivity{}
                               : Sensitivity{median(std::move(moves)),
                                             median(std::move(in_bounds))};
  return *sensitivity_;
}

void BoundedComparison::rows(const Logits& seen, const Logits& expected,
                             const std::string& way, std::int64_t sequence) {
  for (std::int64_t i = 0; i < std::min(seen.rows(), expected.rows()); ++i) {
    ++rows_;
    const RowDifference difference = compare_rows(seen.row(i), expected.row(i));
    const double limit = context_.bound(difference.scale);
    if (limit > 0)
      largest_bounds_ = std::max(largest_bounds_, difference.largest / limit);
    if (!context_.differs(difference)) continue;
    Finding finding{.kind = FindingKind::kValue,
                    .probe = probe,
                    .batch = sequence,
                    .query = i,
                    .channel = difference.entry,
                    .bound = limit};
    if (difference.entry >= 0) {
      const auto entry = static_cast<std::size_t>(difference.entry);
      finding.observed = seen.row(i)[entry];
      finding.expected = expected.row(i)[entry];
    }
    finding.message = fmt::format(
        "the logits of token {} {} differ by {} from those {}; rounding "
        "explains {}",
        i, way, short_number(difference.largest), reference,
        short_number(limit));
    findings.add(std::move(finding));
  }
}

Status BoundedComparison::conclude(CheckResult& result) {
  const Result<Sensitivity> sensitivity = context_.sensitivity();
  if (!sensitivity.ok()) return sensitivity.status();
  const Sensitivity& moved = sensitivity.value();
  result.coverage = fmt::format(
      "{} rows, differences up to {} of the bound; one token moves {} bounds",
      rows_, short_number(largest_bounds_), short_number(moved.median_bounds));
  if (!findings.empty()) {
    result.verdict = Verdict::kViolation;
  } else if (rows_ == 0) {
    result.verdict = Verdict::kInconclusive;
    result.note = "no row was compared";
  } else if (moved.median_bounds < kLeastSensitivity) {
    result.verdict = Verdict::kInconclusive;
    result.note = fmt::format(
        "an earlier token moves later logits by {} only, {} times what "
        "rounding explains: a token too many or too few would not show. Use a "
        "text that the model reads (its own tokens), or a smaller rounding "
        "factor than {}",
        short_number(moved.median), short_number(moved.median_bounds),
        short_number(context_.options.rounding));
  } else {
    result.verdict = Verdict::kPass;
  }
  findings.move_to(result);
  return ok_status();
}

}  // namespace attnguard
