#include "ci/run/merge.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "ci/run/text_file.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

// The report of one shard.
struct ShardReport {
  std::string path;
  JsonReport report;
  const ShardOfRun& shard() const { return report.runs.front().shard; }
};

// "a.json says x, b.json says y"
Status differs(const ShardReport& a, const ShardReport& b,
               const std::string& what, const std::string& of_a,
               const std::string& of_b) {
  return invalid_argument("the reports are of different " + what + ": " +
                          a.path + " says '" + of_a + "', " + b.path +
                          " says '" + of_b + "'");
}

Result<ShardReport> read_part(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text.ok()) return text.status();
  Result<JsonReport> report = read_json_report(text.value());
  if (!report.ok())
    return invalid_argument(path + ": " + report.status().message());
  ShardReport part{path, std::move(report.value())};
  if (part.report.runs.empty())
    return invalid_argument(path + ": holds no run");
  for (const RunResult& run : part.report.runs)
    if (run.policy_digest.empty() || run.shard.count < 1 ||
        run.shard.index < 1 || run.shard.index > run.shard.count ||
        run.shard.index != part.shard().index ||
        run.shard.count != part.shard().count)
      return invalid_argument(path + ": says of no shard which one it is");
  return part;
}

Status compare(const ShardReport& a, const ShardReport& b) {
  if (a.report.version != b.report.version)
    return differs(a, b, "versions of attnguard", a.report.version,
                   b.report.version);
  if (a.shard().count != b.shard().count)
    return differs(a, b, "numbers of shards", std::to_string(a.shard().count),
                   std::to_string(b.shard().count));
  if (a.report.runs.size() != b.report.runs.size())
    return differs(a, b, "numbers of engines",
                   std::to_string(a.report.runs.size()),
                   std::to_string(b.report.runs.size()));
  for (std::size_t e = 0; e < a.report.runs.size(); ++e) {
    const RunResult &x = a.report.runs[e], &y = b.report.runs[e];
    if (x.engine != y.engine)
      return differs(a, b, "engines", x.engine, y.engine);
    if (x.seed != y.seed)
      return differs(a, b, "seeds", std::to_string(x.seed),
                     std::to_string(y.seed));
    if (x.policy_digest != y.policy_digest ||
        x.shard.num_problems != y.shard.num_problems)
      return differs(a, b, "policies or checks",
                     x.policy + " " + x.policy_digest,
                     y.policy + " " + y.policy_digest);
  }
  return ok_status();
}

Status check_shards(const std::vector<ShardReport>& parts) {
  const std::int64_t count = parts.front().shard().count;
  std::map<std::int64_t, const ShardReport*> seen;
  for (const ShardReport& part : parts) {
    const auto [at, is_new] = seen.emplace(part.shard().index, &part);
    if (!is_new)
      return invalid_argument("shard " + std::to_string(part.shard().index) +
                              " of " + std::to_string(count) + " is there " +
                              "twice: " + at->second->path + " and " +
                              part.path);
  }
  std::string missing;
  for (std::int64_t index = 1; index <= count; ++index)
    if (!seen.contains(index))
      missing += (missing.empty() ? "" : ", ") + std::to_string(index);
  if (missing.empty()) return ok_status();
  return invalid_argument("of " + std::to_string(count) +
                          " shards there is no report of: " + missing);
}

// Each part lists all of its policy's; what they accepted adds up.
Status join_suppressions(const std::vector<SuppressionUse>& from,
                         std::vector<SuppressionUse>& into) {
  if (from.size() != into.size())
    return invalid_argument(
        "the reports are of different suppressions or baselines: one lists " +
        std::to_string(into.size()) + ", another " +
        std::to_string(from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    into[i].reached = into[i].reached || from[i].reached;
    into[i].num_findings += from[i].num_findings;
  }
  return ok_status();
}

// Problems are sorted as in the policy, replayed failures (0) first.
Status join_run(RunResult& run) {
  std::stable_sort(run.problems.begin(), run.problems.end(),
                   [](const ProblemResult& a, const ProblemResult& b) {
                     return a.number < b.number;
                   });
  std::int64_t expected = 1;
  for (const ProblemResult& result : run.problems) {
    if (result.number == 0) continue;
    if (result.number != expected)
      return invalid_argument(
          run.engine + ": problem " +
          std::to_string(std::min(result.number, expected)) +
          (result.number < expected ? " is there twice" : " is missing") +
          ": the shards were not cut alike; give all the same --costs");
    ++expected;
  }
  if (expected != run.shard.num_problems + 1)
    return invalid_argument(run.engine + ": problem " +
                            std::to_string(expected) + " is missing: " +
                            "the shards were not cut alike; give all the same "
                            "--costs");
  run.shard.index = run.shard.count = 1;
  run.verdict = combine_problems(run.problems);
  for (const SuppressionUse& use : run.suppressions)
    if (use.expired && use.reached) run.verdict = Verdict::kViolation;
  return ok_status();
}

}  // namespace

Result<JsonReport> merge_reports(const std::vector<std::string>& paths) {
  std::vector<ShardReport> parts;
  for (const std::string& path : paths) {
    Result<ShardReport> part = read_part(path);
    if (!part.ok()) return part.status();
    parts.push_back(std::move(part.value()));
  }
  for (const ShardReport& part : parts)
    if (Status status = compare(parts.front(), part); !status.ok())
      return status;
  if (Status status = check_shards(parts); !status.ok()) return status;
  std::sort(parts.begin(), parts.end(),
            [](const ShardReport& a, const ShardReport& b) {
              return a.shard().index < b.shard().index;
            });
  JsonReport merged = std::move(parts.front().report);
  for (std::size_t p = 1; p < parts.size(); ++p)
    for (std::size_t e = 0; e < merged.runs.size(); ++e) {
      RunResult &into = merged.runs[e], &from = parts[p].report.runs[e];
      const Status joined =
          join_suppressions(from.suppressions, into.suppressions);
      if (!joined.ok()) return joined;
      if (!from.note.empty())
        into.note += (into.note.empty() ? "" : "; ") + from.note;
      std::move(from.problems.begin(), from.problems.end(),
                std::back_inserter(into.problems));
    }
  for (RunResult& run : merged.runs)
    if (Status status = join_run(run); !status.ok()) return status;
  return merged;
}

}  // namespace attnguard
