#include "guard/diagnosis/candidate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "guard/base/rng.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr double kLambda = 5;  // As in reference_bound.
constexpr int kPatterns = 4;
constexpr double kSafety = 4;

// Fills every row with the poison, so that a row that a candidate does not
// write is not the one before's.
void poison_rows(const Problem& problem, const TensorView& view) {
  if (view.data == nullptr) return;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i)
        for (std::int64_t c = 0; c < view.shape[3]; ++c)
          fill_poison(view.dtype, view.at(b, h, i, c), 1);
}

void poison_results(const AttentionCall& call) {
  for (const TensorView& view : {call.output, call.softmax_lse, call.weights})
    poison_rows(*call.problem, view);
}

// A copy of the cache, put back at the end.
class KeptCache {
 public:
  explicit KeptCache(const CacheAppend& append) {
    const Problem& problem = *append.problem;
    keep(append.key, problem.extent(TensorRole::kKey));
    if (!problem.value_in_key)
      keep(append.value, problem.extent(TensorRole::kValue));
  }
  ~KeptCache() {
    for (const auto& [place, bytes] : kept_)
      std::memcpy(place, bytes.data(), bytes.size());
  }
  KeptCache(const KeptCache&) = delete;
  KeptCache& operator=(const KeptCache&) = delete;

 private:
  void keep(const TensorView& view, std::int64_t extent) {
    const std::size_t size =
        static_cast<std::size_t>(extent) * dtype_size(view.dtype);
    kept_.emplace_back(view.data,
                       std::vector<std::byte>(view.data, view.data + size));
  }

  std::vector<std::pair<std::byte*, std::vector<std::byte>>> kept_;
};

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
// finite or was written.
double distance(double a, double b) {
  if (is_unwritten(a) != is_unwritten(b)) return HUGE_VAL;
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

CallJudge::CallJudge(const Battery& battery, const ReplayedCall& replayed,
                     const Numerics& numerics,
                     const std::vector<Convention>& conventions)
    : battery_(battery),
      replayed_(replayed),
      parts_(battery.parts(replayed.index)),
      numerics_(numerics),
      conventions_(conventions) {
  const Problem& problem = battery.problem();
  const AttentionCall& call = replayed.call;
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
  AttentionCall call = replayed_.call;
  poison_results(call);
  // A reading that says nothing about this problem is the correct one.
  if (const Convention* found =
          find_convention(conventions_, candidate.convention))
    call.problem = &found->problem;
  const AttentionVariant variant = noise != nullptr
                                       ? noise->applied_to(candidate.variant)
                                       : candidate.variant;
  std::optional<KeptCache> kept;
  if (replayed_.append) kept.emplace(*replayed_.append);
  if (!run_on_cache(variant, call).ok()) poison_results(replayed_.call);
  return battery_.read(replayed_.index, {call.output, call.softmax_lse,
                                         call.weights, call.key, call.value});
}

Status CallJudge::run_on_cache(const AttentionVariant& variant,
                               const AttentionCall& call) const {
  if (replayed_.append) {
    const Status status = variant.append ? variant.append(*replayed_.append)
                                         : append_tokens(*replayed_.append);
    if (!status.ok()) return status;
  }
  return run_variant(variant, call);
}

std::vector<double> CallJudge::numbers_of(const Candidate& candidate) const {
  return run(candidate, nullptr);
}

// For every row of every part, one after the other.
std::vector<double> CallJudge::moved_by_noise(
    const Candidate& candidate, const std::vector<double>& numbers) const {
  const Problem& problem = battery_.problem();
  const double scale = candidate.variant.scale
                           ? candidate.variant.scale(problem)
                           : problem.scale();
  std::vector<double> moved;
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const Noise noise{*this, pattern, scale};
    const std::vector<double> noisy = run(candidate, &noise);
    std::size_t row = 0;
    for (const CallPart& part : parts_)
      for (std::size_t n = part.begin; n < part.end; n += part.width, ++row) {
        if (row == moved.size()) moved.push_back(0);
        for (std::size_t k = n; k < n + part.width; ++k)
          moved[row] = std::max(moved[row], distance(numbers[k], noisy[k]));
      }
  }
  return moved;
}

// What errors of weights are multiplied with.
double CallJudge::largest_of(const CallPart& part) const {
  switch (part.kind) {
    case CallPart::Kind::kOutput:
      return largest_value_;
    case CallPart::Kind::kLse:
    case CallPart::Kind::kWeights:
      return 1;
    case CallPart::Kind::kCache:
      break;
  }
  return 0;
}

double CallJudge::tight_bound(const CallPart& part, double number) const {
  if (part.kind == CallPart::Kind::kCache) return 0;
  const Problem& problem = battery_.problem();
  const bool is_output = part.kind == CallPart::Kind::kOutput;
  const Dtype out = is_output                       ? problem.output_dtype()
                    : problem.dtype == Dtype::kFp64 ? Dtype::kFp64
                                                    : Dtype::kFp32;
  const double own = 2 * unit_roundoff(out) * std::abs(number);
  return (sum_error_ + (is_output ? numerics_.value_error : 0)) *
             largest_of(part) +
         (std::isfinite(own) ? own : 0);
}

Likeness CallJudge::compare(const Candidate& candidate,
                            const std::vector<double>& wanted) const {
  const std::vector<double> numbers = run(candidate, nullptr);
  Likeness likeness;
  bool tight = true, hopeless = false;
  for (const CallPart& part : parts_) {
    // What wrong scores can move, generously: beyond that there is no need to
    // measure it. Where weights sum to more than 1, outputs are larger.
    double largest = largest_of(part);
    for (std::size_t n = part.begin; n < part.end; ++n)
      if (std::isfinite(numbers[n]))
        largest = std::max(largest, std::abs(numbers[n]));
    const bool is_cache = part.kind == CallPart::Kind::kCache;
    const double most_moved =
        is_cache ? 0
                 : kSafety * std::expm1(2 * largest_score_error_) * 2 * largest;
    double furthest = 0;
    for (std::size_t n = part.begin; n < part.end; ++n) {
      const double difference = distance(wanted[n], numbers[n]);
      furthest = std::max(furthest, difference);
      const double bound = tight_bound(part, numbers[n]);
      tight &= difference <= bound;
      hopeless |= std::isinf(difference) || difference > bound + most_moved;
    }
    likeness.difference = std::max(likeness.difference, furthest);
    const double unit = is_cache ? largest_value_ : largest_of(part);
    if (unit > 0)
      likeness.relative = std::max(likeness.relative, furthest / unit);
  }
  likeness.same = tight;
  if (tight || hopeless) return likeness;
  const std::vector<double> moved = moved_by_noise(candidate, numbers);
  likeness.same = true;
  std::size_t row = 0;
  for (const CallPart& part : parts_)
    for (std::size_t n = part.begin; n < part.end; n += part.width, ++row)
      for (std::size_t k = n; k < n + part.width; ++k)
        likeness.same &= distance(wanted[k], numbers[k]) <=
                         tight_bound(part, numbers[k]) + kSafety * moved[row];
  return likeness;
}

}  // namespace attnguard
