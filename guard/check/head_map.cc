// head-map: each head reads its own queries and its KV head's keys.
#include <algorithm>
#include <cmath>

#include "guard/base/bits.h"
#include "guard/base/rng.h"
#include "guard/check/baseline.h"
#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"
#include "guard/probe/token_set.h"

namespace attnguard {
namespace {

// Of values that are a few units: more than rounding of an output hides.
constexpr double kClearlyApart = 0.25;

// The number of a (batch entry, KV head) in binary, +-1 a bit, the same for
// every key: whatever the weights are, a row shows its own slot's number.
class SlotCode final : public ValuePattern {
 public:
  explicit SlotCode(const Problem& problem)
      : num_kv_heads_(problem.num_kv_heads),
        columns_(std::max(bits_for(problem.batch * problem.num_kv_heads), 1)) {}

  std::string name() const override { return "slot-code"; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t batch, std::int64_t kv_head, std::int64_t,
                 double* to) const override {
    const std::int64_t slot = batch * num_kv_heads_ + kv_head;
    for (int c = 0; c < columns_; ++c) to[c] = (slot >> c & 1) != 0 ? 1 : -1;
  }

  // Whether nothing is shown at all.
  bool is_zero(const double* row) const {
    return std::all_of(row, row + columns_, [](double x) { return x == 0; });
  }

  // The slot whose number the row shows, by sign; -1 where a column is 0 or
  // NaN.
  std::int64_t decode(const double* row) const {
    std::int64_t slot = 0;
    for (int c = 0; c < columns_; ++c) {
      if (!(std::abs(row[c]) > 0)) return -1;
      if (row[c] > 0) slot |= std::int64_t{1} << c;
    }
    return slot;
  }

 private:
  std::int64_t num_kv_heads_;
  int columns_;
};

// The queries of heads whose index has a certain bit.
class HeadsWithBit final : public TokenSet {
 public:
  HeadsWithBit(const Problem& problem, int bit)
      : TokenSet(problem), bit_(bit) {}

  bool key_perturbed(std::int64_t, std::int64_t, std::int64_t) const override {
    return false;
  }
  bool query_perturbed(std::int64_t, std::int64_t head,
                       std::int64_t) const override {
    return (head >> bit_ & 1) != 0;
  }

 private:
  int bit_;
};

class HeadMap final : public Check {
 public:
  explicit HeadMap(const CheckContext& context)
      : context_(context), code_(std::make_shared<SlotCode>(context.problem)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    base_.plan(plan, context_);
    if (judges_kv_heads())
      slots_ =
          plan.request(std::make_shared<RandomScores>(problem, seed), code_);
    const auto values = std::make_shared<RandomValues>(problem, seed);
    for (int bit = 0; bit < bits_for(problem.num_heads); ++bit) {
      Perturbation how;
      how.label = "heads-bit-" + std::to_string(bit);
      how.base_seed = seed;
      how.fresh_seed = derive_seed(seed, 0x68656164);
      bits_.push_back(plan.request(
          perturbed_scores(std::make_shared<HeadsWithBit>(problem, bit), how),
          values));
    }
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    base_.judge(seen);
    if (slots_.call == seen.call) judge_slots(seen, sink);
    for (std::size_t bit = 0; bit < bits_.size(); ++bit)
      if (bits_[bit].call == seen.call)
        judge_bit(seen, static_cast<int>(bit), sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    if (!base_.too_noisy(result))
      conclude(sink, rows_ > 0 && (!can_move_ || rows_moved_ > 0),
               "no row moved when its query changed, so the engine does not "
               "react to its inputs",
               result);
    result.coverage =
        std::to_string(bits_.size() + (slots_.call >= 0 ? 1 : 0)) +
        " calls, every row";
  }

 private:
  bool judges_kv_heads() const {
    const Problem& problem = context_.problem;
    // With few value columns, or a cache that entries share, slots have no
    // numbers of their own.
    return problem.batch * problem.num_kv_heads > 1 &&
           code_->columns() <= problem.head_dim_v && problem.shared_prefix == 0;
  }

  void judge_slots(const Observation& seen, FindingSink& sink) {
    const Problem& problem = context_.problem;
    const auto columns = static_cast<std::size_t>(code_->columns());
    std::vector<double> row(columns);
    for_each_row(problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                              const KeyRanges&) {
      const std::int64_t g = problem.kv_head_of(h);
      seen.output.load_row(b, h, i, slots_.first_column, code_->columns(),
                           row.data());
      // A sink may take all that the output can hold; row-sum knows its share.
      if (!problem.sinks.empty() && code_->is_zero(row.data())) return;
      ++rows_;
      const std::int64_t slot = code_->decode(row.data());
      if (slot == b * problem.num_kv_heads + g) return;
      Finding finding{
          .kind = FindingKind::kLeak,
          .probe = "slot-code",
          .batch = b,
          .head = h,
          .query = i,
          .observed = static_cast<double>(slot),
          .expected = static_cast<double>(b * problem.num_kv_heads + g)};
      const std::string own = "; its own is batch " + std::to_string(b) +
                              ", KV head " + std::to_string(g);
      if (slot < 0 || slot >= problem.batch * problem.num_kv_heads)
        finding.message =
            row_name(b, h, i) + ": shows no (batch entry, KV head)" + own;
      else
        finding.message = row_name(b, h, i) + ": reads the values of batch " +
                          std::to_string(slot / problem.num_kv_heads) +
                          ", KV head " +
                          std::to_string(slot % problem.num_kv_heads) + own;
      sink.add(std::move(finding));
    });
  }

  // A row with a single key shows its value whatever the query is, and so does
  // one whose keys have the same values.
  bool depends_on_query(const Observation& seen, std::int64_t b, std::int64_t h,
                        const KeyRanges& allowed) const {
    if (allowed.count() < 2) return false;
    const Problem& problem = context_.problem;
    const std::int64_t g = problem.kv_head_of(h);
    const std::int64_t first = allowed.first(), last = allowed.last();
    std::vector<double> one(static_cast<std::size_t>(problem.head_dim_v));
    std::vector<double> other(one.size());
    seen.value.load_row(b, g, first, 0, problem.head_dim_v, one.data());
    seen.value.load_row(b, g, last, 0, problem.head_dim_v, other.data());
    for (std::size_t c = 0; c < one.size(); ++c)
      if (std::abs(one[c] - other[c]) > kClearlyApart) return true;
    return false;
  }

  void judge_bit(const Observation& seen, int bit, FindingSink& sink) {
    const Problem& problem = context_.problem;
    const auto heads = static_cast<std::size_t>(problem.num_heads);
    std::vector<char> can_move(heads, 0), moved(heads, 0);
    for_each_row(problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                              const KeyRanges& allowed) {
      ++rows_;
      const auto slot = static_cast<std::size_t>(h);
      can_move[slot] |= depends_on_query(seen, b, h, allowed);
      double change = 0;
      if (!base_.moved(seen, b, h, i, change)) return;
      moved[slot] = 1;
      ++rows_moved_;
      if ((h >> bit & 1) != 0) return;
      Finding finding{.kind = FindingKind::kLeak,
                      .probe = seen.planned->scores->name(),
                      .batch = b,
                      .head = h,
                      .query = i,
                      .observed = change,
                      .bound = base_.limit()};
      finding.message = row_name(b, h, i) + ": output moves by " +
                        format_short(change) +
                        " when the queries of other heads change (those with "
                        "bit " +
                        std::to_string(bit) + " of their index set)";
      sink.add(std::move(finding));
    });
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      const auto slot = static_cast<std::size_t>(h);
      can_move_ |= can_move[slot] != 0;
      if ((h >> bit & 1) == 0 || !can_move[slot] || moved[slot]) continue;
      Finding finding{.kind = FindingKind::kMiss,
                      .probe = seen.planned->scores->name(),
                      .head = h};
      finding.message = "head " + std::to_string(h) +
                        ": no row moves when its own queries change";
      sink.add(std::move(finding));
    }
  }

  CheckContext context_;
  std::shared_ptr<const SlotCode> code_;
  Baseline base_;
  Ticket slots_;
  std::vector<Ticket> bits_;
  bool can_move_ = false;  // Some row has more than one key.
  std::int64_t rows_ = 0;
  std::int64_t rows_moved_ = 0;
};

}  // namespace

const CheckInfo kCheckHeadMap = {
    .id = "head-map",
    .summary = "each head reads its own queries and its KV head's keys",
    .cost = "2 calls and 1 per bit of num_heads",
    .explanation =
        R"(head-map: each head reads its own queries and its KV head's keys

What it sees
  Values that are the number of their (batch entry, KV head) in binary, the
  same for every key: whatever the weights, a row shows whose values it reads.
  Then the queries of half of the heads change, once for each bit of the
  head's index: exactly those heads must move.

      8 heads, 2 KV heads    head / 4: 0 0 0 0 1 1 1 1   right
                             head % 2: 0 1 0 1 0 1 0 1   the usual mistake

What it looks like
  head % num_kv_heads in grouped-query attention (hidden when the ratio is a
  square), a head axis and a position axis that trade places, an expanded KV
  head read with the wrong stride, a batch index that is a head index.

Real reports
  The class wrong_head_or_dim of the survey: 7 reports; a causality test and
  row sums see none of them.

What to look at in the kernel
  kv_head = head / (num_heads / num_kv_heads); the strides of the head axis in
  every tensor; tensors whose heads are repeated before the call.

Tolerance
  auto: exact (bitwise), or four times the noise of an engine that declares
  itself non-deterministic.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      const Problem& problem = context.problem;
      if (std::string reason = no_row_with_keys(problem); !reason.empty())
        return reason;
      return problem.num_heads == 1 && problem.batch == 1
                 ? "there is one head in one batch entry"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<HeadMap>(context);
    },
};

}  // namespace attnguard
