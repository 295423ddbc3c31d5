// Census: equal scores make all weights equal, so a row's output is the mean of
// its visible keys' +-1 codes. Times the number of allowed keys it must be the
// sum of the declared codes, an integer; what is left over says which key is
// missing, extra or swapped.
//
// The codes are bounded walks: in every column the sum over any prefix stays
// within +-kWalkBound, so sums over ranges are tiny integers whatever the
// length. Rounding of the output and of partial sums is then far below one
// key even in bf16 at 16384 keys. The walks are random within the bound, so
// no aligned tile or pair of keys sums to zero in all columns.
#ifndef ATTNGUARD_GUARD_PROBE_CENSUS_H_
#define ATTNGUARD_GUARD_PROBE_CENSUS_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

// q = 0, random +-1 keys: a kernel that adds something to the scores shows.
//
// With ALiBi the scores are made equal: slope * (j - position) is linear in the
// key's position where no row sees a key after its own place, and the query
// takes it back. The position is split into digits as the ladder's is.
class CensusScores final : public ScorePattern {
 public:
  // nullptr, and why in `why_not`, when the scores cannot be made equal.
  static std::shared_ptr<const CensusScores> make(const Problem& problem,
                                                  const Numerics& numerics,
                                                  std::uint64_t seed,
                                                  std::string& why_not);

  // The score that the row's keys have in common.
  double common_score(std::int64_t head, const RowPlace& place) const;

  // The largest difference between scores of a row of the head that rounding
  // and the storage of keys leave.
  double score_error(std::int64_t head) const;

  std::string name() const override { return "census"; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

 private:
  CensusScores(const Problem& problem, const Numerics& numerics,
               std::uint64_t seed);

  const Problem& problem_;
  std::int64_t channels_;
  std::int64_t digits_ = 0;  // Channels that take ALiBi back.
  double unit_;              // Roundoff of the scores.
  double key_error_;         // Numerics::key_error
  std::uint64_t seed_;
};

class CensusCode final : public ValuePattern {
 public:
  static constexpr int kWalkBound = 3;
  static constexpr std::int64_t kMostColumns = 64;

  // 1 <= columns <= kMostColumns.
  CensusCode(const Problem& problem, std::int64_t columns, std::uint64_t seed);

  std::string name() const override { return "census-code"; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override;

  // Sum of the codes of the allowed keys of an entry, one whole number per
  // column.
  void expected_sum(std::int64_t batch, std::int64_t kv_head,
                    const KeyRanges& allowed, double* to) const;

  // What explains the sums that a row shows in place of the declared ones.
  struct Explanation {
    bool found = false;
    std::int64_t leaked = -1;   // a key that is counted and must not be
    std::int64_t missing = -1;  // a key that is not counted and must be
  };

  // `mean` is the row's output in these columns. Tries one leaked key, one
  // missing key, and one swapped for another; the numbers of keys are
  // allowed.count() + 1, - 1 and + 0, and a sink counts as `sink_keys` more.
  Explanation explain(std::int64_t batch, std::int64_t kv_head,
                      const KeyRanges& allowed, const double* mean,
                      double sink_keys = 0) const;

 private:
  std::uint64_t slot_flips(std::int64_t batch, std::int64_t kv_head) const;
  std::uint64_t code_bits(std::int64_t kv_index) const;
  const std::int8_t* prefix(std::int64_t kv_index) const {
    return prefix_.data() + kv_index * columns_;
  }

  std::int64_t columns_;
  std::int64_t len_kv_;
  std::int64_t shared_prefix_;
  std::uint64_t seed_;
  std::vector<std::int8_t> prefix_;  // [len_kv + 1][columns]
  std::unordered_multimap<std::uint64_t, std::int64_t> keys_by_code_;
};

// The largest error, in keys, that rounding leaves in a column of a row of
// `count` allowed keys: fixed + per_key * |declared sum|. Below 0.4 the census
// can tell a key from none.
struct CensusError {
  double fixed = 0;
  double per_key = 0;

  double at(double sum) const { return fixed + per_key * std::abs(sum); }
};

// `total`: `count` and what a sink counts for, in keys.
CensusError census_error(const Numerics& numerics, Dtype output_dtype,
                         std::int64_t count, double total);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_CENSUS_H_
