#include "guard/diagnosis/battery.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "guard/probe/address_code.h"
#include "guard/probe/appendable.h"
#include "guard/probe/census.h"
#include "guard/probe/ladder.h"
#include "guard/probe/needle.h"
#include "guard/probe/ones.h"
#include "guard/probe/perturb.h"
#include "guard/probe/random.h"
#include "guard/probe/shift.h"
#include "guard/probe/step.h"
#include "guard/probe/target_rows.h"

namespace attnguard {
namespace {

// Queries and keys of the large random call, as far as the engine's scores
// hold them: scores grow by its square.
constexpr double kLargeAmplitude = 3;

// A NaN that no computation gives.
constexpr std::uint64_t kUnwrittenBits = 0x7ff8000061746e67;

bool each_row(std::int64_t, std::int64_t) { return true; }

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

BatteryCalls BatteryCalls::of(const Engine& engine) {
  return {.lse = engine.capabilities.has(Feature::kLse),
          .weights = engine.capabilities.has(Feature::kWeights),
          .append = static_cast<bool>(engine.append)};
}

bool is_unwritten(double x) {
  return std::bit_cast<std::uint64_t>(x) == kUnwrittenBits;
}

Battery::Battery(const Problem& problem, const Numerics& numerics,
                 std::uint64_t seed, const BatteryCalls& calls)
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
  // Tokens that no row sees count as unused too.
  const auto seen = std::make_shared<TargetRows>(own, each_row);
  const auto fill_unused = [&](const char* label, UnusedFill fill,
                               double amplitude) {
    const Perturbation how{label, base, mix_bits(base), amplitude, amplitude};
    request(perturbed_scores(seen, how), perturbed_values(seen, how),
            {.unused = fill});
  };
  fill_unused("unused-large", UnusedFill::kLarge,
              std::min(numerics.largest_input(own.dtype) / 16, 4096.0));
  if (calls.unused_nan)
    fill_unused("unused-nan", UnusedFill::kNan,
                std::numeric_limits<double>::quiet_NaN());
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
  request_side_outputs(calls, base);
  plan_.request_in_every_call(std::make_shared<Ones>());
}

void Battery::request_side_outputs(const BatteryCalls& calls,
                                   std::uint64_t base) {
  const auto scores = std::make_shared<RandomScores>(*problem_, base);
  const auto values = std::make_shared<RandomValues>(*problem_, base);
  if (calls.lse) request(scores, values, {.ask_lse = true});
  if (calls.weights) request(scores, values, {.ask_weights = true});
  if (!calls.append) return;
  const std::int64_t most = most_tokens_to_append(*problem_);
  if (most >= 1) request(scores, values, {.append = 1});
  if (most > 1) request(scores, values, {.append = most});
}

void Battery::request(const ScorePatternPtr& scores,
                      const ValuePatternPtr& values, const CallMode& mode) {
  plan_.request(scores, values, mode);
}

namespace {

// Appends numbers of a view; what holds the poison was never written.
void append_row(const ConstTensorView& view, const JudgedRow& row,
                std::vector<double>& to) {
  const std::int64_t channels = view.shape[3];
  const std::size_t first = to.size();
  to.resize(first + static_cast<std::size_t>(channels));
  view.load_row(row.batch, row.head, row.query, 0, channels, &to[first]);
  for (std::int64_t c = 0; c < channels; ++c)
    if (is_poison(view.dtype, view.at(row.batch, row.head, row.query, c)))
      to[first + static_cast<std::size_t>(c)] =
          std::bit_cast<double>(kUnwrittenBits);
}

// Calls visit(batch, head, position) for every place of the tensor, those
// that belong to nobody too.
template <typename Visit>
void for_each_place(const Problem& problem, TensorRole role, Visit visit) {
  const std::vector<std::int64_t> slots = place_tensor(problem, role).slots;
  for (std::size_t b = 0; b < slots.size(); ++b)
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
      for (std::int64_t s = 0; s < slots[b]; ++s)
        visit(JudgedRow{static_cast<std::int64_t>(b), g, s});
}

std::vector<TensorRole> cache_tensors(const Problem& problem) {
  if (problem.value_in_key) return {TensorRole::kKey};
  return {TensorRole::kKey, TensorRole::kValue};
}

}  // namespace

std::vector<CallPart> Battery::parts(int call) const {
  using Kind = CallPart::Kind;
  const CallMode& mode = plan_.calls()[static_cast<std::size_t>(call)].mode;
  std::vector<CallPart> parts;
  std::size_t begin = 0;
  const auto add = [&](Kind kind, std::size_t rows, std::int64_t width) {
    const auto count = static_cast<std::size_t>(width);
    parts.push_back({kind, begin, count, begin + rows * count});
    begin = parts.back().end;
  };
  add(Kind::kOutput, rows_.size(), problem_->head_dim_v);
  if (mode.ask_lse) add(Kind::kLse, rows_.size(), 1);
  if (mode.ask_weights)
    add(Kind::kWeights, rows_.size(), problem_->max_len_kv());
  if (mode.append == 0) return parts;
  std::int64_t places = 0;
  for (const TensorRole role : cache_tensors(*problem_))
    for_each_place(*problem_, role, [&](const JudgedRow&) {
      places += problem_->shape(role)[3];
    });
  add(Kind::kCache, 1, places);
  return parts;
}

std::vector<double> Battery::read(int call, const CallViews& views) const {
  std::vector<double> numbers;
  for (const CallPart& part : parts(call)) {
    switch (part.kind) {
      case CallPart::Kind::kOutput:
        for (const JudgedRow& row : rows_)
          append_row(views.output, row, numbers);
        break;
      case CallPart::Kind::kLse:
        for (const JudgedRow& row : rows_)
          append_row(views.softmax_lse, row, numbers);
        break;
      case CallPart::Kind::kWeights:
        for (const JudgedRow& row : rows_)
          append_row(views.weights, row, numbers);
        break;
      case CallPart::Kind::kCache:
        for (const TensorRole role : cache_tensors(*problem_))
          for_each_place(*problem_, role, [&](const JudgedRow& place) {
            append_row(role == TensorRole::kKey ? views.key : views.value,
                       place, numbers);
          });
        break;
    }
  }
  return numbers;
}

std::optional<std::vector<std::vector<double>>> record_outputs(
    const Engine& engine, const Battery& battery) {
  Executor executor(engine, battery.problem());
  if (!executor.allocate().ok()) return std::nullopt;
  std::vector<std::vector<double>> outputs;
  for (int call = 0; call < battery.size(); ++call) {
    Observation seen;
    if (!executor.run(battery.plan(), call, seen).ok()) return std::nullopt;
    outputs.push_back(battery.read(call, {seen.output, seen.softmax_lse,
                                          seen.weights, seen.key, seen.value}));
  }
  return outputs;
}

Replay::Replay(const Battery& battery)
    : battery_(battery), executor_(engine_, battery.problem()) {
  engine_.name = "replay";
  engine_.run = [this](const AttentionCall& call) {
    replayed_.call = call;
    (*use_)(replayed_);
    return ok_status();
  };
  // Nothing is appended yet: that is a part of what is replayed.
  engine_.append = [this](const CacheAppend& append) {
    replayed_.append = append;
    return ok_status();
  };
  allocated_ = executor_.allocate().ok();
}

bool Replay::with_call(
    int index, const std::function<void(const ReplayedCall& call)>& use) {
  if (!allocated_) return false;
  use_ = &use;
  replayed_ = {.index = index, .call = {}, .append = {}};
  Observation seen;
  return executor_.run(battery_.plan(), index, seen).ok();
}

}  // namespace attnguard
