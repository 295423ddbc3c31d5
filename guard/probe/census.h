// Census: q = 0 makes all weights equal, so a row's output is the mean of its
// visible keys' +-1 codes. Times the number of allowed keys it must be the
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
#include <unordered_map>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

// q = 0, random +-1 keys: a kernel that adds something to the scores shows.
class CensusScores final : public ScorePattern {
 public:
  CensusScores(const Problem& problem, std::uint64_t seed)
      : channels_(problem.head_dim_qk), seed_(seed) {}

  std::string name() const override { return "census"; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

 private:
  std::int64_t channels_;
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

  // Sum of the codes of the allowed keys, one whole number per column.
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
  // allowed.count() + 1, - 1 and + 0.
  Explanation explain(std::int64_t batch, std::int64_t kv_head,
                      const KeyRanges& allowed, const double* mean) const;

 private:
  std::uint64_t slot_flips(std::int64_t batch, std::int64_t kv_head) const;
  std::uint64_t code_bits(std::int64_t kv_index) const;
  const std::int8_t* prefix(std::int64_t kv_index) const {
    return prefix_.data() + kv_index * columns_;
  }

  std::int64_t columns_;
  std::int64_t len_kv_;
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

CensusError census_error(const Numerics& numerics, Dtype output_dtype,
                         std::int64_t count);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_CENSUS_H_
