#include <cmath>
#include <nlohmann/json.hpp>

#include "guard/report/model_report.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

// JSON has no NaN and no infinities.
Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json index(std::int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json finding_json(const Finding& finding) {
  return {{"kind", finding_kind_name(finding.kind)},
          {"probe", finding.probe},
          {"sequence", index(finding.batch)},
          {"token", index(finding.query)},
          {"first_changed", index(finding.key)},
          {"entry", index(finding.channel)},
          {"observed", number(finding.observed)},
          {"expected", number(finding.expected)},
          {"bound", number(finding.bound)},
          {"message", finding.message}};
}

Json check_json(const CheckResult& check) {
  Json findings = Json::array();
  for (const Finding& finding : check.findings)
    findings.push_back(finding_json(finding));
  return {{"check", check.check},
          {"verdict", verdict_name(check.verdict)},
          {"note", check.note},
          {"coverage", check.coverage},
          {"num_findings", check.num_findings},
          {"findings", std::move(findings)}};
}

Json loss_json(const ModelResult& result) {
  if (!result.loss) return nullptr;
  return {{"one_pass", number(result.loss->one_pass)},
          {"token_by_token", number(result.loss->token_by_token)},
          {"gap", number(result.loss->gap())},
          {"mean_difference", number(result.loss->mean_difference)},
          {"bound", number(result.loss->bound)},
          {"positions", result.loss->positions}};
}

Json map_json(const ModelResult& result) {
  if (!result.map) return nullptr;
  return {{"tokens", result.map->problem}, {"cells", result.map->cells}};
}

}  // namespace

std::string model_json_report(const ModelResult& result,
                              const ReportOptions& options) {
  Json checks = Json::array();
  for (const CheckResult& check : result.checks)
    checks.push_back(check_json(check));
  const Json report = {{"schema_version", kSchemaVersion},
                       {"tool",
                        {{"name", "attnguard"},
                         {"version", options.version},
                         {"command", options.command_line}}},
                       {"verdict", verdict_name(result.verdict)},
                       {"exit_code", exit_code(result.verdict)},
                       {"model", result.model},
                       {"description", result.description},
                       {"note", result.note},
                       {"tokens", result.num_tokens},
                       {"random_tokens", result.random_tokens},
                       {"seed", result.seed},
                       {"rounding", number(result.rounding)},
                       {"model_calls", result.model_calls},
                       {"model_seconds", number(result.model_seconds)},
                       {"guard_seconds", number(result.guard_seconds)},
                       {"replay", result.replay},
                       {"loss", loss_json(result)},
                       {"influence_map", map_json(result)},
                       {"checks", std::move(checks)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attnguard
