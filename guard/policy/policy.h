// What is checked, how strictly, and on which problems: plain structs. The
// YAML form is read by policy_yaml.h, the only part that knows YAML.
#ifndef ATTNGUARD_GUARD_POLICY_POLICY_H_
#define ATTNGUARD_GUARD_POLICY_POLICY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/date.h"
#include "guard/base/dtype.h"
#include "guard/base/source_location.h"
#include "guard/problem/problem.h"

namespace attnguard {

// How much a check may differ before it is a violation.
struct Tolerance {
  enum class Kind {
    kAuto,    // The bound derived from the dtypes and lengths.
    kExact,   // Bitwise, or exactly the value that algebra gives.
    kNumber,  // An absolute difference.
  };
  Kind kind = Kind::kAuto;
  double number = 0;  // >= 0, finite; only for kNumber

  friend bool operator==(const Tolerance&, const Tolerance&) = default;
};

// How many cuts, thresholds and sampled rows a problem gets. What visibility
// and row-sum judge is every row under each of them.
enum class Coverage {
  kSampled,  // One round: the quickest run.
  kEdges,    // Every class of cut (first, last, tile edges) at least once.
  kFull,     // Every cut of the problem, up to a stated limit.
};

enum class Severity { kError, kWarning, kOff };

std::string_view coverage_name(Coverage coverage);
std::string_view severity_name(Severity severity);

// A check's settings after everything was resolved for one engine.
struct CheckSettings {
  Severity severity = Severity::kError;
  std::map<Dtype, Tolerance> tolerances;  // absent: kAuto

  Tolerance tolerance(Dtype dtype) const {
    const auto found = tolerances.find(dtype);
    return found == tolerances.end() ? Tolerance{} : found->second;
  }
};

// Findings that are accepted for now: they are listed and do not fail the run.
// Check, engine and problem are shell-style globs.
struct Suppression {
  std::string check = "*";
  std::string engine = "*";
  std::string problem = "*";    // of the problem's line
  std::string kind;             // finding_kind_name(); empty: every kind
  std::string reason;           // for people; never empty
  std::optional<Date> expires;  // The last day (UTC) on which it holds.
  SourceLocation location;

  // Of a baseline rather than of a policy: the names are meant literally.
  bool baseline = false;

  bool fits_engine(std::string_view name) const;
  bool fits_problem(std::string_view line) const;
  bool fits_check(std::string_view id) const;
  bool is_expired(const Date& today) const {
    return expires && *expires < today;
  }
};

struct Settings {
  std::string policy_file;  // What replays name; empty: the built-in policy.
  std::uint64_t seed = 1;
  Coverage coverage = Coverage::kEdges;
  std::map<std::string, CheckSettings> checks;  // absent: all defaults
  std::vector<Suppression> suppressions;        // those that fit the engine

  const CheckSettings& check(const std::string& id) const;
};

// One part of a policy: the top level, or the override of one engine glob.
// Only what is written is set.
struct SettingsPatch {
  std::string engine_glob = "*";
  std::optional<Coverage> coverage;
  std::map<std::string, Severity> severities;  // by check id
  std::map<std::string, std::map<Dtype, Tolerance>> tolerances;
  SourceLocation location;

  // Where each value is written, by its path: "coverage", "checks.row-sum",
  // "tolerances.row-sum.fp16".
  std::map<std::string, SourceLocation> places;
};

struct RuntimePolicy;  // runtime_policy.h

struct PolicyProblem {
  Problem problem;
  SourceLocation location = {};  // of the grid entry that it expands from
};

struct Policy {
  std::string name = "built-in";  // File name, as given.
  std::uint64_t seed = 1;
  std::vector<SettingsPatch> patches;  // Later ones win.
  std::vector<PolicyProblem> problems;
  std::vector<Suppression> suppressions;

  SourceLocation seed_location = {};  // Where the seed is written.

  // Nobody named the file: it lay in the working folder or above it.
  bool found = false;

  // What the live guard does; nullptr: the policy says nothing of it.
  std::shared_ptr<const RuntimePolicy> runtime;

  // Applies every patch whose glob matches the engine's name, in order.
  Settings resolve(std::string_view engine_name) const;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_POLICY_H_
