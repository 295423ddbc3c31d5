// Runs planned calls on an engine. Before every call the output is filled
// with a poison NaN; after it the inputs, the bytes around every tensor and
// the gaps between output rows are compared with what they were.
#ifndef ATTNGUARD_GUARD_PROBE_EXECUTE_H_
#define ATTNGUARD_GUARD_PROBE_EXECUTE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/plan.h"

namespace attnguard {

// Memory that the engine changed, or read, and does not own.
struct MemoryFault {
  std::string_view tensor;  // "key"; "block_table" for what is no tensor.
  enum class Place { kBefore, kAfter, kGap, kInput } place = Place::kAfter;
  std::int64_t element = 0;  // Offset in elements from the tensor's start.

  // For kInput, where they are known; otherwise -1. Entry `batch` is what
  // belongs to nobody.
  std::int64_t entry = -1, head = -1, position = -1;

  // Only memory with guard pages notices reads; see Memory.
  StrayAccess::Kind access = StrayAccess::Kind::kWrite;
};

// An output that is kept until the problem is finished.
struct KeptOutput {
  std::vector<std::byte> bytes;
  ConstTensorView view;  // data points into `bytes`
  std::shared_ptr<const TokenMap> tokens;
};

// One finished call, as checks see it. Views are on the host and valid until
// the next call.
struct Observation {
  int call = 0;
  const PlannedCall* planned = nullptr;
  const Problem* problem = nullptr;   // The call's own: see CallMode::problem.
  ConstTensorView query, key, value;  // What the engine was given.
  ConstTensorView output;
  ConstTensorView softmax_lse, weights;    // data is nullptr: not asked for.
  std::vector<MemoryFault> memory_faults;  // At most a few per tensor.

  // What is wrong with the cache after CallMode::append tokens were appended:
  // places of kInput that do not hold what they must.
  std::vector<MemoryFault> append_faults;

  // Output of an earlier call that was kept; data is nullptr when it was not.
  ConstTensorView kept(int earlier_call) const;

  const std::map<int, KeptOutput>* kept_outputs = nullptr;
};

// Owns the tensors of one problem, and those of the problems that its calls
// derive from it.
class Executor {
 public:
  // Both must outlive the executor.
  Executor(const Engine& engine, const Problem& problem);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Allocates the tensors. On failure the status is the memory's, and says for
  // which tensor and how many bytes were wanted.
  Status allocate();

  // Runs plan.calls()[index] and fills `seen`. On failure the status is the
  // engine's, and of `seen` there are only call, planned, problem and what
  // memory_faults the memory itself noticed.
  Status run(const Plan& plan, int index, Observation& seen);

  std::int64_t engine_calls() const { return engine_calls_; }
  double engine_seconds() const { return engine_seconds_; }

 private:
  struct Tensors;

  Status prepare(const PlannedCall& planned, Tensors*& tensors);
  Status append(const PlannedCall& planned, Tensors& tensors,
                Observation& seen);
  void keep(int index, Tensors& tensors);

  template <typename Callback>
  Status timed(Callback callback);

  const Engine& engine_;
  const Problem& problem_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Tensors> own_;      // of problem_
  std::unique_ptr<Tensors> derived_;  // of the last other problem
  std::map<int, KeptOutput> kept_outputs_;
  std::int64_t engine_calls_ = 0;
  double engine_seconds_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_EXECUTE_H_
