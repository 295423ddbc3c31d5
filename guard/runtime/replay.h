// Judging a call again, away from the engine: every row of it by every passive
// check of the live guard, with the bounds that the live guard had.
#ifndef ATTNGUARD_GUARD_RUNTIME_REPLAY_H_
#define ATTNGUARD_GUARD_RUNTIME_REPLAY_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/runtime/capture.h"
#include "guard/runtime/dump_file.h"

namespace attnguard {

// A finished call as the judge sees it. Views take the indices of the problem;
// only places within `scope` are read.
struct JudgedCall {
  const Problem* problem = nullptr;
  CaptureScope scope;
  ConstTensorView query, key, value, output;
  Numerics numerics;

  // The keys of a row; empty: what the problem's mask says.
  std::function<void(std::int64_t b, std::int64_t query, KeyRanges& keys)>
      allowed;
};

// Of a dump without tensors: a call with no row, of which judge_call says that
// it is inconclusive.
JudgedCall judged_call(const Dump& dump);

struct Rejudged {
  std::vector<CheckResult> checks;  // finite, value-range, single-key,
                                    // recompute
  std::int64_t rows = 0;            // Judged.
  std::int64_t of_rows = 0;         // In the scope.
  std::int64_t without_keys = 0;    // Rows that see nothing.
  std::int64_t not_finite = 0;      // Rows whose inputs prove nothing.
  Verdict verdict = Verdict::kInconclusive;

  // The first finding; nullptr: none.
  const Finding* first() const;
};

using Deadline = std::chrono::steady_clock::time_point;

// Rows in `first` are judged before all others, so that they are among those
// that the time allows.
Rejudged judge_call(const JudgedCall& call, const std::vector<Finding>& first,
                    Deadline deadline);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_REPLAY_H_
