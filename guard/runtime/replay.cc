#include "guard/runtime/replay.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "guard/check/check.h"
#include "guard/check/reference_rows.h"
#include "guard/engine/reference_allowed.h"
#include "guard/policy/runtime_policy.h"
#include "guard/runtime/live_bounds.h"

namespace attnguard {
namespace {

using runtime_internal::difference_finding;
using runtime_internal::finite_row;
using runtime_internal::judged_when_empty;
using runtime_internal::not_finite_finding;
using runtime_internal::outside_finding;
using runtime_internal::ValueLimit;
using runtime_internal::ValueLimits;
using runtime_internal::worst_channel;
using runtime_internal::WorstChannel;

constexpr LiveCheck kReplayed[] = {LiveCheck::kFinite, LiveCheck::kValueRange,
                                   LiveCheck::kSingleKey,
                                   LiveCheck::kRecompute};
constexpr std::size_t kNumChecks = std::size(kReplayed);

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
struct ReplayScratch {
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

class ReplayJudge {
 public:
  ReplayJudge(const JudgedCall& call, const ReferenceInputs& inputs)
      : call_(call), problem_(*call.problem), inputs_(inputs) {}

  RowFindings judge(const RowIndex& at, ReplayScratch& scratch) const {
    RowFindings found;
    if (call_.allowed)
      call_.allowed(at.batch, at.query, scratch.allowed);
    else
      problem_.mask.allowed(problem_.row(at.batch, at.query), scratch.allowed);
    if (scratch.allowed.empty() && !judged_when_empty(problem_)) {
      found.outcome = Outcome::kWithoutKeys;
      return found;
    }
    reference_row_of(inputs_, at.batch, at.head, at.query, scratch.allowed,
                     scratch.row);
    if (!finite_row(call_.numerics, scratch.row)) {
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

  std::optional<Finding> finite(const RowIndex& at,
                                const ReplayScratch& scratch) const {
    for (std::size_t c = 0; c < channels(); ++c)
      if (!std::isfinite(scratch.output[c]))
        return not_finite_finding(at, static_cast<std::int64_t>(c),
                                  scratch.output[c]);
    return std::nullopt;
  }

  void find_hull(const RowIndex& at, ReplayScratch& scratch) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    scratch.low.assign(channels(), kInfinity);
    scratch.high.assign(channels(), -kInfinity);
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
                                     ReplayScratch& scratch) const {
    find_hull(at, scratch);
    const ValueLimits limits(problem_, call_.numerics, scratch.allowed.count(),
                             scratch.low, scratch.high);
    for (std::size_t c = 0; c < channels(); ++c) {
      const ValueLimit limit = limits.of(c);
      if (limit.outside(scratch.output[c]) <= limit.slack) continue;
      return outside_finding(at, static_cast<std::int64_t>(c),
                             scratch.output[c], limit);
    }
    return std::nullopt;
  }

  std::optional<Finding> compare(const RowIndex& at,
                                 const ReplayScratch& scratch) const {
    const WorstChannel worst =
        worst_channel(problem_, call_.numerics, scratch.row, scratch.output);
    if (worst.ratio <= 1) return std::nullopt;
    const auto channel = static_cast<std::size_t>(worst.channel);
    return difference_finding(at, worst, scratch.output[channel],
                              scratch.row.output[channel]);
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
    CheckResult check{.check = std::string(live_check_id(kReplayed[k]))};
    const std::int64_t judged =
        kReplayed[k] == LiveCheck::kSingleKey ? single_keys : result.rows;
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
  if (rows.empty()) {
    conclude({}, {}, result);
    return result;
  }
  std::vector<RowFindings> found(rows.size());
  std::vector<char> done(rows.size(), 0);
  const DecodedScope decoded(call);
  const ReplayJudge judge(call, decoded.inputs());
#pragma omp parallel
  {
    ReplayScratch scratch;
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
