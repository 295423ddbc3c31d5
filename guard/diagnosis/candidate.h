// What an engine is compared with: a known defect, another reading of the
// problem, or the correct computation.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_CANDIDATE_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_CANDIDATE_H_

#include <string>
#include <vector>

#include "guard/defect/defect.h"
#include "guard/diagnosis/battery.h"
#include "guard/diagnosis/conventions.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

struct Candidate {
  const Defect* defect = nullptr;  // nullptr: the reference,
  std::string convention;          // under this reading when not empty.
  AttentionVariant variant;        // The defect's; else the reference.
};

// The correct computation.
Candidate reference_candidate();

// Every defect that is no legal variant, in the table's order, then every
// reading of the problem: the order in which equally good ones are preferred.
// The table goes from plain causes to those that need more to be said.
std::vector<Candidate> all_candidates(const Problem& problem);

// How a candidate's output on one call compares with another's.
struct Likeness {
  bool same = false;      // Every element within what rounding explains.
  double difference = 0;  // Largest |a - b|; infinite where only one of the
                          // two is NaN or infinite.
  double relative = 0;    // The same over the largest |value| of the call.
};

// Compares candidates with what a call gave. Two elements are the same when
// they differ by at most
//
//     (u_P + 5 sqrt(n) u_A + value_error) * max |v| + 2 u_out |o|
//   + 4 * m                                     m: what rounding moves
//
// with the unit roundoffs and storage errors that the engine declares (see
// reference_bound), n keys, max |v| over the call. For weights and softmax_lse
// 1 stands for max |v|; places of a cache are the same bit for bit. m is
// measured, since what a defect makes of its scores has no formula: the
// candidate runs again, four times, with every score off by its largest
// rounding error
//
//     scale * (5 sqrt(head_dim_qk) u_A + key_error) * sum_k |q_k| max_j |k_jk|
//   + u_A (4 |s| + 4) + u_S |s| + u_P + 5 sqrt(n) u_A
//
// up or down, in four patterns; m is the largest change of the row. NaN equals
// NaN in the same place and no number; an infinity equals itself; what was not
// written equals nothing else.
class CallJudge {
 public:
  // All must outlive the judge. `numerics`: of the engine; `conventions`: the
  // readings of the battery's problem.
  CallJudge(const Battery& battery, const ReplayedCall& replayed,
            const Numerics& numerics,
            const std::vector<Convention>& conventions);

  // What the candidate gives: Battery::read.
  std::vector<double> numbers_of(const Candidate& candidate) const;

  // `wanted`: numbers to be reproduced.
  Likeness compare(const Candidate& candidate,
                   const std::vector<double>& wanted) const;

 private:
  struct Noise;

  std::vector<double> run(const Candidate& candidate, const Noise* noise) const;
  Status run_on_cache(const AttentionVariant& variant,
                      const AttentionCall& call) const;
  std::vector<double> moved_by_noise(const Candidate& candidate,
                                     const std::vector<double>& numbers) const;
  double largest_of(const CallPart& part) const;
  double tight_bound(const CallPart& part, double number) const;

  const Battery& battery_;
  const ReplayedCall& replayed_;
  std::vector<CallPart> parts_;
  const Numerics& numerics_;
  const std::vector<Convention>& conventions_;
  double largest_value_ = 0;
  double largest_key_ = 0;
  double largest_score_error_ = 0;    // Of any row.
  std::vector<double> channel_keys_;  // max_j |k_jk|, [head_dim_qk]
  double sum_error_ = 0;              // u_P + 5 sqrt(n) u_A
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_CANDIDATE_H_
