#include "guard/diagnosis/battery.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "guard/probe/address_code.h"
#include "guard/probe/census.h"
#include "guard/probe/ladder.h"
#include "guard/probe/needle.h"
#include "guard/probe/ones.h"
#include "guard/probe/perturb.h"
#include "guard/probe/random.h"
#include "guard/probe/shift.h"
#include "guard/probe/step.h"

namespace attnguard {
namespace {

// Queries and keys of the large random call, as far as the engine's scores
// hold them: scores grow by its square.
constexpr double kLargeAmplitude = 3;

std::vector<JudgedRow> rows_to_judge(const Problem& problem) {
  std::vector<JudgedRow> rows;
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        problem.mask.allowed(problem.row(b, i), allowed);
        // Of rows without a key empty_row=any promises nothing.
        if (!allowed.empty() || problem.empty_row != EmptyRow::kAny)
          rows.push_back({b, h, i});
      }
  return rows;
}

}  // namespace

Battery::Battery(const Problem& problem, const Numerics& numerics,
                 std::uint64_t seed)
    : problem_(std::make_unique<const Problem>(problem)),
      plan_(problem.head_dim_v),
      rows_(rows_to_judge(problem)) {
  const Problem& own = *problem_;
  const std::uint64_t base = base_seed(seed);
  // A column is left for the row sum where there is more than one.
  const std::int64_t columns = std::max<std::int64_t>(own.head_dim_v - 1, 1);
  const auto values = std::make_shared<RandomValues>(own, base);
  const double extreme = extreme_amplitude(own, numerics);
  request(std::make_shared<RandomScores>(own, base), values);
  if (const double large = std::min(kLargeAmplitude, extreme); large > 1)
    request(std::make_shared<RandomScores>(own, base, large, "random-large"),
            values);
  request(std::make_shared<RandomScores>(own, base),
          std::make_shared<StepValues>(own, columns, columns / 2, base));

  std::string why_not;
  if (const auto code = AddressCode::make(own, columns)) {
    const double gap = dominance_gap(numerics, code->amplitude());
    for (const auto direction :
         {LadderScores::Direction::kUp, LadderScores::Direction::kDown})
      if (auto ladder =
              LadderScores::make(own, numerics, direction, gap, why_not))
        request(ladder, code);
    const double needle_gap =
        gap + std::log(std::max(static_cast<double>(own.max_len_kv()), 1.0));
    if (auto needle =
            NeedleScores::make(own, numerics, needle_gap, base, why_not))
      request(needle, code);
  }
  if (const auto census = CensusScores::make(own, numerics, base, why_not))
    request(census,
            std::make_shared<CensusCode>(
                own, std::min(columns, CensusCode::kMostColumns), base));
  if (own.softcap) request(capped_scores(own, base), values);
  for (const double shift : {-1e3, -2e4, -7e4, 1e3})
    if (const auto shifted =
            ShiftedScores::make(own, numerics, shift, base, why_not))
      request(shifted, values);
  request(std::make_shared<RandomScores>(own, base), values,
          {.unused = UnusedFill::kLarge});
  request(std::make_shared<RandomScores>(own, base), values,
          {.unused = UnusedFill::kNan});
  const auto cuts = std::make_shared<CutAssignment>(own, 0, base);
  if (cuts->perturbs_anything()) {
    const auto perturb = [&](const std::string& label, double amplitude,
                             std::uint64_t part) {
      const std::uint64_t fresh = derive_seed(base, part);
      const Perturbation how{label, base, fresh, amplitude, amplitude};
      request(perturbed_scores(cuts, how), perturbed_values(cuts, how));
    };
    perturb("perturb", 1, 0x64696131);
    if (extreme > 1) perturb("perturb-extreme", extreme, 0x64696132);
  }
  plan_.request_in_every_call(std::make_shared<Ones>());
}

void Battery::request(const ScorePatternPtr& scores,
                      const ValuePatternPtr& values, const CallMode& mode) {
  plan_.request(scores, values, mode);
}

std::vector<double> Battery::read_rows(const ConstTensorView& output) const {
  const std::int64_t channels = problem_->head_dim_v;
  std::vector<double> rows(rows_.size() * static_cast<std::size_t>(channels));
  double* to = rows.data();
  for (const JudgedRow& row : rows_) {
    output.load_row(row.batch, row.head, row.query, 0, channels, to);
    to += channels;
  }
  return rows;
}

std::optional<std::vector<std::vector<double>>> record_outputs(
    const Engine& engine, const Battery& battery) {
  Executor executor(engine, battery.problem());
  if (!executor.allocate().ok()) return std::nullopt;
  std::vector<std::vector<double>> outputs;
  for (int call = 0; call < battery.size(); ++call) {
    Observation seen;
    if (!executor.run(battery.plan(), call, seen).ok()) return std::nullopt;
    outputs.push_back(battery.read_rows(seen.output));
  }
  return outputs;
}

Replay::Replay(const Battery& battery)
    : battery_(battery), executor_(engine_, battery.problem()) {
  engine_.name = "replay";
  engine_.run = [this](const AttentionCall& call) {
    (*use_)(call);
    return ok_status();
  };
  allocated_ = executor_.allocate().ok();
}

bool Replay::with_call(
    int index, const std::function<void(const AttentionCall& call)>& use) {
  if (!allocated_) return false;
  use_ = &use;
  Observation seen;
  return executor_.run(battery_.plan(), index, seen).ok();
}

}  // namespace attnguard
