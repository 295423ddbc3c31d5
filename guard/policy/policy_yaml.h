// Reads a policy from YAML. All errors of a file are collected; each names
// its place. This header knows no YAML library.
//
//   version: 1                    # required
//   seed: 1                       # any unsigned 64-bit number
//   coverage: edges               # sampled | edges | full
//   checks:                       # check id: severity
//     repeatable: warning         # error | warning | off
//   tolerances:                   # check id: exact | auto | number, for all
//     row-sum: auto               # dtypes or by dtype
//     reference: {fp16: 2.0e-3}
//   problems:                     # each entry's lists expand as a product
//     - batch: [1, 2]             # field names of the problem line
//       num_heads: 4
//       num_kv_heads: 2
//       seq_len_q: 8
//       seq_len_kv: [8, [5, 3]]   # a list in a list: one length per sequence
//       dtype: [fp32, bf16]
//       mask: [full, causal_top_left]
//   engines:                      # engine glob: the same keys, for it alone
//     "ggml:*":
//       tolerances: {row-sum: 1.0e-3}
//   runtime:                      # the live guard; runtime_options.h has all
//     sample: 1/1000
//     max_overhead: 0.5%
//     on_violation: [log, dump]
//     checks: {canary: off}
//     layers:                     # layer name glob: settings for it alone
//       "blk.0.*": {sample: 1/10}
//
//   extra_problems: ...           # added to the problems
//   suppressions:                 # findings that are accepted for now
//     - check: row-sum            # globs; check and reason are required
//       engine: "ggml:*"
//       problem: "*seq_len_kv=8192*"
//       kind: mass                # finding_kind_name()
//       reason: "upstream bug 17746"
//       expires: 2027-03-31
//
// The id "*" is every check; a check's own entry wins over it. A key that is
// left out keeps its default; `problems` and `engines` that are left out are
// those of the built-in policy.
//
// `extends: other.yaml`, relative to the file, begins with another policy
// instead (or with "built-in"): its top level, then the file's; its engines,
// then the file's; the suppressions of both; the file's problems if it has
// any. As everywhere, engines win over the top level and later ones over
// earlier ones. Circles and missing files are errors at that line.
// Anchors, aliases, tags and duplicate keys are
// errors.
//
// In product expansion, combinations are built in the order of
// all_problem_fields(), the last field varying fastest; an invalid
// combination is an error at the entry. A shorthand such as seq_len excludes
// the fields it sets.
#ifndef ATTNGUARD_GUARD_POLICY_POLICY_YAML_H_
#define ATTNGUARD_GUARD_POLICY_POLICY_YAML_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/policy/policy.h"

namespace attnguard {

struct PolicyDiagnostic {
  SourceLocation location;
  std::string message;      // "unknown key 'chekcs'; did you mean 'checks'?"
  std::string source_line;  // The text of that line, without line break.
};

// The whole list, one block each:
//   policy.yaml:14:9: error: message
//     14 |   reference: {fp16: -1}
//        |         ^
// Without a line the file alone is named: "policy.yaml: error: message".
std::string format_diagnostics(std::span<const PolicyDiagnostic> diagnostics);

struct PolicyParse {
  std::optional<Policy> policy;  // Only when there are no diagnostics.
  std::vector<PolicyDiagnostic> diagnostics;
};

// `name` is the file name that diagnostics show. `check_ids` are the checks
// that exist: any other is an error.
PolicyParse parse_policy(std::string_view text, std::string_view name,
                         std::span<const std::string_view> check_ids);

// Reads the file first; an unreadable one, a directory and a file above 4 MiB
// are a diagnostic without a line.
PolicyParse load_policy(const std::string& path,
                        std::span<const std::string_view> check_ids);

// The text of a file, as load_policy reads it: at most 4 MiB.
Result<std::string> read_policy_text(const std::string& path);

// The built-in policy's YAML, with comments: what a run without a file uses.
std::string_view default_policy_text();

// The policy as canonical YAML, without comments; parse_policy of it gives the
// same policy, problems in the same order. Patches of one glob are merged.
std::string print_policy(const Policy& policy);

// The policy as it holds for one engine, or for engines that no pattern names
// when `engine` is empty, with the place of every value in a comment. Parses
// to that policy.
std::string print_resolved(const Policy& policy, std::string_view engine,
                           std::span<const std::string_view> check_ids);

// What differs in effect: settings for every engine and for each pattern that
// either policy names, problems, suppressions. Empty when nothing does.
std::string diff_policies(const Policy& before, const Policy& after,
                          std::span<const std::string_view> check_ids);

// The JSON Schema (draft 7) of a policy file, from the tables that the parser
// reads by; editors complete and check with it.
std::string policy_json_schema(std::span<const std::string_view> check_ids);

// The file name that the first line of printed policies names as their schema.
inline constexpr std::string_view kPolicySchemaFile = "attnguard.schema.json";

// "# yaml-language-server: $schema=attnguard.schema.json", a line.
std::string schema_modeline();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_POLICY_YAML_H_
