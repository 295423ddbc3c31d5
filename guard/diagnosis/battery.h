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
//   unused slots      the random call with other contents in every place that
//                     no row may read
//   perturb           the random call with other later tokens, and with
//                     extreme ones: overflow, finite masks, shared scales
//   softmax_lse, weights, append
//                     the random call once more with that asked for, of engines
//                     that have it
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

// Which calls there are besides those that every engine can run.
struct BatteryCalls {
  bool lse = false;
  bool weights = false;
  bool append = false;
  bool unused_nan = true;  // NaN in unused places.

  // What the engine gives beside the output.

  static BatteryCalls of(const Engine& engine);
};

// One kind of number that a call gives, in the order in which
// Battery::read puts them one after the other.
struct CallPart {
  enum class Kind { kOutput, kLse, kWeights, kCache };
  Kind kind = Kind::kOutput;
  std::size_t begin = 0;  // Its first number
  std::size_t width = 1;  // Numbers of a row; of the cache: all are one row
  std::size_t end = 0;
};

// Where a call's numbers lie. Of what was not asked for, data is nullptr.
struct CallViews {
  ConstTensorView output, softmax_lse, weights;
  ConstTensorView key, value;  // the cache after an append
};

class Battery {
 public:
  // Probes that do not fit the problem or the engine's numerics are left out.
  Battery(const Problem& problem, const Numerics& numerics, std::uint64_t seed,
          const BatteryCalls& calls = {});

  const Problem& problem() const { return *problem_; }
  const Plan& plan() const { return plan_; }
  int size() const { return static_cast<int>(plan_.calls().size()); }
  const std::vector<JudgedRow>& rows() const { return rows_; }

  std::vector<CallPart> parts(int call) const;

  // What the call gave: the judged rows of its output, one after the other,
  // head_dim_v numbers each; then of softmax_lse, one each, or of the weights,
  // max seq_len_kv each, where it asks for them; or every place of the cache
  // where it appends. What was not written is kUnwritten, a NaN.
  std::vector<double> read(int call, const CallViews& views) const;

 private:
  void request(const ScorePatternPtr& scores, const ValuePatternPtr& values,
               const CallMode& mode = {});
  void request_side_outputs(const BatteryCalls& calls, std::uint64_t base);

  std::unique_ptr<const Problem> problem_;  // Patterns keep its address.
  Plan plan_;
  std::vector<JudgedRow> rows_;
};

// True of the number that stands for an element that was never written.
bool is_unwritten(double x);

// What the engine returned: Battery::read of every call. nullopt when it
// fails, or when there is no memory for the problem.
std::optional<std::vector<std::vector<double>>> record_outputs(
    const Engine& engine, const Battery& battery);

// A call of the battery, to be run by another than the engine.
struct ReplayedCall {
  int index = 0;
  AttentionCall call;
  std::optional<CacheAppend> append;  // To be done before.
};

// Gives the inputs of the battery's calls to others than the engine, in host
// memory.
class Replay {
 public:
  explicit Replay(const Battery& battery);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // False when there was no memory; `use` was not called then. `call` is valid
  // only inside of `use`, which must leave the cache as it was.
  bool with_call(int index,
                 const std::function<void(const ReplayedCall& call)>& use);

 private:
  const Battery& battery_;
  const std::function<void(const ReplayedCall&)>* use_ = nullptr;
  ReplayedCall replayed_;
  Engine engine_;
  Executor executor_;
  bool allocated_ = false;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_BATTERY_H_
