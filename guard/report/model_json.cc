#include <nlohmann/json.hpp>

#include "guard/report/json_values.h"
#include "guard/report/model_report.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kModelSchemaVersion = 1;

Json model_finding_json(const Finding& finding) {
  return {{"kind", finding_kind_name(finding.kind)},
          {"probe", finding.probe},
          {"sequence", json_index<Json>(finding.batch)},
          {"token", json_index<Json>(finding.query)},
          {"first_changed", json_index<Json>(finding.key)},
          {"entry", json_index<Json>(finding.channel)},
          {"observed", json_number<Json>(finding.observed)},
          {"expected", json_number<Json>(finding.expected)},
          {"bound", json_number<Json>(finding.bound)},
          {"message", finding.message}};
}

Json model_check_json(const CheckResult& check) {
  Json findings = Json::array();
  for (const Finding& finding : check.findings)
    findings.push_back(model_finding_json(finding));
  return {{"check", check.check},
          {"verdict", verdict_name(check.verdict)},
          {"note", check.note},
          {"coverage", check.coverage},
          {"num_findings", check.num_findings},
          {"findings", std::move(findings)}};
}

Json loss_json(const ModelResult& result) {
  if (!result.loss) return nullptr;
  return {{"one_pass", json_number<Json>(result.loss->one_pass)},
          {"token_by_token", json_number<Json>(result.loss->token_by_token)},
          {"gap", json_number<Json>(result.loss->gap())},
          {"mean_difference", json_number<Json>(result.loss->mean_difference)},
          {"bound", json_number<Json>(result.loss->bound)},
          {"positions", result.loss->positions}};
}

Json model_map_json(const ModelResult& result) {
  if (!result.map) return nullptr;
  return {{"tokens", result.map->problem}, {"cells", result.map->cells}};
}

}  // namespace

std::string model_json_report(const ModelResult& result,
                              const ReportOptions& options) {
  Json checks = Json::array();
  for (const CheckResult& check : result.checks)
    checks.push_back(model_check_json(check));
  const Json report = {
      {"schema_version", kModelSchemaVersion},
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
      {"rounding", json_number<Json>(result.rounding)},
      {"model_calls", result.model_calls},
      {"model_seconds", json_number<Json>(result.model_seconds)},
      {"guard_seconds", json_number<Json>(result.guard_seconds)},
      {"replay", result.replay},
      {"loss", loss_json(result)},
      {"influence_map", model_map_json(result)},
      {"checks", std::move(checks)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attnguard
