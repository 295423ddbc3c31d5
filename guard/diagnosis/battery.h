// The calls by which diagnosis recognises a fault: a fixed set of probes, the
// same for every engine, so that what an engine returns can be compared with
// what known defects return.
//
//   random            an ordinary call
//   random-large      scores nine times as spread: wrong scales and bases
//   random, ones/step row sums and leaks on ordinary scores
//   ladder-up, -down  the last and the first key of each row, by address
//   needle            score and value addressing
//   census            holes, duplicates and swapped keys
//   shift             finite masks and maxima
//   unused slots      the random call with other contents where no token is
//   perturb           the random call with other later tokens, and with
//                     extreme ones: overflow, finite masks, shared scales
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_BATTERY_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_BATTERY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/execute.h"
#include "guard/probe/plan.h"

namespace attnguard {

// The rows that a comparison judges: those without an allowed key too, unless
// the problem promises nothing for them.
struct JudgedRow {
  std::int64_t batch = 0, head = 0, query = 0;
};

class Battery {
 public:
  // Probes that do not fit the problem or the engine's numerics are left out.
  Battery(const Problem& problem, const Numerics& numerics, std::uint64_t seed);

  const Problem& problem() const { return *problem_; }
  const Plan& plan() const { return plan_; }
  int size() const { return static_cast<int>(plan_.calls().size()); }
  const std::vector<JudgedRow>& rows() const { return rows_; }

  // The judged rows of an output, one after the other, head_dim_v each.
  std::vector<double> read_rows(const ConstTensorView& output) const;

 private:
  void request(const ScorePatternPtr& scores, const ValuePatternPtr& values,
               const CallMode& mode = {});

  std::unique_ptr<const Problem> problem_;  // Patterns keep its address.
  Plan plan_;
  std::vector<JudgedRow> rows_;
};

// What the engine returned: read_rows of every call. nullopt when it fails, or
// when there is no memory for the problem.
std::optional<std::vector<std::vector<double>>> record_outputs(
    const Engine& engine, const Battery& battery);

// Gives the inputs of the battery's calls to others than the engine, in host
// memory.
class Replay {
 public:
  explicit Replay(const Battery& battery);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // False when there was no memory; `use` was not called then. `call` is valid
  // only inside of `use`.
  bool with_call(int index,
                 const std::function<void(const AttentionCall& call)>& use);

 private:
  const Battery& battery_;
  const std::function<void(const AttentionCall&)>* use_ = nullptr;
  Engine engine_;
  Executor executor_;
  bool allocated_ = false;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_BATTERY_H_
