#include "guard/diagnosis/influence_map.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>

#include "guard/probe/execute.h"
#include "guard/probe/random.h"
#include "guard/probe/token.h"

namespace attnguard {
namespace {

// A map is an explanation, not a check: a slow engine goes without.
constexpr std::chrono::seconds kTimeLimit{10};

// The first of `count` consecutive indices below `length` that include
// `wanted`.
std::int64_t window_start(std::int64_t wanted, std::int64_t count,
                          std::int64_t length) {
  return std::clamp<std::int64_t>(wanted - count / 2, 0,
                                  std::max<std::int64_t>(length - count, 0));
}

bool row_moved(const Observation& seen, const ConstTensorView& base,
               std::int64_t b, std::int64_t h, std::int64_t i) {
  std::vector<double> before(static_cast<std::size_t>(base.shape[3]));
  std::vector<double> after(before.size());
  base.load_row(b, h, i, 0, base.shape[3], before.data());
  seen.output.load_row(b, h, i, 0, base.shape[3], after.data());
  for (std::size_t c = 0; c < before.size(); ++c)
    if (!(before[c] == after[c]) &&
        !(std::isnan(before[c]) && std::isnan(after[c])))
      return true;
  return false;
}

char mark(bool moved, bool may) {
  if (moved) return may ? '#' : 'X';
  return may ? 'o' : '.';
}

// Why there is nothing to measure.
Status check_drawable(const Engine& engine, const Problem& problem,
                      std::int64_t batch) {
  if (problem.len_q(batch) == 0 || problem.len_kv(batch) == 0)
    return invalid_argument(
        "batch entry " + std::to_string(batch) + " has no " +
        (problem.len_q(batch) == 0 ? "query" : "key") +
        ", so that a map of it has no cell; choose an entry with both");
  // Noise would look like leaks.
  if (!engine.capabilities.deterministic)
    return unsupported("engine '" + engine.name +
                       "' says that it does not repeat itself, and its noise "
                       "would look like influence");
  return ok_status();
}

Status too_slow(const Engine& engine, std::int64_t calls, std::int64_t wanted) {
  return unsupported("engine '" + engine.name + "' was too slow for a map: " +
                     std::to_string(calls) + " of " + std::to_string(wanted) +
                     " calls took more than " +
                     std::to_string(kTimeLimit.count()) +
                     " s; draw fewer keys, or use a smaller problem");
}

}  // namespace

Result<InfluenceMap> draw_influence_map(const Engine& engine,
                                        const Problem& problem,
                                        std::uint64_t seed, std::int64_t batch,
                                        std::int64_t head, std::int64_t query,
                                        std::int64_t key,
                                        std::int64_t most_tokens) {
  if (Status status = check_drawable(engine, problem, batch); !status.ok())
    return status;
  const auto start = std::chrono::steady_clock::now();
  InfluenceMap map;
  map.problem = problem.text();
  map.batch = batch;
  map.head = head;
  const std::int64_t len_q = problem.len_q(batch);
  const std::int64_t len_kv = problem.len_kv(batch);
  const std::int64_t rows = std::min(len_q, most_tokens);
  const std::int64_t columns = std::min(len_kv, most_tokens);
  map.first_row = window_start(std::max<std::int64_t>(query, 0), rows, len_q);
  map.first_column =
      window_start(std::max<std::int64_t>(key, 0), columns, len_kv);

  Plan plan(problem.head_dim_v);
  const std::uint64_t base = base_seed(seed);
  const Ticket before =
      plan.request(std::make_shared<RandomScores>(problem, base),
                   std::make_shared<RandomValues>(problem, base));
  plan.keep_output(before);
  for (std::int64_t token = 0; token < columns; ++token) {
    const OneToken change(problem, base, batch, head, map.first_column + token);
    plan.request(change.scores(), change.values());
  }
  Executor executor(engine, problem);
  if (Status status = executor.allocate(); !status.ok()) return status;
  map.cells.assign(static_cast<std::size_t>(rows),
                   std::string(static_cast<std::size_t>(columns), ' '));
  KeyRanges allowed;
  for (std::int64_t call = 0; call <= columns; ++call) {
    Observation seen;
    if (Status status = executor.run(plan, static_cast<int>(call), seen);
        !status.ok())
      return status;
    if (std::chrono::steady_clock::now() - start > kTimeLimit)
      return too_slow(engine, call + 1, columns + 1);
    if (call == 0) continue;
    const std::int64_t token = map.first_column + call - 1;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t i = map.first_row + r;
      problem.mask.allowed(problem.row(batch, i), allowed);
      const bool moved =
          row_moved(seen, seen.kept(before.call), batch, head, i);
      map.cells[static_cast<std::size_t>(r)]
               [static_cast<std::size_t>(call - 1)] =
          mark(moved, allowed.contains(token));
    }
  }
  return map;
}

}  // namespace attnguard
