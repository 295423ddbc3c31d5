// `attnguard selftest`: is this build of the guard any good? Runs it on every
// known defect and on what is correct, and counts.
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>

#include "adapters/plain/builtin.h"
#include "ci/commands.h"
#include "ci/usage.h"
#include "guard/check/check.h"
#include "guard/diagnosis/selftest.h"
#include "guard/pipeline.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostProblems = 1000000;
constexpr std::uint64_t kMostThreads = 4096;
constexpr int kSchemaVersion = 1;

Status read_options(const Arguments& arguments, SelftestOptions& options,
                    int& threads) {
  const auto read =
      [](std::string_view name, const std::optional<std::string>& text,
         std::uint64_t lowest, std::uint64_t highest, auto& into) -> Status {
    if (!text) return ok_status();
    const Result<std::uint64_t> value =
        whole_number(name, *text, lowest, highest);
    if (!value.ok()) return value.status();
    into = static_cast<std::decay_t<decltype(into)>>(value.value());
    return ok_status();
  };
  Status status = read("--seed", arguments.seed, 0, UINT64_MAX, options.seed);
  if (status.ok())
    status = read("--problems", arguments.random_problems, 0, kMostProblems,
                  options.random_problems);
  if (status.ok())
    status = read("--threads", arguments.threads, 1, kMostThreads, threads);
  if (status.ok() && arguments.format.value_or("text") != "text" &&
      *arguments.format != "json")
    return invalid_argument("--format: unknown '" + *arguments.format +
                            "'; known are text and json");
  return status;
}

Result<std::vector<Engine>> correct_engines() {
  std::vector<Engine> engines;
  for (const char* name : {"reference", "tiled"}) {
    EngineSpec spec;
    spec.full = "builtin:" + std::string(name);
    spec.engine = name;
    Result<Engine> engine = kBuiltinAdapter.open(spec);
    if (!engine.ok()) return engine.status();
    engines.push_back(std::move(engine.value()));
  }
  return engines;
}

SelftestResult run(const std::vector<Engine>& engines,
                   SelftestOptions options) {
  const Verify verify = [](const Engine& engine, const Problem& problem,
                           bool diagnosed) {
    RunOptions run_options;
    run_options.draw_maps = diagnosed;
    return verify_problem(engine, problem,
                          default_policy().resolve(engine.name), run_options);
  };
  const std::vector<std::string_view> ids = check_ids();
  return run_selftest(verify, ids, engines, options);
}

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

std::string render_text(const SelftestResult& result) {
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

std::string render_json(const SelftestResult& result) {
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

}  // namespace

int selftest_command(const Arguments& arguments, std::ostream& out,
                     std::ostream& err, const Surroundings& surroundings) {
  SelftestOptions options;
  int threads = 0;
  const Status status = read_options(arguments, options, threads);
  if (!status.ok())
    return usage_error(err, status.message(),
                       "'attnguard selftest --help' explains the options");
  if (threads > 0) omp_set_num_threads(threads);
  const Result<std::vector<Engine>> engines = correct_engines();
  if (!engines.ok()) return usage_error(err, engines.status().message());
  if (surroundings.err_is_terminal)
    options.progress = [&err](const std::string& engine) {
      err << "\r\x1b[K" << terminal_text(engine) << std::flush;
    };
  const SelftestResult result = run(engines.value(), options);
  if (surroundings.err_is_terminal) err << "\r\x1b[K" << std::flush;
  out << (arguments.format.value_or("text") == "json" ? render_json(result)
                                                      : render_text(result));
  return exit_code(result.ok() ? Verdict::kPass : Verdict::kViolation);
}

}  // namespace attnguard
