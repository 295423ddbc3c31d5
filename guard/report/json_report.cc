// For programs. The schema is versioned: fields may be added under one
// number, and none changes its meaning or goes. It is written down in
// attnguard-report.schema.json, which is installed.
//
//   {schema_version, tool: {name, version, command}, verdict, exit_code,
//    totals, runs: [{engine, policy, policy_found, policy_digest,
//      shard: {index, count, num_problems}, seed, threads, verdict, note,
//      totals, problems: [{problem, number, location, verdict, unchecked, note,
//        engine_calls, engine_seconds, guard_seconds, check_verdicts,
//        smallest_failing, replay, influence_map, diagnosis, checks: [{check,
//        verdict, warning_only, note,
//          coverage, num_findings, num_by_kind: [{kind, num_findings}],
//          largest_difference, largest_probe, num_suppressed, accepted: [...],
//          findings: [...]}]}],
//      suppressions: [{check, engine, problem, kind, reason, expires, location,
//        baseline, expired, reached, num_findings}]}]}
//
// A finding's `suppressed` is the reason why it is accepted, or null. Entries
// of a baseline stand among the suppressions.
//
// JSON has no NaN and no infinities: they are the strings "NaN", "Infinity"
// and "-Infinity". An index that does not apply is null.
#include <nlohmann/json.hpp>

#include "guard/report/json_values.h"
#include "guard/report/report_table.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReportSchemaVersion = 1;

Json totals_json(const Totals& totals) {
  Json problems = Json::object();
  for (std::size_t v = 0; v < kNumVerdicts; ++v)
    problems[std::string(verdict_name(static_cast<Verdict>(v)))] =
        totals.problems[v];
  return {{"num_problems", totals.num_problems},
          {"problems", std::move(problems)},
          {"unchecked", totals.unchecked},
          {"violations", totals.violations},
          {"suppressed", totals.suppressed},
          {"warnings", totals.warnings},
          {"engine_calls", totals.engine_calls},
          {"engine_seconds", json_number<Json>(totals.engine_seconds)},
          {"guard_seconds", json_number<Json>(totals.guard_seconds)},
          {"guard_share", json_number<Json>(totals.guard_share())}};
}

Json finding_json(const Finding& finding) {
  return {{"kind", finding_kind_name(finding.kind)},
          {"probe", finding.probe},
          {"batch", json_index<Json>(finding.batch)},
          {"head", json_index<Json>(finding.head)},
          {"query", json_index<Json>(finding.query)},
          {"key", json_index<Json>(finding.key)},
          {"channel", json_index<Json>(finding.channel)},
          {"tensor", finding.tensor.empty() ? Json() : Json(finding.tensor)},
          {"element", finding.tensor.empty() ? Json() : Json(finding.element)},
          {"observed", json_number<Json>(finding.observed)},
          {"expected", json_number<Json>(finding.expected)},
          {"bound", json_number<Json>(finding.bound)},
          {"message", finding.message},
          {"suppressed",
           finding.suppressed.empty() ? Json() : Json(finding.suppressed)}};
}

Json location_json(const SourceLocation& location) {
  if (location.file.empty() && location.line == 0) return nullptr;
  return {{"file", location.file},
          {"line", location.line},
          {"column", location.column}};
}

Json accepted_json(const CheckResult& check) {
  Json accepted = Json::array();
  for (const AcceptedFindings& one : check.accepted)
    accepted.push_back({{"kind", finding_kind_name(one.kind)},
                        {"num_findings", one.num_findings},
                        {"reason", one.reason},
                        {"location", location_json(one.location)},
                        {"baseline", one.baseline}});
  return accepted;
}

Json kinds_json(const CheckResult& check) {
  Json kinds = Json::array();
  for (const auto& [kind, count] : check.num_by_kind)
    kinds.push_back(
        {{"kind", finding_kind_name(kind)}, {"num_findings", count}});
  return kinds;
}

Json suppression_json(const SuppressionUse& use) {
  return {{"check", use.check},
          {"engine", use.engine},
          {"problem", use.problem},
          {"kind", use.kind.empty() ? Json() : Json(use.kind)},
          {"reason", use.reason},
          {"expires", use.expires.empty() ? Json() : Json(use.expires)},
          {"location", location_json(use.location)},
          {"baseline", use.baseline},
          {"expired", use.expired},
          {"reached", use.reached},
          {"num_findings", use.num_findings}};
}

Json check_json(const CheckResult& check) {
  Json findings = Json::array();
  for (const Finding& finding : check.findings)
    findings.push_back(finding_json(finding));
  return {{"check", check.check},
          {"verdict", verdict_name(check.verdict)},
          {"warning_only", check.warning_only},
          {"note", check.note},
          {"coverage", check.coverage},
          {"num_findings", check.num_findings},
          {"num_by_kind", kinds_json(check)},
          {"largest_difference", json_number<Json>(check.largest_difference)},
          {"largest_probe", check.largest_probe},
          {"num_suppressed", check.num_suppressed},
          {"accepted", accepted_json(check)},
          {"findings", std::move(findings)}};
}

Json map_json(const InfluenceMap& map) {
  return {{"problem", map.problem},
          {"batch", map.batch},
          {"head", map.head},
          {"first_row", map.first_row},
          {"first_column", map.first_column},
          {"cells", map.cells}};
}

Json diagnosis_json(const Diagnosis& diagnosis) {
  Json explanations = Json::array();
  for (const Explanation& one : diagnosis.explanations)
    explanations.push_back(
        {{"defect", one.id.empty() ? Json() : Json(one.id)},
         {"summary", one.summary},
         {"class", one.cls.empty() ? Json() : Json(one.cls)},
         {"reports", one.reports},
         {"convention", one.is_convention() ? Json(one.convention) : Json()},
         {"calls_reproduced", one.calls_reproduced},
         {"reproduces_all", one.reproduces_all},
         {"largest_difference", json_number<Json>(one.largest_difference)},
         {"told_apart", one.told_apart}});
  return {{"explanations", std::move(explanations)},
          {"equally_good", diagnosis.equally_good},
          {"probe_needed", diagnosis.probe_needed},
          {"calls", diagnosis.calls},
          {"telling_calls", diagnosis.telling_calls},
          {"problems", diagnosis.problems}};
}

// How many checks of the problem ended with each verdict.
Json check_verdicts_json(const ProblemResult& problem) {
  Json counts = Json::object();
  for (std::size_t v = 0; v < kNumVerdicts; ++v)
    counts[std::string(verdict_name(static_cast<Verdict>(v)))] = 0;
  for (const CheckResult& check : problem.checks) {
    Json& count = counts[std::string(verdict_name(check.verdict))];
    count = count.get<int>() + 1;
  }
  return counts;
}

Json problem_json(const ProblemResult& problem) {
  Json checks = Json::array();
  for (const CheckResult& check : problem.checks)
    checks.push_back(check_json(check));
  return {{"problem", problem.problem_line},
          {"number", problem.number},
          {"location", location_json(problem.location)},
          {"verdict", verdict_name(problem.verdict)},
          {"unchecked", problem.unchecked},
          {"note", problem.note},
          {"engine_calls", problem.engine_calls},
          {"engine_seconds", json_number<Json>(problem.engine_seconds)},
          {"guard_seconds", json_number<Json>(problem.guard_seconds)},
          {"check_verdicts", check_verdicts_json(problem)},
          {"smallest_failing", problem.smallest_failing},
          {"replay", problem.replay},
          {"influence_map", problem.map ? map_json(*problem.map) : Json()},
          {"diagnosis",
           problem.diagnosis ? diagnosis_json(*problem.diagnosis) : Json()},
          {"checks", std::move(checks)}};
}

Json run_json(const RunResult& run) {
  Json problems = Json::array();
  for (const ProblemResult& problem : run.problems)
    problems.push_back(problem_json(problem));
  Json suppressions = Json::array();
  for (const SuppressionUse& use : run.suppressions)
    suppressions.push_back(suppression_json(use));
  return {{"engine", run.engine},
          {"policy", run.policy},
          {"policy_found", run.policy_found},
          {"policy_digest", run.policy_digest},
          {"shard",
           {{"index", run.shard.index},
            {"count", run.shard.count},
            {"num_problems", run.shard.num_problems}}},
          {"seed", run.seed},
          {"threads", run.threads},
          {"verdict", verdict_name(run.verdict)},
          {"note", run.note},
          {"totals", totals_json(totals_of({&run, 1}))},
          {"problems", std::move(problems)},
          {"suppressions", std::move(suppressions)}};
}

std::string render_json(std::span<const RunResult> results,
                        const ReportOptions& options) {
  Json runs = Json::array();
  for (const RunResult& run : results) runs.push_back(run_json(run));
  const Verdict verdict = combine_runs(results);
  const Json report = {
      {"schema_version", kReportSchemaVersion},
      {"tool",
       {{"name", "attnguard"},
        {"version", options.version},
        {"command", options.command_line}}},
      {"verdict", verdict_name(verdict)},
      {"exit_code", options.exit_code.value_or(exit_code(verdict))},
      {"totals", totals_json(totals_of(results))},
      {"runs", std::move(runs)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

const ReportFormat kReportJson = {
    "json",
    "everything, for programs: schema_version 1, "
    "share/attnguard/attnguard-report.schema.json",
    render_json};

}  // namespace attnguard
