// What an engine tells the guard beside the call itself.
#ifndef ATTNGUARD_GUARD_RUNTIME_OBSERVE_CONTEXT_H_
#define ATTNGUARD_GUARD_RUNTIME_OBSERVE_CONTEXT_H_

#include <cstdint>

#include "guard/engine/engine.h"
#include "guard/problem/key_ranges.h"

namespace attnguard {

// The keys that rows see where Problem::mask cannot say it: engines that have
// the mask as a tensor only. Implemented by the host; called from the thread
// that observes, for the few rows that are judged.
class RowMask {
 public:
  virtual ~RowMask() = default;

  // Overwrites `out` with the keys that the row may attend to, within
  // [0, row.seq_len_kv). Does not depend on the head. Must not throw.
  virtual void allowed(const RowPlace& row, KeyRanges& out) const = 0;
};

struct ObserveContext {
  // [problem.batch] ids of the sequences that the entries are, so that the
  // range of a sequence's values is kept from step to step (see Guard::append
  // and its neighbours). nullptr: not known, and each look reads the values.
  const std::uint64_t* sequences = nullptr;

  // nullptr: Problem::mask says what rows see.
  const RowMask* mask = nullptr;

  // The kernel, for the shadow checks and the canary. It is called on scratch
  // memory with the layouts of Problem, from the observing thread. nullptr:
  // those checks are skipped.
  const AttentionCallback* kernel = nullptr;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_OBSERVE_CONTEXT_H_
