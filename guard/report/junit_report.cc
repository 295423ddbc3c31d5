// For CI servers: JUnit XML. One testsuite per engine, one testcase per
// problem and check.
//
//   violation       failure        not applicable, unsupported   skipped
//   engine error    error          inconclusive  error, type "inconclusive"
//
//   suppressed      skipped, with the reason
//
// Elements and attributes are those of Jenkins' schema, which GitLab and the
// others read too, in all of its editions, junit-4.xsd to junit-10.xsd. Hence
// the reason of a skipped testcase is its text: only the later ones know a
// message there. Jenkins takes either.
//
// JUnit has no warnings: a check that only warns passes, and its findings
// stand in system-out. A suite is green exactly when the run passed: where no
// testcase of a check says what went wrong, one for the problem or the whole
// run does.
#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "guard/base/text.h"
#include "guard/report/report_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

struct Counts {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  double seconds = 0;

  void add(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
    seconds += other.seconds;
  }
};

void set(pugi::xml_node node, const char* name, std::string_view value) {
  node.append_attribute(name).set_value(xml_text(value).c_str());
}

std::string seconds_text(double seconds) {
  return fmt::format("{:.6f}", seconds);
}

// A suite has a count of what was skipped, the document has none.
void set_counts(pugi::xml_node node, const Counts& counts, bool suite) {
  set(node, "tests", std::to_string(counts.tests));
  set(node, "failures", std::to_string(counts.failures));
  set(node, "errors", std::to_string(counts.errors));
  if (suite) set(node, "skipped", std::to_string(counts.skipped));
  // The schema takes three decimals here, and any number of a testcase.
  set(node, "time", fmt::format("{:.3f}", counts.seconds));
}

// One testcase before it is written.
struct Case {
  std::string name;
  Verdict verdict = Verdict::kPass;
  bool warning_only = false;
  bool suppressed = false;
  std::string message;
  std::string body;
};

std::string finding_line(const Finding& finding) {
  std::string line{finding_kind_name(finding.kind)};
  const auto place = [&](const char* name, std::int64_t value) {
    if (value >= 0) line += fmt::format(" {}={}", name, value);
  };
  place("batch", finding.batch);
  place("head", finding.head);
  place("query", finding.query);
  place("key", finding.key);
  place("channel", finding.channel);
  return line + fmt::format(" observed={} expected={} bound={} probe={}: {}\n",
                            format_double(finding.observed),
                            format_double(finding.expected),
                            format_double(finding.bound), finding.probe,
                            finding.message);
}

// "suppressed: 5 findings (reason)"
std::string suppressed_text(const CheckResult& check) {
  std::string text = "suppressed: ";
  for (const AcceptedFindings& one : check.accepted)
    text += fmt::format("{}{} of {} ({})",
                        &one == &check.accepted.front() ? "" : ", ",
                        counted(one.num_findings, "finding"),
                        finding_kind_name(one.kind), one.reason);
  return text;
}

// The first finding that is not accepted; nullptr when none was kept.
const Finding* first_open(const CheckResult& check) {
  for (const Finding& finding : check.findings)
    if (finding.suppressed.empty()) return &finding;
  return nullptr;
}

std::string violation_body(const ProblemResult& problem,
                           const CheckResult& check) {
  std::string body = "\n";
  std::int64_t rest = check.num_findings - check.num_suppressed;
  for (const Finding& finding : check.findings) {
    if (!finding.suppressed.empty()) continue;
    body += finding_line(finding);
    --rest;
  }
  if (rest > 0) body += fmt::format("and {} more\n", rest);
  if (check.num_suppressed > 0) body += suppressed_text(check) + "\n";
  if (!problem.smallest_failing.empty())
    body += "smallest failing case: " + problem.smallest_failing + "\n";
  if (problem.diagnosis)
    for (const std::string& line : diagnosis_lines(*problem.diagnosis))
      body += line + "\n";
  if (!problem.replay.empty()) body += "replay: " + problem.replay + "\n";
  return body;
}

Case check_case(const ProblemResult& problem, const CheckResult& check) {
  Case made{.name = check.check + " [" + problem.problem_line + "]",
            .verdict = check.verdict,
            .warning_only = check.warning_only,
            .message = check.note,
            .body = ""};
  if (check.verdict != Verdict::kViolation) return made;
  made.suppressed = check.suppressed();
  if (made.suppressed) {
    made.message = suppressed_text(check);
    return made;
  }
  made.body = violation_body(problem, check);
  const Finding* first = first_open(check);
  made.message = fmt::format(
      "{}{}{}", counted(check.num_findings - check.num_suppressed, "finding"),
      first == nullptr ? "" : ": ", first == nullptr ? "" : first->message);
  return made;
}

bool is_bad(Verdict verdict) {
  return verdict == Verdict::kViolation || verdict == Verdict::kInconclusive ||
         verdict == Verdict::kEngineError;
}

bool is_red(const Case& one) {
  return is_bad(one.verdict) && !one.warning_only && !one.suppressed;
}

// The problem's checks and, where they do not show its verdict, the problem.
std::vector<Case> problem_cases(const ProblemResult& problem) {
  std::vector<Case> cases;
  bool shown = false;
  for (const CheckResult& check : problem.checks) {
    const Case& one = cases.emplace_back(check_case(problem, check));
    shown |= one.verdict == problem.verdict &&
             is_red(one) == is_bad(problem.verdict);
  }
  const bool passed_with_warnings =
      problem.verdict == Verdict::kPass && !cases.empty();
  if (shown || passed_with_warnings) return cases;
  cases.push_back({.name = "[" + problem.problem_line + "]",
                   .verdict = problem.verdict,
                   .message = problem.note,
                   .body = ""});
  return cases;
}

void write_outcome(pugi::xml_node node, const Case& one, Counts& counts) {
  const auto outcome = [&](const char* element, const char* type) {
    pugi::xml_node child = node.append_child(element);
    set(child, "type", type);
    set(child, "message", one.message);
    if (!one.body.empty()) child.text().set(xml_text(one.body).c_str());
  };
  const auto skipped = [&] {
    ++counts.skipped;
    pugi::xml_node child = node.append_child("skipped");
    if (!one.message.empty()) child.text().set(xml_text(one.message).c_str());
  };
  if (one.suppressed) {
    skipped();
  } else if (one.warning_only && one.verdict == Verdict::kViolation) {
    const std::string text = "warning: " + one.message + one.body;
    node.append_child("system-out").text().set(xml_text(text).c_str());
  } else if (one.verdict == Verdict::kViolation) {
    ++counts.failures;
    outcome("failure", "violation");
  } else if (is_red(one)) {
    ++counts.errors;
    outcome("error", one.verdict == Verdict::kEngineError ? "engine_error"
                                                          : "inconclusive");
  } else if (one.verdict != Verdict::kPass) {
    skipped();
  }
}

void write_case(pugi::xml_node suite, const RunResult& run, const Case& one,
                double seconds, Counts& counts) {
  pugi::xml_node node = suite.append_child("testcase");
  set(node, "classname", run.engine);
  set(node, "name", one.name);
  set(node, "time", seconds_text(seconds));
  ++counts.tests;
  counts.seconds += seconds;
  write_outcome(node, one, counts);
}

Counts write_suite(pugi::xml_node root, const RunResult& run,
                   const ReportOptions& options) {
  pugi::xml_node suite = root.append_child("testsuite");
  set(suite, "name", run.engine);
  if (!options.timestamp.empty()) set(suite, "timestamp", options.timestamp);
  if (!options.hostname.empty()) set(suite, "hostname", options.hostname);
  pugi::xml_node properties = suite.append_child("properties");
  const auto property = [&](const char* name, std::string_view value) {
    pugi::xml_node node = properties.append_child("property");
    set(node, "name", name);
    set(node, "value", value);
  };
  property("policy", run.policy);
  property("seed", std::to_string(run.seed));
  property("threads", std::to_string(run.threads));

  Counts counts;
  for (const ProblemResult& problem : run.problems) {
    const std::vector<Case> cases = problem_cases(problem);
    // The calls are shared between the checks, and so is their time.
    const double seconds = (problem.engine_seconds + problem.guard_seconds) /
                           static_cast<double>(cases.size());
    for (const Case& one : cases) write_case(suite, run, one, seconds, counts);
  }
  const bool expired = std::ranges::any_of(
      run.suppressions,
      [](const SuppressionUse& use) { return use.expired && use.reached; });
  if (run.verdict != Verdict::kPass &&
      (expired || counts.failures + counts.errors == 0)) {
    const Case whole{
        .name = "run",
        .verdict = run.verdict == Verdict::kViolation ||
                           run.verdict == Verdict::kEngineError
                       ? run.verdict
                       : Verdict::kInconclusive,
        .message = run.note.empty() ? "nothing was checked" : run.note,
        .body = ""};
    write_case(suite, run, whole, 0, counts);
  }
  set_counts(suite, counts, true);
  return counts;
}

std::string render_junit(std::span<const RunResult> results,
                         const ReportOptions& options) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  set(root, "name",
      options.version.empty() ? "attnguard" : "attnguard " + options.version);
  Counts all;
  for (const RunResult& run : results) all.add(write_suite(root, run, options));
  set_counts(root, all, false);
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace

const ReportFormat kReportJunit = {
    "junit", "JUnit XML, for CI servers: a testcase per problem and check",
    render_junit};

}  // namespace attnguard
