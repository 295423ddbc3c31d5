// What a check found in a running engine.
#ifndef ATTNGUARD_GUARD_RUNTIME_VIOLATION_H_
#define ATTNGUARD_GUARD_RUNTIME_VIOLATION_H_

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/policy/runtime_policy.h"
#include "guard/runtime/observe_context.h"

namespace attnguard {

// Everything it refers to is valid during ViolationSink::on_violation only.
struct Violation {
  LiveCheck check = LiveCheck::kFinite;
  Severity severity = Severity::kError;
  ActionSet actions = 0;  // What the policy asks for.

  std::string_view layer;        // "blk.7.attn"
  std::string_view layer_group;  // "blk.*.attn": what metrics are labelled with

  std::span<const Finding> findings;  // The first found; at least one.
  std::int64_t num_findings = 0;      // All of them.

  // Of kEngine, which others report: EngineReport::check and text. Empty for
  // what the guard itself found.
  std::string_view engine_check;  // "cache-cell"
  std::string_view engine_text;

  // The call that is wrong. For passive checks it is the engine's own; for
  // shadow checks it is the one on scratch memory whose output is wrong
  // (in_scratch). Tensors lie in host memory. The canary makes many calls:
  // its call has a problem but no tensors (data is nullptr), and `attnguard
  // check --problem` with the seed makes them again. nullptr only for kEngine:
  // the report had no call that the host can read.
  const AttentionCall* call = nullptr;
  bool in_scratch = false;

  const ObserveContext* context = nullptr;
  Numerics numerics;  // What the bounds were made of.
  const RuntimeSettings* settings = nullptr;
  std::uint64_t seed = 0;         // of the policy
  std::uint64_t call_number = 0;  // of this layer in this thread, from 1; for
                                  // kEngine that of the next one to be observed
};

// What a wrapped callback throws for kActionThrow.
class ViolationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "blk.7.attn: value-range: batch 0, head 1, query 3: output channel 0 is ..."
// "blk.7.attn: engine: cache-cell: sequence 0, position 4: cell 4 is not ..."
std::string describe(const Violation& violation);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_VIOLATION_H_
