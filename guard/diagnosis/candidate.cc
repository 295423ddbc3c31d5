#include "guard/diagnosis/candidate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "guard/base/rng.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr double kLambda = 5;  // As in reference_bound.
constexpr int kPatterns = 4;
constexpr double kSafety = 4;

// Fills every row of the output with a NaN, so that a row that a candidate
// does not write is not the one before's.
void fill_with_nan(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const std::vector<double> row(static_cast<std::size_t>(problem.head_dim_v),
                                std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i)
        call.output.store_row(b, h, i, 0, problem.head_dim_v, row.data());
}

// Whether a score is off upwards in a pattern. The first two tell neighbours
// apart whatever the seed, the others are random.
bool is_up(int pattern, const VariantRow& row, std::int64_t key) {
  const std::int64_t i = row.place.q_index;
  if (pattern < 2) return ((key >> pattern ^ i) & 1) != 0;
  std::uint64_t bits = derive_seed(static_cast<std::uint64_t>(pattern),
                                   static_cast<std::uint64_t>(row.head));
  bits = derive_seed(bits, static_cast<std::uint64_t>(row.place.batch));
  bits = derive_seed(bits, static_cast<std::uint64_t>(i));
  bits = derive_seed(bits, static_cast<std::uint64_t>(key));
  return (bits & 1) != 0;
}

// |a - b|; 0 for two NaN or the same infinity, infinite where only one is
// finite.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? HUGE_VAL : difference;
}

const Convention* find_convention(const std::vector<Convention>& conventions,
                                  const std::string& id) {
  for (const Convention& convention : conventions)
    if (convention.id == id) return &convention;
  return nullptr;
}

}  // namespace

Candidate reference_candidate() { return {}; }

std::vector<Candidate> all_candidates(const Problem& problem) {
  std::vector<Candidate> candidates;
  for (const Defect* defect : all_defects())
    if (!defect->legal()) candidates.push_back({defect, "", defect->make()});
  for (const Convention& convention : alternative_conventions(problem))
    candidates.push_back({nullptr, convention.id, {}});
  return candidates;
}

// Which scores are off by how much.
struct CallJudge::Noise {
  const CallJudge& judge;
  int pattern = 0;
  double scale = 1;

  // Left by the row's query for its scores, which the same thread computes
  // next.
  static thread_local double row_error;

  double of_query(std::span<const double> query) const {
    const Numerics& numerics = judge.numerics_;
    double products = 0, sum = 0;
    for (std::size_t k = 0; k < query.size(); ++k) {
      products += std::abs(query[k]) * judge.channel_keys_[k];
      sum += std::abs(query[k]);
    }
    return scale * (kLambda * std::sqrt(static_cast<double>(query.size())) *
                        unit_roundoff(numerics.accumulator) * products +
                    numerics.key_error * judge.largest_key_ * sum);
  }

  double of_score(double score) const {
    const double u_sum = unit_roundoff(judge.numerics_.accumulator);
    const double u_score = unit_roundoff(judge.numerics_.score);
    double error = row_error + u_sum * (4 * std::abs(score) + 4);
    if (u_score > u_sum) error += u_score * std::abs(score);
    return error + judge.sum_error_;
  }

  // The variant with its scores off.
  AttentionVariant applied_to(AttentionVariant variant) const {
    variant.query = [this, own = variant.query](const VariantRow& row,
                                                std::span<double> query) {
      if (own) own(row, query);
      row_error = of_query(query);
    };
    variant.scores = [this, own = variant.scores](const VariantRow& row,
                                                  const KeyRanges& keys,
                                                  std::span<double> scores) {
      if (own) own(row, keys, scores);
      for_each_key(keys, scores, [&](std::int64_t j, double& s) {
        if (std::isfinite(s))
          s += is_up(pattern, row, j) ? of_score(s) : -of_score(s);
      });
    };
    return variant;
  }
};

thread_local double CallJudge::Noise::row_error = 0;

CallJudge::CallJudge(const Battery& battery, const AttentionCall& call,
                     const Numerics& numerics,
                     const std::vector<Convention>& conventions)
    : battery_(battery),
      call_(call),
      numerics_(numerics),
      conventions_(conventions) {
  const Problem& problem = battery.problem();
  channel_keys_.resize(static_cast<std::size_t>(problem.head_dim_qk));
  std::vector<double> key(channel_keys_.size());
  std::vector<double> value(static_cast<std::size_t>(problem.head_dim_v));
  // Of the places that belong to nobody too: some defects read them.
  const std::vector<std::int64_t> slots =
      place_tensor(problem, TensorRole::kKey).slots;
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(slots.size()); ++b)
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
      for (std::int64_t j = 0; j < slots[static_cast<std::size_t>(b)]; ++j) {
        call.key.load_row(b, g, j, 0, problem.head_dim_qk, key.data());
        call.value.load_row(b, g, j, 0, problem.head_dim_v, value.data());
        for (std::size_t k = 0; k < key.size(); ++k)
          channel_keys_[k] = std::max(channel_keys_[k], std::abs(key[k]));
        for (double v : value)
          largest_value_ = std::max(largest_value_, std::abs(v));
      }
  for (double k : channel_keys_) largest_key_ = std::max(largest_key_, k);
  // Values are channels of the keys there, and some defects take other ones.
  if (problem.value_in_key)
    largest_value_ = std::max(largest_value_, largest_key_);
  sum_error_ = unit_roundoff(numerics.probability) +
               kLambda * std::sqrt(static_cast<double>(problem.max_len_kv())) *
                   unit_roundoff(numerics.accumulator);

  const Noise noise{*this, 0, problem.scale()};
  std::vector<double> query(key.size());
  double largest_score = 0;
  for (const JudgedRow& row : battery.rows()) {
    call.query.load_row(row.batch, row.head, row.query, 0, problem.head_dim_qk,
                        query.data());
    largest_score_error_ =
        std::max(largest_score_error_, noise.of_query(query));
    double products = 0;
    for (std::size_t k = 0; k < query.size(); ++k)
      products += std::abs(query[k]) * channel_keys_[k];
    largest_score = std::max(largest_score, products * problem.scale());
  }
  Noise::row_error = largest_score_error_;
  largest_score_error_ = noise.of_score(largest_score);
}

std::vector<double> CallJudge::run(const Candidate& candidate,
                                   const Noise* noise) const {
  fill_with_nan(call_);
  AttentionCall call = call_;
  // A reading that says nothing about this problem is the correct one.
  if (const Convention* found =
          find_convention(conventions_, candidate.convention))
    call.problem = &found->problem;
  const Status status =
      run_variant(noise != nullptr ? noise->applied_to(candidate.variant)
                                   : candidate.variant,
                  call);
  if (!status.ok()) fill_with_nan(call_);
  return battery_.read_rows(call_.output);
}

std::vector<double> CallJudge::rows_of(const Candidate& candidate) const {
  return run(candidate, nullptr);
}

std::vector<double> CallJudge::moved_by_noise(
    const Candidate& candidate, const std::vector<double>& rows) const {
  const Problem& problem = battery_.problem();
  const auto channels = static_cast<std::size_t>(problem.head_dim_v);
  const double scale = candidate.variant.scale
                           ? candidate.variant.scale(problem)
                           : problem.scale();
  std::vector<double> moved(battery_.rows().size(), 0.0);
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const Noise noise{*this, pattern, scale};
    const std::vector<double> noisy = run(candidate, &noise);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      double& row = moved[n / channels];
      row = std::max(row, distance(rows[n], noisy[n]));
    }
  }
  return moved;
}

double CallJudge::tight_bound(double output) const {
  const Dtype out = battery_.problem().output_dtype();
  const double own = 2 * unit_roundoff(out) * std::abs(output);
  return (sum_error_ + numerics_.value_error) * largest_value_ +
         (std::isfinite(own) ? own : 0);
}

Likeness CallJudge::compare(const Candidate& candidate,
                            const std::vector<double>& wanted) const {
  const std::vector<double> rows = run(candidate, nullptr);
  Likeness likeness;
  bool tight = true, hopeless = false;
  // What wrong scores can move, generously: beyond that there is no need to
  // measure it. Where weights sum to more than 1, outputs are larger.
  double largest = largest_value_;
  for (double o : rows)
    if (std::isfinite(o)) largest = std::max(largest, std::abs(o));
  const double most_moved =
      kSafety * std::expm1(2 * largest_score_error_) * 2 * largest;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const double difference = distance(wanted[n], rows[n]);
    likeness.difference = std::max(likeness.difference, difference);
    const double bound = tight_bound(rows[n]);
    tight &= difference <= bound;
    hopeless |= std::isinf(difference) || difference > bound + most_moved;
  }
  if (largest_value_ > 0)
    likeness.relative = likeness.difference / largest_value_;
  likeness.same = tight;
  if (tight || hopeless) return likeness;
  const std::vector<double> moved = moved_by_noise(candidate, rows);
  const auto channels = static_cast<std::size_t>(battery_.problem().head_dim_v);
  likeness.same = true;
  for (std::size_t n = 0; n < rows.size(); ++n)
    likeness.same &= distance(wanted[n], rows[n]) <=
                     tight_bound(rows[n]) + kSafety * moved[n / channels];
  return likeness;
}

}  // namespace attnguard
