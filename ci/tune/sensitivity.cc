// What a check still sees under a tolerance: faults of a known size in an
// exact computation, and the known defects.
#include <algorithm>
#include <cmath>

#include "ci/tune/tune.h"
#include "guard/check/check.h"
#include "guard/defect/defect.h"
#include "guard/engine/reference.h"
#include "guard/pipeline.h"

namespace attnguard {
namespace {

enum class Fault { kLeak, kDropped, kMass };

constexpr int kSmallestExponent = -40;  // Of two: beyond any dtype's rounding.
constexpr int kBisections = 13;         // To 1/200 of an octave.

// The first key that the row must not see, or the last that it must; -1 when
// there is none, or dropping it would leave nothing.
std::int64_t faulty_key(const Problem& problem, std::int64_t b, std::int64_t i,
                        Fault fault) {
  KeyRanges allowed;
  problem.mask.allowed(problem.row(b, i), allowed);
  if (fault == Fault::kDropped)
    return allowed.count() > 1 ? allowed.ranges().back().end - 1 : -1;
  for (std::int64_t j = problem.len_kv(b); j-- > 0;)
    if (!allowed.contains(j)) return j;
  return -1;
}

// Adds the fault to an exact row: a share `size` of the weights goes to a key
// that must not be seen, or is taken from one that must.
void plant(const AttentionCall& call, std::int64_t b, std::int64_t h,
           std::int64_t i, Fault fault, double size,
           std::vector<double>& output) {
  const Problem& problem = *call.problem;
  if (fault == Fault::kMass) {
    for (double& value : output) value *= 1 + size;
    return;
  }
  const std::int64_t key = faulty_key(problem, b, i, fault);
  if (key < 0) return;
  std::vector<double> value(output.size());
  call.value.load_row(b, problem.kv_head_of(h), key, 0, problem.head_dim_v,
                      value.data());
  const double share = fault == Fault::kLeak ? size : -size / (1 - size);
  for (std::size_t c = 0; c < output.size(); ++c)
    output[c] += share * (value[c] - output[c]);
}

Engine faulty_engine(Fault fault, double size) {
  Engine engine{.name = "fault"};
  engine.run = [fault, size](const AttentionCall& call) {
    const Problem& problem = *call.problem;
    ReferenceRow row;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
          reference_row({&problem, call.query, call.key, call.value}, b, h, i,
                        row);
          std::vector<double> output = row.output;
          plant(call, b, h, i, fault, size, output);
          call.output.store_row(b, h, i, 0, problem.head_dim_v, output.data());
        }
    return ok_status();
  };
  return engine;
}

bool sees(const Measurement& measured, Fault fault, double size) {
  Problem problem;
  problem.num_heads = problem.num_kv_heads = 1;
  problem.seq_len_q = problem.seq_len_kv = {64};
  problem.head_dim_qk = problem.head_dim_v = 64;
  problem.dtype = measured.dtype;
  problem.mask = Mask::parse("causal_bottom_right").value();
  Settings settings;
  settings.checks[measured.check].tolerances[measured.dtype] = {
      Tolerance::Kind::kNumber, measured.tolerance};
  RunOptions options;
  options.checks = {measured.check};
  options.draw_maps = false;
  return verify_problem(faulty_engine(fault, size), problem, settings, options)
             .verdict == Verdict::kViolation;
}

std::optional<double> smallest(const Measurement& measured, Fault fault) {
  constexpr double kMost = 0.5;  // A key that takes half of a row's weight.
  if (!sees(measured, fault, kMost) || sees(measured, fault, 0))
    return std::nullopt;
  double high = std::log2(kMost), low = kSmallestExponent;
  for (int step = 0; step < kBisections; ++step) {
    const double middle = (low + high) / 2;
    (sees(measured, fault, std::exp2(middle)) ? high : low) = middle;
  }
  return with_margin(std::exp2(high), 1);
}

// The checks that are violated.
std::vector<std::string> alarms(const ProblemResult& result) {
  std::vector<std::string> ids;
  for (const CheckResult& check : result.checks)
    if (check.verdict == Verdict::kViolation && !check.warning_only)
      ids.push_back(check.check);
  return ids;
}

}  // namespace

void find_smallest_faults(Measurement& measurement) {
  measurement.leak = smallest(measurement, Fault::kLeak);
  measurement.dropped = smallest(measurement, Fault::kDropped);
  measurement.mass = smallest(measurement, Fault::kMass);
}

std::vector<HiddenDefect> hidden_defects(const Engine& engine,
                                         const Settings& before,
                                         const Settings& after,
                                         std::span<const Dtype> dtypes) {
  RunOptions options;
  options.draw_maps = false;
  std::vector<HiddenDefect> hidden;
  for (const Defect* defect : all_defects()) {
    if (defect->legal()) continue;
    for (std::string_view line : defect->shows_on) {
      const Result<Problem> problem = Problem::parse(line);
      if (line.empty() || !problem.ok()) continue;
      if (std::ranges::find(dtypes, problem.value().dtype) == dtypes.end() ||
          !unsupported_reason(engine, problem.value()).empty())
        continue;
      const Engine faulty = defect_engine(*defect);
      const std::vector<std::string> seen =
          alarms(verify_problem(faulty, problem.value(), before, options));
      // What another check sees does not depend on these tolerances.
      if (seen.empty() || !std::ranges::all_of(seen, is_tuned)) continue;
      if (alarms(verify_problem(faulty, problem.value(), after, options))
              .empty())
        hidden.push_back({std::string(defect->id), std::string(line), seen});
    }
  }
  return hidden;
}

}  // namespace attnguard
