// A check is a property that a user of the kernel cares about. It declares
// the probe calls it wants, judges each finished call, and ends with a
// verdict; it never prints and never knows a report format.
//
// Adding one: a file in this folder that defines a CheckInfo, and a line in
// check_table.cc.
#ifndef ATTNGUARD_GUARD_CHECK_CHECK_H_
#define ATTNGUARD_GUARD_CHECK_CHECK_H_

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/policy/policy.h"
#include "guard/probe/execute.h"
#include "guard/probe/plan.h"

namespace attnguard {

// What a check knows when it starts. The references outlive the check.
struct CheckContext {
  const Problem& problem;
  const Numerics& numerics;
  bool deterministic = true;
  Coverage coverage = Coverage::kEdges;
  std::uint64_t seed = 1;
  Tolerance tolerance;  // of this check, for the problem's dtype

  // For checks that derive other problems, append to a cache or ask for more
  // than the output; never nullptr in a run.
  const Engine* engine = nullptr;

  bool has(Feature feature) const {
    return engine != nullptr && engine->capabilities.has(feature);
  }
};

// Collects a check's findings: counts all, keeps the first kMostKept. One
// finding per kind and place however many probes see it.
class FindingSink {
 public:
  static constexpr std::int64_t kMostKept = 50;

  void add(Finding finding);
  std::int64_t count() const { return count_; }
  const std::map<FindingKind, std::int64_t>& by_kind() const {
    return by_kind_;
  }
  std::vector<Finding> take();

  // The largest |observed - expected| of all that was added, and the probe
  // that saw it; infinite where one of them is not finite.
  double largest_difference() const { return largest_difference_; }
  const std::string& largest_probe() const { return largest_probe_; }

 private:
  using Place =
      std::tuple<FindingKind, std::int64_t, std::int64_t, std::int64_t,
                 std::int64_t, std::string, std::int64_t>;

  std::vector<Finding> kept_;
  std::set<Place> seen_;
  std::int64_t count_ = 0;
  std::map<FindingKind, std::int64_t> by_kind_;
  double largest_difference_ = 0;
  std::string largest_probe_;
};

class Check {
 public:
  virtual ~Check() = default;

  // Asks for calls. Called once.
  virtual void plan(Plan& plan) = 0;

  // Called after every executed call, whoever asked for it.
  virtual void judge(const Observation& seen, FindingSink& sink) = 0;

  // Called instead when the engine failed in a call, after it touched what is
  // outside of a tensor. Of `seen` there are only call, planned, problem and
  // memory_faults.
  virtual void judge_failed(const Observation& /*seen*/,
                            FindingSink& /*sink*/) {}

  // Fills verdict (from the positive controls and sink.count()), note and
  // coverage.
  virtual void finish(const FindingSink& sink, CheckResult& result) = 0;

 protected:
  // The usual end: a violation when there are findings; otherwise a pass if
  // the positive control fired, and inconclusive with `missing` if not.
  static void conclude(const FindingSink& sink, bool control_fired,
                       std::string_view missing, CheckResult& result) {
    if (sink.count() > 0) {
      result.verdict = Verdict::kViolation;
    } else if (control_fired) {
      result.verdict = Verdict::kPass;
    } else {
      result.verdict = Verdict::kInconclusive;
      result.note = missing;
    }
  }
};

struct CheckInfo {
  std::string_view id;           // kebab-case, the file's stem
  std::string_view summary;      // One line.
  std::string_view cost;         // "passive" or "2 calls"
  std::string_view explanation;  // The page that `explain` prints.

  // Empty when the property says something about this problem, else why not.
  std::string (*not_applicable)(const CheckContext& context);

  std::unique_ptr<Check> (*make)(const CheckContext& context);

  // It looks at more than the outputs of the problem itself: at other shapes
  // and settings, scores of thousands of nats, or other results. An engine can
  // be right on the problem and fail it.
  bool beyond = false;
};

// Every check, in the order of reports.
std::span<const CheckInfo* const> all_checks();

// nullptr when there is no such check.
const CheckInfo* find_check(std::string_view id);

// The ids of all_checks(), for the policy parser and the command line.
std::vector<std::string_view> check_ids();

// Those that judge the outputs of the problem itself.
std::vector<std::string> own_output_checks();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_CHECK_H_
