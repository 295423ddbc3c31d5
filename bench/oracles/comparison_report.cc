#include "bench/oracles/comparison_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

bool alarmed(const ComparedCase& compared, std::size_t oracle) {
  return compared.judgements[oracle].opinion == Opinion::kAlarm;
}

std::string share(std::int64_t part, std::int64_t whole) {
  return std::to_string(part) + " / " + std::to_string(whole);
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string table_head(const std::vector<std::string>& cells) {
  return row(cells) + row(std::vector<std::string>(cells.size(), "---"));
}

std::vector<std::string> with_oracles(std::vector<std::string> cells,
                                      const Comparison& comparison) {
  for (const Oracle* oracle : comparison.oracles)
    cells.emplace_back(oracle->id);
  return cells;
}

std::string oracle_list(const Comparison& comparison) {
  std::string text = table_head({"oracle", "rule"});
  for (const Oracle* oracle : comparison.oracles)
    text += row({std::string(oracle->id), std::string(oracle->summary)});
  return text;
}

std::string totals_table(const Comparison& comparison) {
  std::string text = table_head(
      {"oracle", "defects detected", "defects x problems detected",
       "false alarms on legal variants", "false alarms on correct engines",
       "local faults detected", "engine calls per problem", "seconds"});
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n) {
    const OracleTotals totals = totals_of(comparison, n);
    const auto cases =
        static_cast<double>(std::max<std::int64_t>(totals.cases(), 1));
    text += row({std::string(comparison.oracles[n]->id),
                 share(totals.defects_detected, totals.defects),
                 share(totals.faulty_detected, totals.faulty),
                 share(totals.legal_alarms, totals.legal),
                 share(totals.correct_alarms, totals.correct),
                 share(totals.places_detected, totals.places),
                 fixed(static_cast<double>(totals.calls) / cases, 1),
                 fixed(comparison.oracle_seconds[n], 1)});
  }
  return text;
}

// Defects of one class that the oracle finds on one of their problems at
// least.
std::string class_table(const Comparison& comparison) {
  std::string text =
      table_head(with_oracles({"class of defect", "defects"}, comparison));
  for (DefectClass cls : all_defect_classes()) {
    std::set<std::string_view> defects;
    std::vector<std::set<std::string_view>> found(comparison.oracles.size());
    for (const ComparedCase& compared : comparison.cases) {
      if (!compared.faulty() || compared.defect->cls != cls) continue;
      defects.insert(compared.defect->id);
      for (std::size_t n = 0; n < found.size(); ++n)
        if (alarmed(compared, n)) found[n].insert(compared.defect->id);
    }
    if (defects.empty()) continue;
    std::vector<std::string> cells = {std::string(defect_class_name(cls)),
                                      std::to_string(defects.size())};
    for (const auto& ids : found) cells.push_back(std::to_string(ids.size()));
    text += row(cells);
  }
  return text;
}

// Alarms on engines that are right, engine by engine.
std::string correct_table(const Comparison& comparison) {
  std::string text =
      table_head(with_oracles({"engine", "problems"}, comparison));
  std::map<std::string, std::vector<std::int64_t>> engines;
  for (const ComparedCase& compared : comparison.cases) {
    if (compared.faulty()) continue;
    const std::string name =
        compared.engine + (compared.legal() ? " (its own problems)" : "");
    auto& counts = engines[name];
    counts.resize(comparison.oracles.size() + 1, 0);
    ++counts[0];
    for (std::size_t n = 0; n < comparison.oracles.size(); ++n)
      if (alarmed(compared, n)) ++counts[n + 1];
  }
  for (const auto& [name, counts] : engines) {
    std::vector<std::string> cells = {name};
    for (std::int64_t count : counts) cells.push_back(std::to_string(count));
    text += row(cells);
  }
  return text;
}

std::string local_fault_table(const Comparison& comparison) {
  std::string text =
      table_head(with_oracles({"fault", "where", "dtype"}, comparison));
  for (const LocalFaultResult& result : comparison.local_faults) {
    std::vector<std::string> cells = {result.fault, result.spread,
                                      result.dtype};
    for (std::int64_t detected : result.detected)
      cells.push_back(share(detected, result.places));
    text += row(cells);
  }
  return text;
}

std::string undetected_list(const Comparison& comparison) {
  std::string text;
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n) {
    std::map<std::string, bool> found;
    for (const ComparedCase& compared : comparison.cases)
      if (compared.faulty())
        found[std::string(compared.defect->id)] |= alarmed(compared, n);
    std::string names;
    for (const auto& [name, seen] : found)
      if (!seen) names += (names.empty() ? "" : ", ") + name;
    text += "- " + std::string(comparison.oracles[n]->id) + ": " +
            (names.empty() ? "none" : names) + "\n";
  }
  return text;
}

std::string opinion_name(Opinion opinion) {
  switch (opinion) {
    case Opinion::kFine:
      return "fine";
    case Opinion::kAlarm:
      return "alarm";
    case Opinion::kNone:
      break;
  }
  return "none";
}

Json json_of(const ComparedCase& compared, const Comparison& comparison) {
  Json judgements = Json::object();
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n) {
    const Judgement& judgement = compared.judgements[n];
    judgements[std::string(comparison.oracles[n]->id)] = {
        {"opinion", opinion_name(judgement.opinion)},
        {"engine_calls", judgement.engine_calls},
        {"why", judgement.why}};
  }
  const bool has_class = compared.defect != nullptr;
  return {{"engine", compared.engine},
          {"problem", compared.problem},
          {"kind", compared.faulty()  ? "defect"
                   : compared.legal() ? "legal"
                                      : "correct"},
          {"class", has_class ? Json(defect_class_name(compared.defect->cls))
                              : Json(nullptr)},
          {"oracles", std::move(judgements)}};
}

Json json_of(const LocalFaultResult& result, const Comparison& comparison) {
  Json detected = Json::object();
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n)
    detected[std::string(comparison.oracles[n]->id)] = result.detected[n];
  return {{"fault", result.fault},
          {"where", result.spread},
          {"dtype", result.dtype},
          {"places", result.places},
          {"detected", std::move(detected)}};
}

}  // namespace

OracleTotals totals_of(const Comparison& comparison, std::size_t oracle) {
  OracleTotals totals;
  std::map<std::string_view, bool> defects;
  for (const ComparedCase& compared : comparison.cases) {
    const bool alarm = alarmed(compared, oracle);
    totals.calls += compared.judgements[oracle].engine_calls;
    if (compared.faulty()) {
      ++totals.faulty;
      totals.faulty_detected += alarm;
      defects[compared.defect->id] |= alarm;
    } else if (compared.legal()) {
      ++totals.legal;
      totals.legal_alarms += alarm;
    } else {
      ++totals.correct;
      totals.correct_alarms += alarm;
    }
  }
  for (const auto& [id, found] : defects) {
    ++totals.defects;
    totals.defects_detected += found;
  }
  for (const LocalFaultResult& result : comparison.local_faults) {
    totals.places += result.places;
    totals.places_detected += result.detected[oracle];
  }
  return totals;
}

std::string comparison_markdown(const Comparison& comparison) {
  const std::int64_t places =
      comparison.local_faults.empty() ? 0 : comparison.local_faults[0].places;
  return "# What each test oracle sees\n\nSame engines, same problems, seed " +
         std::to_string(comparison.seed) + ", " + fixed(comparison.seconds, 0) +
         " s. Those that compare with a reference get fp64 attention, which "
         "shares no mistake with\nthe engine, and outputs that begin as NaN: "
         "their best case.\n\n" +
         oracle_list(comparison) + "\n## Totals\n\n" +
         totals_table(comparison) + "\n## Defects detected, by class\n\n" +
         class_table(comparison) +
         "\n## Defects that go unseen on all of their problems\n\n" +
         undetected_list(comparison) +
         "\n## False alarms: problems of correct engines with an alarm\n\n" +
         correct_table(comparison) + "\n## Late and narrow faults\n\nEach in " +
         std::to_string(places) + " random places of `" +
         comparison.local_fault_problem +
         "`, on one set of random\ninputs.\n\n" + local_fault_table(comparison);
}

std::string comparison_json(const Comparison& comparison) {
  Json oracles = Json::array();
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n) {
    const OracleTotals totals = totals_of(comparison, n);
    oracles.push_back({{"id", comparison.oracles[n]->id},
                       {"rule", comparison.oracles[n]->summary},
                       {"defects", totals.defects},
                       {"defects_detected", totals.defects_detected},
                       {"defect_problems", totals.faulty},
                       {"defect_problems_detected", totals.faulty_detected},
                       {"legal_problems", totals.legal},
                       {"legal_false_alarms", totals.legal_alarms},
                       {"correct_problems", totals.correct},
                       {"correct_false_alarms", totals.correct_alarms},
                       {"local_fault_places", totals.places},
                       {"local_fault_places_detected", totals.places_detected},
                       {"engine_calls", totals.calls},
                       {"seconds", comparison.oracle_seconds[n]}});
  }
  Json cases = Json::array(), local_faults = Json::array();
  for (const ComparedCase& compared : comparison.cases)
    cases.push_back(json_of(compared, comparison));
  for (const LocalFaultResult& result : comparison.local_faults)
    local_faults.push_back(json_of(result, comparison));
  const Json document = {
      {"schema_version", 1},
      {"seed", comparison.seed},
      {"seconds", comparison.seconds},
      {"local_fault_problem", comparison.local_fault_problem},
      {"oracles", std::move(oracles)},
      {"cases", std::move(cases)},
      {"local_faults", std::move(local_faults)}};
  return document.dump(1) + "\n";
}

}  // namespace attnguard
