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
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/plan.h"

namespace attnguard {

// Memory that the engine changed and does not own.
struct MemoryFault {
  TensorRole tensor = TensorRole::kOutput;
  enum class Place { kBefore, kAfter, kGap, kInput } place = Place::kAfter;
  std::int64_t element = 0;  // Offset in elements from the tensor's start.
};

// One finished call, as checks see it. Views are on the host and valid until
// the next call.
struct Observation {
  int call = 0;
  const PlannedCall* planned = nullptr;
  const Problem* problem = nullptr;
  ConstTensorView query, key, value;  // What the engine was given.
  ConstTensorView output;
  std::vector<MemoryFault> memory_faults;  // At most a few per tensor.

  // Output of an earlier call that was kept; data is nullptr when it was not.
  ConstTensorView kept(int earlier_call) const;

  const std::map<int, std::vector<std::byte>>* kept_outputs = nullptr;
};

// Owns the tensors of one problem.
class Executor {
 public:
  // Both must outlive the executor.
  Executor(const Engine& engine, const Problem& problem);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Allocates the tensors. kOutOfMemory says how many bytes were wanted.
  Status allocate();

  // Runs plan.calls()[index] and fills `seen`. On failure the status is the
  // engine's and `seen` is not to be used.
  Status run(const Plan& plan, int index, Observation& seen);

  std::int64_t engine_calls() const { return engine_calls_; }
  double engine_seconds() const { return engine_seconds_; }

 private:
  struct Buffers;

  void fill_inputs(const PlannedCall& planned);

  const Engine& engine_;
  const Problem& problem_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Buffers> buffers_;
  std::map<int, std::vector<std::byte>> kept_outputs_;
  std::int64_t engine_calls_ = 0;
  double engine_seconds_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_EXECUTE_H_
