// Running an engine on the inputs of a call that was kept, and finding the
// smallest part of them on which it still goes wrong.
#ifndef ATTNGUARD_GUARD_RUNTIME_RERUN_H_
#define ATTNGUARD_GUARD_RUNTIME_RERUN_H_

#include <cstdint>
#include <string>

#include "guard/base/status.h"
#include "guard/engine/engine.h"
#include "guard/runtime/replay.h"

namespace attnguard {

// A part of a call as a problem of its own: its entry 0 is the call's entry
// `batch.first`, and so on. Inputs that the call does not have are zero.
struct CutCall {
  Problem problem;
  IndexSpan batch, heads, kv_heads, queries, keys;
};

// What of the call can be run: the whole of it, or of a call that was cut the
// kept entries and heads with all their queries.
CutCall runnable_part(const JudgedCall& call);

struct Rerun {
  CutCall part;
  Rejudged judged;
  std::vector<std::string> memory_faults;  // What it wrote and must not.
};

// Runs the engine on the part and judges every row whose inputs the call has.
// The engine's own layout, masks and block tables are made anew.
// kUnsupported: it cannot run the problem; kEngineFailure: it failed.
Result<Rerun> rerun(const Engine& engine, const JudgedCall& call,
                    const CutCall& part, Deadline deadline);

struct Shrunk {
  Rerun smallest;
  int tried = 0;
  bool finished = false;  // False: the time was over first.
};

// Drops batch entries, heads, queries and keys as long as the engine still goes
// wrong. `failing` is a run in which it did.
Shrunk shrink(const Engine& engine, const JudgedCall& call, Rerun failing,
              Deadline deadline);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_RERUN_H_
