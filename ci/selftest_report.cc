#include "ci/selftest_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ci/command_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

bool found_by(const DefectTrial& trial, const std::string& check) {
  return std::find(trial.found_by.begin(), trial.found_by.end(), check) !=
         trial.found_by.end();
}

// A row per defect, a column per check; nothing in it depends on rounding.
std::string matrix_text(const SelftestResult& result) {
  std::string out;
  for (std::size_t c = 0; c < result.checks.size(); ++c)
    out += pad_left(std::to_string(c + 1), 4) + "  " + result.checks[c] + "\n";
  std::vector<Column> columns(2 + result.checks.size());
  columns.front().title = "defect";
  columns.front().right = false;
  columns.back().title = "rank";
  for (std::size_t c = 0; c < result.checks.size(); ++c)
    columns[c + 1].title = std::to_string(c + 1);
  for (const DefectTrial& trial : result.defects) {
    columns.front().cells.push_back({std::string(trial.defect->id)});
    for (std::size_t c = 0; c < result.checks.size(); ++c)
      columns[c + 1].cells.push_back(
          {found_by(trial, result.checks[c]) ? "x" : "."});
    columns.back().cells.push_back(
        {trial.rank > 0 ? std::to_string(trial.rank) : "-"});
  }
  out += "\n";
  for (const std::string& line : table_lines(columns, 0, Painter(false)))
    out += line + "\n";
  return out + "\n";
}

std::string share(std::int64_t part, std::size_t whole) {
  char text[64];
  std::snprintf(
      text, sizeof(text), "%lld (%.1f %%)", static_cast<long long>(part),
      whole == 0
          ? 0.0
          : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

// Several trials as one.
CleanTrial sum_of(std::string name, const std::vector<CleanTrial>& trials) {
  CleanTrial sum{.engine = std::move(name), .alarms = {}};
  for (const CleanTrial& trial : trials) {
    sum.problems += trial.problems;
    sum.passed += trial.passed;
    sum.not_judged += trial.not_judged;
    sum.alarms.insert(sum.alarms.end(), trial.alarms.begin(),
                      trial.alarms.end());
  }
  return sum;
}

std::string clean_text(const CleanTrial& trial, std::string_view problems) {
  std::string out = trial.engine + ": " + counted(trial.problems, problems) +
                    ", " + std::to_string(trial.passed) + " passed";
  if (trial.not_judged > 0)
    out += ", " + std::to_string(trial.not_judged) + " not judged";
  out += ", " +
         counted(static_cast<std::int64_t>(trial.alarms.size()), "alarm") +
         "\n";
  for (const FalseAlarm& alarm : trial.alarms)
    out += "  " + alarm.engine + " on '" + alarm.problem + "'\n    " +
           std::string(verdict_name(alarm.verdict)) + ": " + alarm.message +
           "\n";
  return out;
}

}  // namespace

std::string selftest_text(const SelftestResult& result) {
  std::string out = matrix_text(result);
  for (const DefectTrial& trial : result.defects)
    if (!trial.note.empty())
      out += std::string(trial.defect->id) + ": " + trial.note + "\n";
  const std::size_t total = result.defects.size();
  out += counted(static_cast<std::int64_t>(total), "defect") + ": " +
         share(result.detected(), total) + " detected, right cause first in " +
         share(result.ranked_within(1), total) + ", in the top three in " +
         share(result.ranked_within(3), total) + "\n";
  out += clean_text(
      sum_of(counted(static_cast<std::int64_t>(result.hides.size()), "defect") +
                 " where they cannot show",
             result.hides),
      "problem");
  out +=
      clean_text(sum_of(counted(static_cast<std::int64_t>(result.legal.size()),
                                "legal variant"),
                        result.legal),
                 "problem");
  for (const CleanTrial& trial : result.engines)
    out += clean_text(trial, "random problem");
  out += "random problems come from seed " + std::to_string(result.seed) + "\n";
  const auto pairs = result.indistinguishable();
  if (pairs.empty()) out += "indistinguishable pairs: none\n";
  for (const auto& [one, other] : pairs)
    out += "indistinguishable: " + one + " and " + other + "\n";
  return terminal_text(out + "\n" + (result.ok() ? "pass" : "violation") +
                       "\n");
}

namespace {

Json clean_json(const CleanTrial& trial) {
  Json alarms = Json::array();
  for (const FalseAlarm& alarm : trial.alarms)
    alarms.push_back({{"engine", alarm.engine},
                      {"problem", alarm.problem},
                      {"verdict", verdict_name(alarm.verdict)},
                      {"message", alarm.message}});
  return {{"engine", trial.engine},
          {"problems", trial.problems},
          {"passed", trial.passed},
          {"not_judged", trial.not_judged},
          {"alarms", std::move(alarms)}};
}

Json clean_json(const std::vector<CleanTrial>& trials) {
  Json all = Json::array();
  for (const CleanTrial& trial : trials) all.push_back(clean_json(trial));
  return all;
}

Json defect_json(const DefectTrial& trial) {
  return {{"defect", trial.defect->id},
          {"class", defect_class_name(trial.defect->cls)},
          {"problems", trial.problems},
          {"detected", trial.detected},
          {"found_by", trial.found_by},
          {"rank", trial.rank > 0 ? Json(trial.rank) : Json()},
          {"tied_with", trial.tied_with},
          {"note", trial.note}};
}

}  // namespace

std::string selftest_json(const SelftestResult& result) {
  Json defects = Json::array();
  for (const DefectTrial& trial : result.defects)
    defects.push_back(defect_json(trial));
  const Json report = {
      {"schema_version", kSchemaVersion},
      {"tool", {{"name", "attnguard"}, {"version", command_version()}}},
      {"seed", result.seed},
      {"random_problems", result.random_problems},
      {"verdict",
       verdict_name(result.ok() ? Verdict::kPass : Verdict::kViolation)},
      {"totals",
       {{"defects", result.defects.size()},
        {"detected", result.detected()},
        {"right_cause_first", result.ranked_within(1)},
        {"right_cause_in_top_three", result.ranked_within(3)},
        {"alarms", result.alarms()}}},
      {"checks", result.checks},
      {"defects", std::move(defects)},
      {"hides", clean_json(result.hides)},
      {"legal_variants", clean_json(result.legal)},
      {"correct_engines", clean_json(result.engines)},
      {"indistinguishable", result.indistinguishable()}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attnguard
