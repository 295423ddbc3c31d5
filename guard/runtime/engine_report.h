// What somebody beside the guard found wrong in a running engine: a hook that
// follows the engine's masks, weights or caches, or the host itself. The guard
// cannot look at such things, as an AttentionCall does not show them; told of
// them with Guard::report, it treats them like what it found itself.
#ifndef ATTNGUARD_GUARD_RUNTIME_ENGINE_REPORT_H_
#define ATTNGUARD_GUARD_RUNTIME_ENGINE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/runtime/observe_context.h"

namespace attnguard {

// Everything it refers to is read during Guard::report only.
struct EngineReport {
  // Bytes of `text` that a dump keeps.
  static constexpr std::size_t kMostText = 16 << 10;

  // Which of the reporter's own checks it was, in one word: "cache-cell". It
  // stands in the log line, in the dump and in its name. May be empty.
  std::string_view check;

  // The first that were found. None: there is nothing to report, and nothing is
  // done or counted. Indices are those of `call`; -1 where they do not apply or
  // there is no call. The message of the first is what the log says.
  std::span<const Finding> findings;

  // All of them. Less than findings has: as many as those.
  std::int64_t num_findings = 0;

  // What a dump is to say beside the findings, such as the state of the
  // reporter's books; any number of lines. More than kMostText is cut off.
  std::string_view text;

  // The finished call in which it was found, with its tensors as for
  // Guard::observe, so that a dump has them. It is neither judged nor changed.
  // nullptr, a call that the guard cannot read, tensors where the host may not
  // read: the dump has the findings and the text, and no tensors.
  const AttentionCall* call = nullptr;

  // Of the call; nullptr: Problem::mask says what its rows see.
  const ObserveContext* context = nullptr;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_ENGINE_REPORT_H_
