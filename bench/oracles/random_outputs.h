// What an engine gives for chosen inputs, and what correct attention gives for
// the same ones.
#ifndef ATTNGUARD_BENCH_ORACLES_RANDOM_OUTPUTS_H_
#define ATTNGUARD_BENCH_ORACLES_RANDOM_OUTPUTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guard/base/status.h"
#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"

namespace attnguard {

// The output of one call in fp64: the rows within each entry's own length,
// [batch][num_heads][len_q][head_dim_v]. Elements that the engine never wrote
// are NaN.
using Outputs = std::vector<double>;

struct OracleInputs {
  ScorePatternPtr scores;
  ValuePatternPtr values;
};

// Random queries, keys and values of standard deviation 1.
OracleInputs random_inputs(const Problem& problem, std::uint64_t seed);

// One call for each of the inputs, in order, on the same tensors.
Result<std::vector<Outputs>> run_calls(const Engine& engine,
                                       const Problem& problem,
                                       std::span<const OracleInputs> inputs);

Result<Outputs> random_outputs(const Engine& engine, const Problem& problem,
                               std::uint64_t seed);

// Correct outputs for random_inputs(). Those of the last problem and seed are
// remembered, so judge the engines of a problem one after the other.
class References {
 public:
  // fp64 attention, rounded once to the output's dtype.
  const Outputs& exact(const Problem& problem, std::uint64_t seed);

  // Plain attention that rounds whatever it stores to the problem's dtype:
  // scores, weights and output. Sums are kept in fp32 as matrix products keep
  // them (in fp64 on fp64 problems).
  const Outputs& low_precision(const Problem& problem, std::uint64_t seed);

 private:
  void turn_to(const Problem& problem, std::uint64_t seed);

  std::string problem_;
  std::uint64_t seed_ = 0;
  Outputs exact_, low_precision_;
};

// The engine behind References::low_precision.
Engine low_precision_engine(Dtype dtype);

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_RANDOM_OUTPUTS_H_
