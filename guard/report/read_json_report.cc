#include "guard/report/read_json_report.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "guard/report/totals.h"

namespace attnguard {
namespace {

using ReadJson = nlohmann::json;

constexpr int kReadSchemaVersion = 1;
constexpr std::size_t kNumFindingKinds = 9;

// What is wrong with the text; leaves this file as a Status.
struct Mistake {
  std::string message;
};

// A part of the report and where it lies.
class Node {
 public:
  Node(const ReadJson& json, std::string path)
      : json_(&json), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Mistake{path_ + ": " + what};
  }

  Node at(const char* name) const {
    if (!json_->is_object()) fail("is no object");
    const std::string path = path_.empty() ? name : path_ + "." + name;
    const auto found = json_->find(name);
    if (found == json_->end()) throw Mistake{path + ": is missing"};
    return {*found, path};
  }

  bool is_null() const { return json_->is_null(); }

  template <typename Use>
  void each(Use use) const {
    if (!json_->is_array()) fail("is no list");
    for (std::size_t i = 0; i < json_->size(); ++i)
      use(Node((*json_)[i], path_ + "[" + std::to_string(i) + "]"));
  }

  std::string text() const {
    if (!json_->is_string()) fail("is no text");
    return json_->get<std::string>();
  }
  bool flag() const {
    if (!json_->is_boolean()) fail("is neither true nor false");
    return json_->get<bool>();
  }
  template <typename Integer>
  Integer integer() const {
    if (json_->is_number_unsigned()) {
      const auto value = json_->get<std::uint64_t>();
      if (std::in_range<Integer>(value)) return static_cast<Integer>(value);
    } else if (json_->is_number_integer()) {
      const auto value = json_->get<std::int64_t>();
      if (std::in_range<Integer>(value)) return static_cast<Integer>(value);
    }
    fail("is no whole number in range");
  }
  // JSON has no NaN and no infinities: see json_report.cc.
  double number() const {
    if (json_->is_number()) return json_->get<double>();
    const std::string word = text();
    if (word == "NaN") return std::nan("");
    if (word == "Infinity") return std::numeric_limits<double>::infinity();
    if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
    fail("is no number");
  }
  // An index that does not apply is null.
  std::int64_t index() const {
    return is_null() ? -1 : integer<std::int64_t>();
  }
  std::string text_or_null() const { return is_null() ? "" : text(); }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    each([&](const Node& one) { all.push_back(one.text()); });
    return all;
  }

  // The value of an enumeration with `count` names.
  template <typename Enum>
  Enum choice(std::string_view (*name)(Enum), std::size_t count) const {
    const std::string word = text();
    for (std::size_t i = 0; i < count; ++i)
      if (word == name(static_cast<Enum>(i))) return static_cast<Enum>(i);
    fail("unknown '" + word + "'");
  }
  Verdict verdict() const {
    return choice<Verdict>(verdict_name, kNumVerdicts);
  }

 private:
  const ReadJson* json_;
  std::string path_;
};

FindingKind read_kind(const Node& node) {
  return node.choice<FindingKind>(finding_kind_name, kNumFindingKinds);
}

Finding read_finding(const Node& node) {
  Finding finding;
  finding.kind = read_kind(node.at("kind"));
  finding.probe = node.at("probe").text();
  finding.batch = node.at("batch").index();
  finding.head = node.at("head").index();
  finding.query = node.at("query").index();
  finding.key = node.at("key").index();
  finding.channel = node.at("channel").index();
  finding.tensor = node.at("tensor").text_or_null();
  const Node element = node.at("element");
  if (!element.is_null()) finding.element = element.integer<std::int64_t>();
  finding.observed = node.at("observed").number();
  finding.expected = node.at("expected").number();
  finding.bound = node.at("bound").number();
  finding.message = node.at("message").text();
  finding.suppressed = node.at("suppressed").text_or_null();
  return finding;
}

SourceLocation read_location(const Node& node) {
  SourceLocation location;
  if (node.is_null()) return location;
  location.file = node.at("file").text();
  location.line = node.at("line").integer<int>();
  location.column = node.at("column").integer<int>();
  return location;
}

AcceptedFindings read_accepted(const Node& node) {
  AcceptedFindings accepted;
  accepted.kind = read_kind(node.at("kind"));
  accepted.num_findings = node.at("num_findings").integer<std::int64_t>();
  accepted.reason = node.at("reason").text();
  accepted.location = read_location(node.at("location"));
  accepted.baseline = node.at("baseline").flag();
  return accepted;
}

SuppressionUse read_suppression(const Node& node) {
  SuppressionUse use;
  use.check = node.at("check").text();
  use.engine = node.at("engine").text();
  use.problem = node.at("problem").text();
  use.kind = node.at("kind").text_or_null();
  use.reason = node.at("reason").text();
  use.expires = node.at("expires").text_or_null();
  use.location = read_location(node.at("location"));
  use.baseline = node.at("baseline").flag();
  use.expired = node.at("expired").flag();
  use.reached = node.at("reached").flag();
  use.num_findings = node.at("num_findings").integer<std::int64_t>();
  return use;
}

CheckResult read_check(const Node& node) {
  CheckResult check;
  check.check = node.at("check").text();
  check.verdict = node.at("verdict").verdict();
  check.warning_only = node.at("warning_only").flag();
  check.note = node.at("note").text();
  check.coverage = node.at("coverage").text();
  check.num_findings = node.at("num_findings").integer<std::int64_t>();
  node.at("num_by_kind").each([&](const Node& one) {
    check.num_by_kind[read_kind(one.at("kind"))] =
        one.at("num_findings").integer<std::int64_t>();
  });
  check.largest_difference = node.at("largest_difference").number();
  check.largest_probe = node.at("largest_probe").text();
  check.num_suppressed = node.at("num_suppressed").integer<std::int64_t>();
  node.at("accepted").each([&](const Node& one) {
    check.accepted.push_back(read_accepted(one));
  });
  node.at("findings").each([&](const Node& finding) {
    check.findings.push_back(read_finding(finding));
  });
  return check;
}

InfluenceMap read_map(const Node& node) {
  InfluenceMap map;
  map.problem = node.at("problem").text();
  map.batch = node.at("batch").integer<std::int64_t>();
  map.head = node.at("head").integer<std::int64_t>();
  map.first_row = node.at("first_row").integer<std::int64_t>();
  map.first_column = node.at("first_column").integer<std::int64_t>();
  map.cells = node.at("cells").texts();
  return map;
}

Explanation read_explanation(const Node& node) {
  Explanation one;
  one.id = node.at("defect").text_or_null();
  one.summary = node.at("summary").text();
  one.cls = node.at("class").text_or_null();
  one.reports = node.at("reports").texts();
  one.convention = node.at("convention").text_or_null();
  one.calls_reproduced = node.at("calls_reproduced").integer<int>();
  one.reproduces_all = node.at("reproduces_all").flag();
  one.largest_difference = node.at("largest_difference").number();
  one.told_apart = node.at("told_apart").text();
  return one;
}

Diagnosis read_diagnosis(const Node& node) {
  Diagnosis diagnosis;
  node.at("explanations").each([&](const Node& one) {
    diagnosis.explanations.push_back(read_explanation(one));
  });
  diagnosis.equally_good = node.at("equally_good").texts();
  diagnosis.probe_needed = node.at("probe_needed").text();
  diagnosis.calls = node.at("calls").integer<int>();
  diagnosis.telling_calls = node.at("telling_calls").integer<int>();
  diagnosis.problems = node.at("problems").texts();
  return diagnosis;
}

ProblemResult read_problem(const Node& node) {
  ProblemResult result;
  result.problem_line = node.at("problem").text();
  // What an invalid problem's line says was reported when it ran.
  const Result<Problem> problem = Problem::parse(result.problem_line);
  if (problem.ok()) result.problem = problem.value();
  result.number = node.at("number").integer<std::int64_t>();
  result.location = read_location(node.at("location"));
  result.verdict = node.at("verdict").verdict();
  result.unchecked = node.at("unchecked").flag();
  result.note = node.at("note").text();
  result.engine_calls = node.at("engine_calls").integer<std::int64_t>();
  result.engine_seconds = node.at("engine_seconds").number();
  result.guard_seconds = node.at("guard_seconds").number();
  result.smallest_failing = node.at("smallest_failing").text();
  result.replay = node.at("replay").text();
  const Node map = node.at("influence_map"), diagnosis = node.at("diagnosis");
  if (!map.is_null()) result.map = read_map(map);
  if (!diagnosis.is_null()) result.diagnosis = read_diagnosis(diagnosis);
  node.at("checks").each(
      [&](const Node& check) { result.checks.push_back(read_check(check)); });
  return result;
}

RunResult read_run(const Node& node) {
  RunResult run;
  run.engine = node.at("engine").text();
  run.policy = node.at("policy").text();
  run.policy_found = node.at("policy_found").flag();
  run.policy_digest = node.at("policy_digest").text();
  const Node shard = node.at("shard");
  run.shard.index = shard.at("index").integer<std::int64_t>();
  run.shard.count = shard.at("count").integer<std::int64_t>();
  run.shard.num_problems = shard.at("num_problems").integer<std::int64_t>();
  run.seed = node.at("seed").integer<std::uint64_t>();
  run.threads = node.at("threads").integer<int>();
  run.verdict = node.at("verdict").verdict();
  run.note = node.at("note").text();
  node.at("problems").each([&](const Node& problem) {
    run.problems.push_back(read_problem(problem));
  });
  node.at("suppressions").each([&](const Node& use) {
    run.suppressions.push_back(read_suppression(use));
  });
  return run;
}

JsonReport read_report(const Node& root) {
  if (root.at("schema_version").integer<int>() != kReadSchemaVersion)
    root.at("schema_version")
        .fail("this attnguard reads version " +
              std::to_string(kReadSchemaVersion));
  JsonReport report;
  const Node tool = root.at("tool");
  if (tool.at("name").text() != "attnguard")
    tool.at("name").fail("is not 'attnguard'");
  report.version = tool.at("version").text();
  report.command_line = tool.at("command").text();
  root.at("runs").each(
      [&](const Node& run) { report.runs.push_back(read_run(run)); });
  return report;
}

}  // namespace

Result<JsonReport> read_json_report(std::string_view text) {
  try {
    const ReadJson json = ReadJson::parse(text);
    return read_report(Node(json, ""));
  } catch (const Mistake& mistake) {
    return invalid_argument("no report of 'attnguard check --format json': " +
                            mistake.message);
  } catch (const ReadJson::parse_error& error) {
    return invalid_argument("no JSON: byte " + std::to_string(error.byte) +
                            " is not what belongs there");
  }
}

}  // namespace attnguard
