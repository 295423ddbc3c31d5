// Test oracles compared: on the same defects and the same problems, what does
// each of them detect, and what does it falsely alarm about?
//
//   comparison_bench [--quick] [--seed N] [--places N] [--json FILE]
//                    [--oracle ID]... [--require ID]
//
// Prints Markdown tables. The subjects are
//   - every known defect and every legal variant, on its own problems;
//   - correct engines on the problems of the built-in policy, but for the
//     longest: the reference, builtin:tiled, and the reference with weights
//     rounded to the problem's dtype;
//   - one extra or one dropped key in some rows of a long problem, in several
//     random places.
//
// --quick     fewer problems, shorter long ones: seconds instead of minutes
// --places    of each kind of local fault; 20, or 2 in a quick run
// --json      writes everything that was measured to the file, too
// --oracle    compares only these
// --require   exit code 1 unless this oracle detects every fault and never
//             alarms falsely
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "bench/engines.h"
#include "bench/oracles/comparison_report.h"
#include "bench/oracles/local_fault.h"
#include "guard/base/rng.h"
#include "guard/engine/reference.h"
#include "guard/pipeline.h"

namespace attnguard {
namespace {

struct Options {
  bool quick = false;
  std::uint64_t seed = 1;
  std::int64_t places = 0;  // 0: the default
  std::string json;
  std::string require;
  std::vector<const Oracle*> oracles;
};

// Larger problems are for the last section.
constexpr std::int64_t kMostScores = 1 << 20;

// In a quick run one problem of the policy in so many.
constexpr std::size_t kQuickStep = 12;

constexpr Spread kSpreads[] = {Spread::kOneRowOneHead, Spread::kOneRowAllHeads,
                               Spread::kTileOneHead, Spread::kSecondHalf,
                               Spread::kEveryRow};

// One oracle on one case; its time is added up.
Judgement judge(std::size_t oracle, const OracleCase& subject,
                Comparison& comparison) {
  const auto start = std::chrono::steady_clock::now();
  Judgement judgement = comparison.oracles[oracle]->judge(subject);
  comparison.oracle_seconds[oracle] +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return judgement;
}

void judge_case(const Engine& engine, const Problem& problem,
                const Defect* defect, References& references,
                Comparison& comparison) {
  ComparedCase compared{engine.name, problem.text(), defect, {}};
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n)
    compared.judgements.push_back(
        judge(n, {engine, problem, comparison.seed, references}, comparison));
  comparison.cases.push_back(std::move(compared));
}

void judge_defects(const Options& options, Comparison& comparison) {
  References references;
  for (const Defect* defect : all_defects())
    for (std::string_view line : defect->shows_on) {
      if (line.empty()) continue;
      const Problem problem = Problem::parse(line).value();
      judge_case(defect_engine(*defect), problem, defect, references,
                 comparison);
      if (options.quick) break;
    }
}

std::int64_t num_scores(const Problem& problem) {
  return problem.batch * problem.num_heads * problem.max_len_q() *
         problem.max_len_kv();
}

// Correct engines that fit the problem: products of half-precision kernels
// take weights of that precision.
std::vector<Engine> correct_engines(const Problem& problem) {
  std::vector<Engine> engines = {reference_engine(),
                                 open_engine("builtin:tiled").value()};
  for (const auto& [dtype, id] : {std::pair{Dtype::kFp16, "legal-fp16-weights"},
                                  {Dtype::kBf16, "legal-bf16-weights"}})
    if (problem.dtype == dtype)
      engines.push_back(defect_engine(*find_defect(id)));
  return engines;
}

void judge_correct_engines(const Options& options, Comparison& comparison) {
  References references;
  std::size_t index = 0;
  for (const PolicyProblem& entry : default_policy().problems) {
    if (num_scores(entry.problem) > kMostScores) continue;
    if (options.quick && index++ % kQuickStep != 0) continue;
    for (const Engine& engine : correct_engines(entry.problem))
      if (unsupported_reason(engine, entry.problem).empty())
        judge_case(engine, entry.problem, nullptr, references, comparison);
  }
}

void judge_local_faults(const Options& options, Comparison& comparison) {
  const std::int64_t places =
      options.places > 0 ? options.places : (options.quick ? 2 : 20);
  comparison.local_fault_problem =
      "num_heads=2 seq_len=" + std::to_string(options.quick ? 512 : 4096) +
      " head_dim=64 mask=causal_bottom_right";
  for (const char* dtype : {"fp32", "fp16"}) {
    const Problem problem =
        Problem::parse(comparison.local_fault_problem + " dtype=" + dtype)
            .value();
    const auto memory = make_fault_memory();
    References references;
    for (KeyFault fault : {KeyFault::kExtra, KeyFault::kDropped})
      for (Spread spread : kSpreads) {
        LocalFaultResult result{
            std::string(key_fault_name(fault)),
            std::string(spread_name(spread)), dtype, places,
            std::vector<std::int64_t>(comparison.oracles.size(), 0)};
        for (std::int64_t place = 0; place < places; ++place) {
          const Engine engine = fault_engine(
              {fault, spread,
               derive_seed(comparison.seed, static_cast<std::uint64_t>(place))},
              memory);
          for (std::size_t n = 0; n < comparison.oracles.size(); ++n)
            result.detected[n] +=
                judge(n, {engine, problem, comparison.seed, references},
                      comparison)
                    .opinion == Opinion::kAlarm;
        }
        comparison.local_faults.push_back(std::move(result));
      }
  }
}

// The value of an option, or nullptr at the end of the line.
const char* next(int argc, char** argv, int& at) {
  return at + 1 < argc ? argv[++at] : nullptr;
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; ++at) {
    const std::string_view name = argv[at];
    if (name == "--quick") {
      options.quick = true;
      continue;
    }
    const char* value = next(argc, argv, at);
    if (value == nullptr) return std::nullopt;
    if (name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--places") {
      options.places = std::strtoll(value, nullptr, 10);
    } else if (name == "--json") {
      options.json = value;
    } else if (name == "--require" && find_oracle(value) != nullptr) {
      options.require = value;
    } else if (name == "--oracle" && find_oracle(value) != nullptr) {
      options.oracles.push_back(find_oracle(value));
    } else {
      return std::nullopt;
    }
  }
  if (options.oracles.empty())
    options.oracles.assign(all_oracles().begin(), all_oracles().end());
  return options;
}

// True when the oracle detects everything and never alarms falsely.
bool meets_demand(const Comparison& comparison, const std::string& id) {
  for (std::size_t n = 0; n < comparison.oracles.size(); ++n) {
    if (comparison.oracles[n]->id != id) continue;
    const OracleTotals totals = totals_of(comparison, n);
    std::cerr << "comparison_bench: " << id << " misses " << totals.missed()
              << " of " << totals.faulty + totals.places
              << " faults and alarms falsely on " << totals.false_alarms()
              << " of " << totals.legal + totals.correct << " problems\n";
    return totals.faulty > 0 && totals.places > 0 && totals.legal > 0 &&
           totals.correct > 0 && totals.missed() == 0 &&
           totals.false_alarms() == 0;
  }
  std::cerr << "comparison_bench: " << id << " was not compared\n";
  return false;
}

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  Comparison comparison;
  comparison.seed = options.seed;
  comparison.oracles = options.oracles;
  comparison.oracle_seconds.assign(options.oracles.size(), 0);
  judge_defects(options, comparison);
  judge_correct_engines(options, comparison);
  judge_local_faults(options, comparison);
  comparison.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  std::cout << comparison_markdown(comparison);
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << comparison_json(comparison);
    if (!file.flush()) {
      std::cerr << "comparison_bench: cannot write " << options.json << "\n";
      return 2;
    }
  }
  return options.require.empty() || meets_demand(comparison, options.require)
             ? 0
             : 1;
}

}  // namespace
}  // namespace attnguard

int main(int argc, char** argv) {
  const auto options = attnguard::parse_options(argc, argv);
  if (!options) {
    std::cerr << "usage: comparison_bench [--quick] [--seed N] [--places N] "
                 "[--json FILE] [--oracle ID]... [--require ID]\noracles:";
    for (const attnguard::Oracle* oracle : attnguard::all_oracles())
      std::cerr << " " << oracle->id;
    std::cerr << "\n";
    return 2;
  }
  return attnguard::run(*options);
}
