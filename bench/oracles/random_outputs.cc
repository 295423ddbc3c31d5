#include "bench/oracles/random_outputs.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "guard/engine/attention_variant.h"
#include "guard/engine/reference.h"
#include "guard/probe/execute.h"
#include "guard/probe/plan.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

Outputs rows_of(const Problem& problem, const ConstTensorView& output) {
  Outputs rows;
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_v));
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        output.load_row(b, h, i, 0, problem.head_dim_v, row.data());
        rows.insert(rows.end(), row.begin(), row.end());
      }
  return rows;
}

template <typename Visit>
void for_each_element(const KeyRanges& keys, std::span<double> values,
                      Visit visit) {
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      visit(values[static_cast<std::size_t>(j)]);
}

void mix_in_fp32(const VariantRow&, const KeyRanges& keys,
                 std::span<const double> weights, const Fp64Rows& value,
                 std::span<double> output) {
  std::vector<float> sum(output.size(), 0.0f);
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const auto weight =
          static_cast<float>(weights[static_cast<std::size_t>(j)]);
      const double* row = value.row(j);
      for (std::size_t c = 0; c < sum.size(); ++c)
        sum[c] += weight * static_cast<float>(row[c]);
    }
  std::copy(sum.begin(), sum.end(), output.begin());
}

// Correct engines take every problem in host memory: a failure is a mistake of
// this program.
Outputs outputs_or_abort(const Engine& engine, const Problem& problem,
                         std::uint64_t seed) {
  Result<Outputs> outputs = random_outputs(engine, problem, seed);
  if (!outputs.ok()) std::abort();
  return std::move(outputs.value());
}

}  // namespace

OracleInputs random_inputs(const Problem& problem, std::uint64_t seed) {
  return {std::make_shared<RandomScores>(problem, seed),
          std::make_shared<RandomValues>(problem, seed)};
}

Result<std::vector<Outputs>> run_calls(const Engine& engine,
                                       const Problem& problem,
                                       std::span<const OracleInputs> inputs) {
  Executor executor(engine, problem);
  if (Status status = executor.allocate(); !status.ok()) return status;
  std::vector<Outputs> all;
  for (const OracleInputs& given : inputs) {
    Plan plan(problem.head_dim_v);
    const Ticket ticket = plan.request(given.scores, given.values);
    Observation seen;
    if (Status status = executor.run(plan, ticket.call, seen); !status.ok())
      return status;
    all.push_back(rows_of(problem, seen.output));
  }
  return all;
}

Result<Outputs> random_outputs(const Engine& engine, const Problem& problem,
                               std::uint64_t seed) {
  const OracleInputs inputs = random_inputs(problem, seed);
  Result<std::vector<Outputs>> outputs =
      run_calls(engine, problem, {&inputs, 1});
  if (!outputs.ok()) return outputs.status();
  return std::move(outputs.value().front());
}

void References::turn_to(const Problem& problem, std::uint64_t seed) {
  const std::string line = problem.text();
  if (line == problem_ && seed == seed_) return;
  problem_ = line;
  seed_ = seed;
  exact_.clear();
  low_precision_.clear();
}

const Outputs& References::exact(const Problem& problem, std::uint64_t seed) {
  turn_to(problem, seed);
  if (exact_.empty())
    exact_ = outputs_or_abort(reference_engine(), problem, seed);
  return exact_;
}

const Outputs& References::low_precision(const Problem& problem,
                                         std::uint64_t seed) {
  turn_to(problem, seed);
  if (low_precision_.empty())
    low_precision_ =
        outputs_or_abort(low_precision_engine(problem.dtype), problem, seed);
  return low_precision_;
}

Engine low_precision_engine(Dtype dtype) {
  AttentionVariant variant;
  if (dtype != Dtype::kFp64) {
    const auto round = [dtype](const VariantRow&, const KeyRanges& keys,
                               std::span<double> values) {
      for_each_element(keys, values,
                       [dtype](double& x) { x = quantize(dtype, x); });
    };
    variant.scores = round;
    variant.weights = round;
    variant.mix = mix_in_fp32;
  }
  return variant_engine("oracle:low_precision",
                        "plain attention, every stored value rounded",
                        std::move(variant));
}

}  // namespace attnguard
