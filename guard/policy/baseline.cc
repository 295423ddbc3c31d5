#include "guard/policy/baseline.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>
#include <tuple>

#include "guard/base/text.h"
#include "guard/policy/suppress.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBaselineVersion = 1;
constexpr std::size_t kLargestBaseline = std::size_t{64} << 20;  // bytes

// What tells findings apart: engine, check, kind, problem.
using Known = std::tuple<std::string, std::string, std::string, std::string>;

struct BaselineField {
  const char* name;
  std::string Suppression::*text;
};

constexpr std::array<BaselineField, 4> kBaselineFields = {
    {{"engine", &Suppression::engine},
     {"check", &Suppression::check},
     {"kind", &Suppression::kind},
     {"problem", &Suppression::problem}}};

Status bad(const std::string& name, const std::string& message) {
  return invalid_argument(name + ": " + message +
                          "; write it anew with --write-baseline");
}

// Ends parsing at a depth that no baseline has, before the stack does.
bool too_deep(std::string_view text) {
  constexpr int kDeepest = 16;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > kDeepest)
      return true;
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

Result<Suppression> read_entry(const Json& entry, std::size_t number,
                               const std::string& name) {
  const std::string place = "entry " + std::to_string(number);
  Suppression known;
  known.baseline = true;
  known.reason = "known: " + name;
  if (!entry.is_object() || entry.size() != kBaselineFields.size())
    return bad(name, place + " is not {engine, check, kind, problem}");
  for (const BaselineField& field : kBaselineFields) {
    const auto value = entry.find(field.name);
    if (value == entry.end() || !value->is_string())
      return bad(name, place + " has no text '" + field.name + "'");
    known.*(field.text) = value->get<std::string>();
  }
  const auto kinds = finding_kind_names();
  if (std::ranges::find(kinds, known.kind) == kinds.end())
    return bad(name, place + " has the unknown kind '" + known.kind + "'");
  return known;
}

std::set<Known> known_in(std::span<const RunResult> runs) {
  std::set<Known> all;
  for (const RunResult& run : runs)
    for (const ProblemResult& problem : run.problems)
      for (const CheckResult& check : problem.checks) {
        if (check.verdict != Verdict::kViolation) continue;
        std::set<FindingKind> suppressed;
        for (const AcceptedFindings& one : check.accepted)
          if (!one.baseline) suppressed.insert(one.kind);
        for (const auto& [kind, count] : check.num_by_kind)
          if (count > 0 && !suppressed.contains(kind))
            all.emplace(run.engine, check.check, finding_kind_name(kind),
                        problem.problem_line);
      }
  return all;
}

// Whether the runs say that the entry is there or gone.
bool is_judged(const Suppression& entry, std::span<const RunResult> runs) {
  for (const RunResult& run : runs) {
    if (run.engine != entry.engine) continue;
    for (const ProblemResult& problem : run.problems) {
      if (problem.problem_line != entry.problem) continue;
      for (const CheckResult& check : problem.checks)
        if (check.check == entry.check &&
            (check.verdict == Verdict::kPass ||
             check.verdict == Verdict::kViolation))
          return true;
    }
  }
  return false;
}

std::set<Known> all_known(std::span<const RunResult> runs,
                          std::span<const Suppression> old) {
  std::set<Known> all = known_in(runs);
  for (const Suppression& entry : old)
    if (!is_judged(entry, runs))
      all.emplace(entry.engine, entry.check, entry.kind, entry.problem);
  return all;
}

}  // namespace

Result<std::vector<Suppression>> parse_baseline(std::string_view text,
                                                const std::string& name) {
  if (too_deep(text)) return bad(name, "this is no baseline");
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad(name, "this is no JSON");
  const auto version =
      json.is_object() ? json.find("attnguard_baseline") : json.end();
  if (!json.is_object() || version == json.end())
    return bad(name, "this is no baseline: 'attnguard_baseline' is missing");
  if (*version != kBaselineVersion)
    return bad(
        name, "only version " + std::to_string(kBaselineVersion) +
                  " of baselines is known, this is " +
                  version->dump(-1, ' ', true, Json::error_handler_t::replace));
  const auto findings = json.find("findings");
  if (findings == json.end() || !findings->is_array())
    return bad(name, "the list 'findings' is missing");
  std::vector<Suppression> known;
  for (const Json& entry : *findings) {
    Result<Suppression> one = read_entry(entry, known.size() + 1, name);
    if (!one.ok()) return one.status();
    known.push_back(std::move(one.value()));
  }
  return known;
}

Result<std::vector<Suppression>> load_baseline(const std::string& path) {
  const auto failure = [&](const std::string& message) {
    return Status(StatusCode::kIo,
                  "cannot read the baseline " + path + ": " + message);
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return failure("this is a directory");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return failure(std::generic_category().message(errno));
  std::string text(
      std::min<std::uintmax_t>(kLargestBaseline + 1,
                               std::filesystem::file_size(path, error) + 1),
      '\0');
  if (error) return failure("this is no regular file");
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kLargestBaseline)
    return failure("it is larger than 64 MiB");
  return parse_baseline(text, path);
}

std::string baseline_text(std::span<const RunResult> runs,
                          std::span<const Suppression> old) {
  // A finding a line, so that a change of the file is easy to read.
  std::string out =
      "{\n  \"attnguard_baseline\": " + std::to_string(kBaselineVersion) +
      ",\n  \"findings\": [";
  const char* lead = "\n    ";
  for (const auto& [engine, check, kind, problem] : all_known(runs, old)) {
    const Json entry = {{"engine", engine},
                        {"check", check},
                        {"kind", kind},
                        {"problem", problem}};
    out += lead + entry.dump(-1, ' ', false, Json::error_handler_t::replace);
    lead = ",\n    ";
  }
  return out + "\n  ]\n}\n";
}

}  // namespace attnguard
