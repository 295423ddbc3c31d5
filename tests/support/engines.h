// Engines for tests: built-in ones by name, and one with a planted fault.
#ifndef ATTNGUARD_TESTS_SUPPORT_ENGINES_H_
#define ATTNGUARD_TESTS_SUPPORT_ENGINES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "adapters/plain/builtin.h"
#include "guard/engine/engine.h"
#include "guard/finding/result.h"
#include "guard/pipeline.h"
#include "tests/support/problems.h"

namespace attnguard {

inline Engine builtin(const std::string& name) {
  EngineSpec spec;
  spec.full = "builtin:" + name;
  spec.engine = name;
  Result<Engine> engine = kBuiltinAdapter.open(spec);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? engine.value() : Engine{};
}

// builtin:tiled, but row (batch, head, query) attends to allowed XOR {key}: a
// leak when the key is not allowed, a dropped key when it is.
struct Plant {
  std::int64_t batch = 0, head = 0, query = 0, key = 0;
};

inline Engine planted(const Plant& plant) {
  Engine engine = builtin("tiled");
  engine.name = "test:planted";
  const AttentionCallback tiled = engine.run;
  engine.run = [tiled, plant](const AttentionCall& call) {
    const Status status = tiled(call);
    const Problem& p = *call.problem;
    if (!status.ok() || plant.batch >= p.batch || plant.head >= p.num_heads ||
        plant.query >= p.len_q(plant.batch) ||
        plant.key >= p.len_kv(plant.batch))
      return status;
    KeyRanges allowed;
    p.mask.allowed(p.row(plant.batch, plant.query), allowed);
    const std::int64_t g = p.kv_head_of(plant.head);
    const auto d = static_cast<std::size_t>(p.head_dim_qk);
    const auto dv = static_cast<std::size_t>(p.head_dim_v);
    std::vector<double> q(d), k(d), v(dv), out(dv, 0.0);
    call.query.load_row(plant.batch, plant.head, plant.query, 0, p.head_dim_qk,
                        q.data());
    std::vector<double> score;
    std::vector<std::int64_t> keys;
    double top = -INFINITY;
    for (std::int64_t j = 0; j < p.len_kv(plant.batch); ++j) {
      if (allowed.contains(j) == (j == plant.key)) continue;
      call.key.load_row(plant.batch, g, j, 0, p.head_dim_qk, k.data());
      double dot = 0;
      for (std::size_t c = 0; c < d; ++c) dot += q[c] * k[c];
      keys.push_back(j);
      score.push_back(dot * p.scale());
      top = std::max(top, score.back());
    }
    double sum = 0;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const double w = std::exp(score[n] - top);
      call.value.load_row(plant.batch, g, keys[n], 0, p.head_dim_v, v.data());
      for (std::size_t c = 0; c < dv; ++c) out[c] += w * v[c];
      sum += w;
    }
    for (double& x : out) x /= sum > 0 ? sum : 1;
    call.output.store_row(plant.batch, plant.head, plant.query, 0, p.head_dim_v,
                          out.data());
    return status;
  };
  return engine;
}

inline ProblemResult run_problem(const Engine& engine, const std::string& line,
                                 std::vector<std::string> checks = {},
                                 std::uint64_t seed = 7) {
  Settings settings;
  settings.seed = seed;
  RunOptions options;
  options.checks = std::move(checks);
  options.draw_maps = false;
  return verify_problem(engine, problem_of(line), settings, options);
}

inline const CheckResult* check_of(const ProblemResult& result,
                                   const std::string& id) {
  for (const CheckResult& check : result.checks)
    if (check.check == id) return &check;
  return nullptr;
}

// The check's result, or an empty one (and a failed test) when it did not run.
inline const CheckResult& expect_check(const ProblemResult& result,
                                       const std::string& id) {
  static const CheckResult kNone;
  const CheckResult* check = check_of(result, id);
  EXPECT_NE(check, nullptr) << id << " did not run: " << result.note;
  return check != nullptr ? *check : kNone;
}

// Everything found, one line each: what a failing test prints.
inline std::string findings_text(const ProblemResult& result) {
  std::string text = result.problem_line + " " + result.note + "\n";
  for (const CheckResult& check : result.checks) {
    text += "  " + check.check + ": " +
            std::string(verdict_name(check.verdict)) + " " + check.note + "\n";
    for (const Finding& finding : check.findings)
      text += "    [" + finding.probe + "] " + finding.message + "\n";
  }
  return text;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_ENGINES_H_
