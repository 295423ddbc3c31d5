#include "guard/runtime/replay.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "guard/check/check.h"
#include "guard/check/compare.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"
#include "guard/engine/reference_allowed.h"
#include "guard/policy/runtime_policy.h"

namespace attnguard {
namespace {

constexpr LiveCheck kChecks[] = {LiveCheck::kFinite, LiveCheck::kValueRange,
                                 LiveCheck::kSingleKey, LiveCheck::kRecompute};
constexpr std::size_t kNumChecks = std::size(kChecks);

// What is smaller is lost where weights or outputs are stored.
double smallest_step(Dtype dtype) {
  return dtype == Dtype::kFp16 ? 0x1p-25 : 0x1p-125;
}

// Keys and values of the scope as fp64, decoded once for all rows.
class DecodedScope {
 public:
  explicit DecodedScope(const JudgedCall& call)
      : inputs_{call.problem, call.query,
                decode(call, call.key, call.problem->head_dim_qk, key_),
                decode(call, call.value, call.problem->head_dim_v, value_)} {}

  const ReferenceInputs& inputs() const { return inputs_; }

 private:
  static ConstTensorView decode(const JudgedCall& call,
                                const ConstTensorView& from,
                                std::int64_t channels,
                                std::vector<double>& store) {
    const CaptureScope& scope = call.scope;
    const std::int64_t length = call.problem->max_len_kv();
    const Shape4 kept = {scope.batch.count, scope.kv_heads.count, length,
                         channels};
    store.resize(
        static_cast<std::size_t>(kept[0] * kept[1] * kept[2] * kept[3]));
    double* to = store.data();
    for (std::int64_t b = scope.batch.first; b < scope.batch.end(); ++b)
      for (std::int64_t g = scope.kv_heads.first; g < scope.kv_heads.end(); ++g)
        for (std::int64_t j = 0; j < length; ++j, to += channels)
          if (j < call.problem->len_kv(b))
            from.load_row(b, g, j, 0, channels, to);
    ConstTensorView view;
    view.dtype = Dtype::kFp64;
    view.shape = from.shape;
    view.strides = contiguous_strides(kept);
    view.data = reinterpret_cast<const std::byte*>(store.data()) -
                static_cast<std::int64_t>(sizeof(double)) *
                    view.offset(scope.batch.first, scope.kv_heads.first, 0);
    return view;
  }

  std::vector<double> key_, value_;  // Before inputs_, which is made of them.
  ReferenceInputs inputs_;
};

// What a thread keeps from row to row.
struct Scratch {
  KeyRanges allowed;
  ReferenceRow row;
  std::vector<double> output, value, low, high;
};

enum class Outcome { kJudged, kWithoutKeys, kNotFinite };

struct RowFindings {
  std::optional<Finding> of[kNumChecks];
  Outcome outcome = Outcome::kJudged;
  bool single_key = false;
};

class RowJudge {
 public:
  RowJudge(const JudgedCall& call, const ReferenceInputs& inputs)
      : call_(call), problem_(*call.problem), inputs_(inputs) {}

  RowFindings judge(const RowIndex& at, Scratch& scratch) const {
    RowFindings found;
    if (call_.allowed)
      call_.allowed(at.batch, at.query, scratch.allowed);
    else
      problem_.mask.allowed(problem_.row(at.batch, at.query), scratch.allowed);
    if (scratch.allowed.empty() && !empty_rows_are_zero()) {
      found.outcome = Outcome::kWithoutKeys;
      return found;
    }
    reference_row_of(inputs_, at.batch, at.head, at.query, scratch.allowed,
                     scratch.row);
    if (!inputs_finite(scratch)) {
      found.outcome = Outcome::kNotFinite;
      return found;
    }
    scratch.output.resize(channels());
    call_.output.load_row(at.batch, at.head, at.query, 0, problem_.head_dim_v,
                          scratch.output.data());
    found.single_key = scratch.allowed.count() == 1 && problem_.sinks.empty();
    found.of[0] = finite(at, scratch);
    if (!scratch.allowed.empty()) found.of[1] = value_range(at, scratch);
    found.of[3] = compare(at, scratch);
    if (found.single_key) found.of[2] = found.of[3];
    return found;
  }

 private:
  std::size_t channels() const {
    return static_cast<std::size_t>(problem_.head_dim_v);
  }

  // Otherwise nothing is promised of rows without keys that could be compared.
  bool empty_rows_are_zero() const {
    return problem_.empty_row == EmptyRow::kZero && problem_.sinks.empty();
  }

  bool inputs_finite(const Scratch& scratch) const {
    const ReferenceRow& row = scratch.row;
    const double most = dtype_info(call_.numerics.accumulator).max_finite;
    if (row.num_keys == 0) return true;
    return std::isfinite(row.lse) && row.score_magnitude < most &&
           std::all_of(row.output.begin(), row.output.end(),
                       [](double x) { return std::isfinite(x); });
  }

  Finding finding(FindingKind kind, const RowIndex& at, std::size_t channel,
                  double observed, double expected, double bound,
                  const std::string& what) const {
    Finding finding{.kind = kind,
                    .probe = "live",
                    .batch = at.batch,
                    .head = at.head,
                    .query = at.query,
                    .channel = static_cast<std::int64_t>(channel),
                    .observed = observed,
                    .expected = expected,
                    .bound = bound};
    finding.message = row_name(at.batch, at.head, at.query) +
                      ": output channel " + std::to_string(channel) + " is " +
                      format_short(observed) + ", " + what;
    return finding;
  }

  std::optional<Finding> finite(const RowIndex& at,
                                const Scratch& scratch) const {
    for (std::size_t c = 0; c < channels(); ++c)
      if (!std::isfinite(scratch.output[c]))
        return finding(FindingKind::kNonFinite, at, c, scratch.output[c], 0, 0,
                       "although everything that the row sees is finite");
    return std::nullopt;
  }

  void find_hull(const RowIndex& at, Scratch& scratch) const {
    // A sink pulls towards 0.
    const double start =
        problem_.sinks.empty() ? std::numeric_limits<double>::infinity() : 0;
    scratch.low.assign(channels(), start);
    scratch.high.assign(channels(), -start);
    scratch.value.resize(channels());
    for (const KeyRange& range : scratch.allowed.ranges())
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        inputs_.value.load_row(at.batch, problem_.kv_head_of(at.head), j, 0,
                               problem_.head_dim_v, scratch.value.data());
        for (std::size_t c = 0; c < channels(); ++c) {
          scratch.low[c] = std::min(scratch.low[c], scratch.value[c]);
          scratch.high[c] = std::max(scratch.high[c], scratch.value[c]);
        }
      }
  }

  std::optional<Finding> value_range(const RowIndex& at,
                                     Scratch& scratch) const {
    find_hull(at, scratch);
    double block = 0;
    for (std::size_t c = 0; c < channels(); ++c)
      block = std::max(
          {block, std::abs(scratch.low[c]), std::abs(scratch.high[c])});
    const Numerics& numerics = call_.numerics;
    const std::int64_t keys = scratch.allowed.count();
    const double relative =
        mean_bound(problem_, numerics, keys) - numerics.value_error +
        static_cast<double>(keys) * smallest_step(numerics.probability);
    for (std::size_t c = 0; c < channels(); ++c) {
      const double low = scratch.low[c], high = scratch.high[c];
      const double slack = relative * std::max(std::abs(low), std::abs(high)) +
                           numerics.value_error * block +
                           smallest_step(problem_.output_dtype());
      const double output = scratch.output[c];
      // Written so that NaN is outside.
      if (output >= low - slack && output <= high + slack) continue;
      return finding(FindingKind::kValue, at, c, output,
                     output < low ? low : high, slack,
                     "outside the values that the row sees, " +
                         format_short(low) + " to " + format_short(high));
    }
    return std::nullopt;
  }

  std::optional<Finding> compare(const RowIndex& at,
                                 const Scratch& scratch) const {
    const ReferenceRow& row = scratch.row;
    // Where parts are merged by their log-sum-exps those round as scores do.
    const double merged = std::expm1(
        8 * unit_roundoff(call_.numerics.accumulator) * row.max_abs_score);
    std::size_t worst = 0;
    double worst_ratio = -1, worst_bound = 0;
    for (std::size_t c = 0; c < channels(); ++c) {
      const double difference = std::abs(scratch.output[c] - row.output[c]);
      double bound = reference_bound(problem_, call_.numerics, row,
                                     static_cast<std::int64_t>(c));
      if (row.num_keys > 0) bound += merged * row.weighted_abs[c];
      const double ratio =
          difference == 0 ? 0 : difference / std::max(bound, 1e-300);
      // NaN stays the worst.
      if (ratio <= worst_ratio || std::isnan(worst_ratio)) continue;
      worst = c;
      worst_ratio = ratio;
      worst_bound = bound;
    }
    if (worst_ratio <= 1) return std::nullopt;
    const double right = row.output[worst];
    return finding(FindingKind::kValue, at, worst, scratch.output[worst], right,
                   worst_bound,
                   "fp64 attention gives " + format_short(right) +
                       " (rounding explains " + format_short(worst_bound) +
                       ")");
  }

  const JudgedCall& call_;
  const Problem& problem_;
  const ReferenceInputs& inputs_;
};

// The rows of the scope that exist, those of `first` at the front.
std::vector<RowIndex> ordered_rows(const JudgedCall& call,
                                   const std::vector<Finding>& first) {
  std::vector<RowIndex> rows;
  std::set<RowIndex> chosen;
  const auto exists = [&](const RowIndex& row) {
    return call.scope.holds_row(row.batch, row.head, row.query) &&
           row.query < call.problem->len_q(row.batch);
  };
  for (const Finding& finding : first) {
    const RowIndex row{finding.batch, finding.head, finding.query};
    if (exists(row) && chosen.insert(row).second) rows.push_back(row);
  }
  const CaptureScope& scope = call.scope;
  for (std::int64_t b = scope.batch.first; b < scope.batch.end(); ++b)
    for (std::int64_t i = scope.queries.first; i < scope.queries.end(); ++i)
      for (std::int64_t h = scope.heads.first; h < scope.heads.end(); ++h)
        if (const RowIndex row{b, h, i}; exists(row) && !chosen.contains(row))
          rows.push_back(row);
  return rows;
}

// Says what was judged, and by which check what was found.
void conclude(const std::vector<RowFindings>& found,
              const std::vector<char>& done, Rejudged& result) {
  FindingSink sinks[kNumChecks];
  std::int64_t single_keys = 0;
  for (std::size_t n = 0; n < found.size(); ++n) {
    if (done[n] == 0) continue;
    result.rows += found[n].outcome == Outcome::kJudged;
    result.without_keys += found[n].outcome == Outcome::kWithoutKeys;
    result.not_finite += found[n].outcome == Outcome::kNotFinite;
    single_keys += found[n].single_key;
    for (std::size_t k = 0; k < kNumChecks; ++k)
      if (found[n].of[k]) sinks[k].add(*found[n].of[k]);
  }
  for (std::size_t k = 0; k < kNumChecks; ++k) {
    CheckResult check{.check = std::string(live_check_id(kChecks[k]))};
    const std::int64_t judged =
        kChecks[k] == LiveCheck::kSingleKey ? single_keys : result.rows;
    check.num_findings = sinks[k].count();
    check.findings = sinks[k].take();
    check.verdict = check.num_findings > 0 ? Verdict::kViolation
                    : judged > 0           ? Verdict::kPass
                                           : Verdict::kNotApplicable;
    if (judged == 0) check.note = "no row that it says something about";
    check.coverage = std::to_string(judged) + " of " +
                     std::to_string(result.of_rows) + " rows";
    if (check.verdict == Verdict::kViolation)
      result.verdict = Verdict::kViolation;
    result.checks.push_back(std::move(check));
  }
  if (result.verdict != Verdict::kViolation && result.rows > 0)
    result.verdict = Verdict::kPass;
}

}  // namespace

const Finding* Rejudged::first() const {
  for (const CheckResult& check : checks)
    if (!check.findings.empty()) return &check.findings.front();
  return nullptr;
}

JudgedCall judged_call(const Dump& dump) {
  const DumpRecord& record = dump.record();
  return {
      .problem = &record.problem,
      .scope = record.scope,
      .query = dump.query(),
      .key = dump.key(),
      .value = dump.value(),
      .output = dump.output(),
      .numerics = record.numerics,
      .allowed = [&dump](std::int64_t b, std::int64_t query, KeyRanges& keys) {
        dump.allowed(b, query, keys);
      }};
}

Rejudged judge_call(const JudgedCall& call, const std::vector<Finding>& first,
                    Deadline deadline) {
  Rejudged result;
  const std::vector<RowIndex> rows = ordered_rows(call, first);
  result.of_rows = static_cast<std::int64_t>(rows.size());
  std::vector<RowFindings> found(rows.size());
  std::vector<char> done(rows.size(), 0);
  const DecodedScope decoded(call);
  const RowJudge judge(call, decoded.inputs());
#pragma omp parallel
  {
    Scratch scratch;
#pragma omp for schedule(dynamic)
    for (std::size_t n = 0; n < rows.size(); ++n) {
      // The rows that something was found in are judged in any case.
      if (n >= first.size() && std::chrono::steady_clock::now() > deadline)
        continue;
      found[n] = judge.judge(rows[n], scratch);
      done[n] = 1;
    }
  }
  conclude(found, done, result);
  return result;
}

}  // namespace attnguard
