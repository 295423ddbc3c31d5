// Finished results built by hand: every verdict, every kind of finding, NaN,
// a warning, an influence map, and an engine that ran nothing.
#ifndef ATTNGUARD_TESTS_REPORT_SAMPLE_RESULTS_H_
#define ATTNGUARD_TESTS_REPORT_SAMPLE_RESULTS_H_

#include <limits>
#include <string>
#include <vector>

#include "guard/finding/result.h"

namespace attnguard::sample {

inline Finding finding(FindingKind kind, std::int64_t query, std::int64_t key,
                       double observed, double expected, std::string message) {
  Finding made;
  made.kind = kind;
  made.probe = "ladder-up";
  made.batch = 0;
  made.head = 1;
  made.query = query;
  made.key = key;
  made.observed = observed;
  made.expected = expected;
  made.bound = 2e-5;
  made.message = std::move(message);
  return made;
}

inline CheckResult check(std::string id, Verdict verdict,
                         std::string note = "") {
  CheckResult made;
  made.check = std::move(id);
  made.verdict = verdict;
  made.note = std::move(note);
  made.coverage = "4 calls, every row";
  return made;
}

inline ProblemResult problem(std::int64_t seq_len, const char* mask,
                             Verdict verdict) {
  ProblemResult made;
  made.problem.num_heads = made.problem.num_kv_heads = 2;
  made.problem.seq_len_q = made.problem.seq_len_kv = {seq_len};
  made.problem.mask = Mask::parse(mask).value();
  made.problem_line = made.problem.text();
  made.location = {"policy.yaml", 14, 5};
  made.verdict = verdict;
  made.engine_calls = 4;
  made.engine_seconds = 0.003;
  made.guard_seconds = 0.001;
  return made;
}

// Two that explain every call, one of them a convention too.
inline Diagnosis softmax_over_queries() {
  Diagnosis made;
  made.calls = 18;
  made.telling_calls = 17;
  made.problems = {"num_heads=1 seq_len_q=5 seq_len_kv=5",
                   "num_heads=2 seq_len_q=5 seq_len_kv=5"};
  made.equally_good = {"softmax-over-queries", "no-mask"};
  Explanation best;
  best.id = "softmax-over-queries";
  best.summary = "softmax over the query axis";
  best.cls = "future_leak_normaliser";
  best.reports = {"owner/repo#12", "owner/other#3"};
  best.calls_reproduced = 18;
  best.reproduces_all = true;
  best.largest_difference = 2e-7;
  Explanation other = best;
  other.id = "no-mask";
  other.summary = "ignores the mask";
  other.cls = "future_leak_direct";
  other.reports.clear();
  other.convention = "consistent with full; the policy says causal_top_left";
  other.told_apart = "told from last-key-dropped by 'census'";
  made.explanations = {best, other};
  made.probe_needed =
      "run problem 'seq_len=80' to tell softmax-over-queries from no-mask";
  return made;
}

// Nothing explains every call.
inline Diagnosis nothing_known() {
  Diagnosis made;
  made.calls = 9;
  made.telling_calls = 4;
  made.problems = {"num_heads=2 seq_len_q=33 seq_len_kv=33"};
  Explanation near;
  near.id = "last-key-dropped";
  near.summary = "each row misses its last key";
  near.cls = "past_dropped";
  near.calls_reproduced = 7;
  near.largest_difference = std::numeric_limits<double>::infinity();
  made.explanations = {near};
  return made;
}

// Softmax over the query axis, as the guard sees it.
inline ProblemResult wrong_axis() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ProblemResult made = problem(5, "causal_top_left", Verdict::kViolation);
  CheckResult sums = check("row-sum", Verdict::kViolation);
  const double observed[] = {0.3125, 1.0000125, 2.28, kNan, -kInfinity, 0, 3};
  for (int row = 0; row < 7; ++row)
    sums.findings.push_back(
        finding(FindingKind::kMass, row % 5, -1, observed[row], 1,
                "the weights of row " + std::to_string(row % 5) + " sum to " +
                    std::to_string(row) + " instead of 1"));
  sums.num_findings = 20;
  CheckResult future = check("future-influence", Verdict::kViolation);
  future.findings = {finding(FindingKind::kLeak, 0, 1, 0.25, 0,
                             "row 0 changed when tokens 1-4 did"),
                     finding(FindingKind::kLeak, 1, 2, 0.125, 0,
                             "row 1 changed when tokens 2-4 did")};
  future.num_findings = 2;
  CheckResult repeat = check("repeatable", Verdict::kViolation);
  repeat.warning_only = true;
  repeat.findings = {finding(FindingKind::kNotRepeatable, 3, -1, 0.5000001, 0.5,
                             "row 3 differs between two equal calls")};
  repeat.num_findings = 1;
  made.checks = {check("visibility", Verdict::kPass), sums, future, repeat,
                 check("padding", Verdict::kNotApplicable, "no padding")};
  made.smallest_failing = "num_heads=1 seq_len_q=5 seq_len_kv=5";
  made.map =
      InfluenceMap{.problem = "num_heads=1 seq_len_q=5 seq_len_kv=5",
                   .cells = {"#XXXX", "##XXX", "##o..", "####.", "#####"}};
  made.diagnosis = softmax_over_queries();
  made.replay =
      "attnguard check --engine 'builtin:wrong_axis' --seed 7 --check row-sum "
      "--problem 'num_heads=1 seq_len_q=5 seq_len_kv=5'";
  return made;
}

inline ProblemResult memory_faults() {
  ProblemResult made = problem(33, "full", Verdict::kViolation);
  CheckResult memory = check("memory", Verdict::kViolation);
  Finding past_end = finding(FindingKind::kOverwrite, -1, -1, 0, 0,
                             "wrote 3 elements past the end of the output");
  past_end.batch = past_end.head = -1;
  memory.findings = {past_end, finding(FindingKind::kUnwritten, 32, -1, 0, 0,
                                       "row 32 of head 1 was never written")};
  memory.findings[1].channel = 63;
  memory.num_findings = 2;
  CheckResult values = check("reference", Verdict::kViolation);
  values.findings = {
      finding(FindingKind::kValue, 1, -1, 0.5, 0.25, "off by 0.25"),
      finding(FindingKind::kMiss, 2, 1, 0, 1, "row 2 does not see key 1"),
      finding(FindingKind::kNonFinite, 3, -1,
              std::numeric_limits<double>::quiet_NaN(), 0.25, "row 3 is NaN")};
  values.num_findings = 3;
  made.checks = {memory, values};
  made.diagnosis = nothing_known();
  return made;
}

// Every verdict of a problem, and of a check.
inline RunResult failing_run() {
  RunResult run;
  run.engine = "builtin:wrong_axis";
  run.policy = "policy.yaml";
  run.seed = 18446744073709551615ull;
  run.threads = 2;
  run.verdict = Verdict::kViolation;
  ProblemResult passed = problem(16, "full", Verdict::kPass);
  passed.checks = {check("visibility", Verdict::kPass),
                   check("row-sum", Verdict::kPass)};
  ProblemResult unsure = problem(1, "full", Verdict::kInconclusive);
  unsure.checks = {check("visibility", Verdict::kInconclusive,
                         "one key only: nothing to tell apart"),
                   check("row-sum", Verdict::kPass)};
  ProblemResult crashed = problem(64, "full", Verdict::kEngineError);
  crashed.note = "the engine threw: out of range";
  ProblemResult refused = problem(8, "full", Verdict::kUnsupported);
  refused.note = "seq_len_kv must be a multiple of 16";
  refused.engine_calls = 0;
  ProblemResult empty = problem(3, "full", Verdict::kNotApplicable);
  run.problems = {passed,  wrong_axis(), memory_faults(), unsure, crashed,
                  refused, empty};
  return run;
}

inline RunResult passing_run() {
  RunResult run;
  run.engine = "builtin:tiled";
  run.policy = "policy.yaml";
  run.seed = 7;
  run.verdict = Verdict::kPass;
  run.problems = {problem(16, "causal_bottom_right", Verdict::kPass)};
  run.problems[0].checks = {check("visibility", Verdict::kPass),
                            check("row-sum", Verdict::kPass)};
  return run;
}

inline RunResult empty_run() {
  RunResult run;
  run.engine = "ggml:flash";
  run.policy = "built-in";
  run.note = "the policy asks for no problem";
  return run;
}

// Names and messages that no format may stumble over.
inline RunResult hostile_run() {
  const std::string nasty =
      "a\"b'c<d>&e]]>\x1b[31m\x01\x7f \xff\xfe\xc3\x28 \xed\xa0\x80 "
      "\xef\xbf\xbf \xc3\xa9";
  RunResult run = failing_run();
  run.engine = run.policy = run.note = nasty;
  for (ProblemResult& each : run.problems) {
    each.problem_line = each.note = each.replay = nasty;
    each.smallest_failing = each.location.file = nasty;
    if (each.map) each.map->cells = {"#\x1b<&", "\xff", ""};
    for (CheckResult& checked : each.checks) {
      checked.check += nasty;
      checked.note = checked.coverage = nasty;
      for (Finding& found : checked.findings)
        found.message = found.probe = nasty + "\nsecond line";
    }
  }
  return run;
}

}  // namespace attnguard::sample

#endif  // ATTNGUARD_TESTS_REPORT_SAMPLE_RESULTS_H_
