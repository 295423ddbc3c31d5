// What the live guard does inside a serving process: how often it looks, what
// that may cost, which checks it makes and what follows a violation. Plain
// structs; the YAML form is read elsewhere.
#ifndef ATTNGUARD_GUARD_POLICY_RUNTIME_POLICY_H_
#define ATTNGUARD_GUARD_POLICY_RUNTIME_POLICY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/source_location.h"
#include "guard/base/status.h"
#include "guard/policy/policy.h"

namespace attnguard {

// What the guard can look at in a running engine, cheapest first; at the end
// what others look at and report.
enum class LiveCheck : std::uint8_t {
  kFinite,       // passive: finite inputs gave finite outputs
  kValueRange,   // passive: outputs lie within the range of visible values
  kSingleKey,    // passive: a row that sees one key equals its value
  kRecompute,    // passive: a few rows are computed again in fp64
  kLaterTokens,  // shadow: later tokens changed, earlier rows must not move
  kOnes,         // shadow: values of 1 give the mass of each row
  kCanary,       // the ladder and census probes on the live kernel
  kEngine,       // not the guard's own: what Guard::report was told
};
inline constexpr std::size_t kNumLiveChecks = 8;

// "finite", "value-range", "single-key", "recompute", "later-tokens", "ones",
// "canary", "engine"
std::string_view live_check_id(LiveCheck check);
std::span<const LiveCheck> all_live_checks();
std::vector<std::string_view> live_check_ids();
std::optional<LiveCheck> find_live_check(std::string_view id);

// What follows a violation: a set of bits. Counting is always done.
using ActionSet = std::uint32_t;
enum Action : ActionSet {
  kActionCount = 1u << 0,
  kActionLog = 1u << 1,       // one line to the host's log, rate-limited
  kActionCallback = 1u << 2,  // the host's function
  kActionDump = 1u << 3,      // a replayable file
  kActionThrow = 1u << 4,     // a wrapped callback throws ViolationError
  kActionAbort = 1u << 5,     // std::abort, after the dump is on disk
  kActionFallback = 1u << 6,  // the output is replaced by the fp64 reference;
                              // not for kEngine, which has no output to replace
};

struct ActionName {
  Action action;
  std::string_view name;  // "count", "log", "callback", "dump", ...
};
std::span<const ActionName> all_actions();

// What is set for one check on one layer.
struct LiveCheckSettings {
  Severity severity = Severity::kError;  // kOff: not made; kEngine: dropped
  ActionSet actions = kActionCount | kActionLog | kActionDump;
};

// Everything that was resolved for one layer.
struct RuntimeSettings {
  // One call in so many is looked at, on average; 1: every call, 0: none.
  std::int64_t sample_every = 1000;

  // Rows that `recompute` computes again in one checked call.
  std::int64_t rows = 4;

  // One checked call in so many is repeated by the shadow checks; 0: none.
  std::int64_t shadow_every = 50;

  // The canary runs once at the start, once for each new class of shapes, and
  // again after so many seconds (0: never again).
  bool canary_at_start = true;
  bool canary_on_new_shape = true;
  double canary_interval = 600;

  std::array<LiveCheckSettings, kNumLiveChecks> checks;

  const LiveCheckSettings& check(LiveCheck which) const {
    return checks[static_cast<std::size_t>(which)];
  }
  bool is_on(LiveCheck which) const {
    return check(which).severity != Severity::kOff;
  }
};

// One part of a policy: the top level ("*"), or what overrides it for the
// layers that a glob matches. Only what is written is set.
struct RuntimePatch {
  std::string layer_glob = "*";
  std::optional<std::int64_t> sample_every;
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> shadow_every;
  std::optional<bool> canary_at_start;
  std::optional<bool> canary_on_new_shape;
  std::optional<double> canary_interval;
  std::map<LiveCheck, Severity> severities;
  std::map<Severity, ActionSet> severity_actions;  // of checks without own
  std::map<LiveCheck, ActionSet> check_actions;    // stronger than severity's
  SourceLocation location;
};

struct DumpSettings {
  std::string folder = ".";
  std::int64_t max_bytes = 64 << 20;  // of one file
  std::int64_t max_files = 10;        // in the life of the process
};

struct RuntimePolicy {
  std::string name = "built-in";  // File name, as given.
  std::uint64_t seed = 1;

  // Share of the time that the guard may take, 0.005 is 0.5 %; absent: no
  // limit. Hard: what would exceed it is not run (see guard/runtime/budget.h).
  std::optional<double> max_overhead = 0.005;

  // The span of time, in seconds, over which the share is kept.
  double window = 10;

  DumpSettings dump;
  double log_per_minute = 6;  // lines, the rest is counted

  std::vector<RuntimePatch> patches;  // Later ones win.

  // Applies every patch whose glob matches the layer's name, in order.
  RuntimeSettings resolve(std::string_view layer_name) const;

  // Says what is wrong, naming the field and the fix.
  Status validate() const;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_RUNTIME_POLICY_H_
