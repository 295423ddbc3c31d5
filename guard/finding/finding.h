// What a check found, as typed data: no check prints, and no check knows a
// report format.
#ifndef ATTNGUARD_GUARD_FINDING_FINDING_H_
#define ATTNGUARD_GUARD_FINDING_FINDING_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/source_location.h"

namespace attnguard {

enum class Verdict {
  kPass,           // Checked, and nothing is wrong.
  kViolation,      // A property does not hold; there are findings.
  kInconclusive,   // No evidence: a positive control did not fire.
  kNotApplicable,  // The property says nothing about this problem.
  kUnsupported,    // The engine declares that it cannot run the problem.
  kEngineError,    // The engine threw or returned an error.
};

std::string_view verdict_name(Verdict verdict);

enum class FindingKind {
  kLeak,           // Depends on a key or query that is not allowed.
  kMiss,           // Does not depend on a key that is allowed.
  kMass,           // The weights of a row have the wrong sum.
  kValue,          // Differs from the reference by more than the bound.
  kNonFinite,      // NaN or Inf where finite inputs give a finite output.
  kUnwritten,      // An output element that the engine never wrote.
  kOverwrite,      // Memory written that is not the output's.
  kNotRepeatable,  // The same call gave other bits.
  kOutOfBounds,    // Memory before or behind a tensor was read or written.
};

std::string_view finding_kind_name(FindingKind kind);

// Indices are -1 where they do not apply or are not known.
struct Finding {
  FindingKind kind = FindingKind::kLeak;
  std::string probe;  // The probe that saw it: "ladder-up".
  std::int64_t batch = -1;
  std::int64_t head = -1;   // query head
  std::int64_t query = -1;  // q_index
  std::int64_t key = -1;    // kv_index; for `future-influence` the first
                            // perturbed one
  std::int64_t channel = -1;
  std::string tensor;        // For memory: "output"; otherwise empty.
  std::int64_t element = 0;  // Offset from the tensor's start; < 0: before.
  double observed = 0;       // May be NaN or Inf.
  double expected = 0;
  double bound = 0;     // Largest |observed - expected| that would pass.
  std::string message;  // One sentence; names everything in words.

  // Why it is accepted and does not fail the run; empty: it is not.
  std::string suppressed = {};
};

// All findings of one kind that a suppression of the policy or an entry of a
// baseline accepts.
struct AcceptedFindings {
  FindingKind kind = FindingKind::kLeak;
  std::int64_t num_findings = 0;
  std::string reason;       // As in Finding::suppressed.
  SourceLocation location;  // of the suppression; empty for a baseline's
  bool baseline = false;
};

struct CheckResult {
  std::string check;  // id, e.g. "row-sum"
  Verdict verdict = Verdict::kNotApplicable;
  bool warning_only = false;  // Policy severity: findings do not fail the run.
  std::string note;  // Why not applicable or inconclusive, or what was done.
  std::string coverage;           // "4 calls, every row and key"
  std::vector<Finding> findings;  // The first found, by place.
  std::int64_t num_findings = 0;  // All of them.
  std::map<FindingKind, std::int64_t> num_by_kind = {};  // All, by kind.
  double largest_difference = 0;    // |observed - expected| of all findings.
  std::string largest_probe = {};   // The probe that saw it.
  std::int64_t num_suppressed = 0;  // Of num_findings: those accepted.
  std::vector<AcceptedFindings> accepted = {};  // By what.

  // There are findings, and all of them are accepted: no failure.
  bool suppressed() const {
    return verdict == Verdict::kViolation && num_findings > 0 &&
           num_suppressed == num_findings;
  }
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_FINDING_FINDING_H_
