// What the hook itself sees in llama.cpp's graph, beside what the guard's
// checks see in a call: things that belong to the engine's bookkeeping and that
// an AttentionCall does not show.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_FINDINGS_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_FINDINGS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/runtime/metrics.h"

namespace attnguard::llama_cpp {

enum class EngineCheck : std::uint8_t {
  kMask,        // The mask tensor is what sequences and positions say.
  kWeights,     // Softmax weights: each row's sum, and 0 where it is masked.
  kCacheWrite,  // What was to be written is what lies in the cache.
  kCacheCell,   // A cell that nobody wrote holds what it held before.
};
inline constexpr std::size_t kNumEngineChecks = 4;

std::string_view engine_check_id(EngineCheck check);  // "mask"

struct EngineFinding {
  EngineCheck check = EngineCheck::kMask;
  std::string layer;  // "blk.7.attn"
  std::int64_t sequence = -1;
  std::int64_t position = -1;  // of the token whose row or cell it is
  std::string message;         // One sentence; names everything in words.
};

// What became of the attention calls, and what the hook's own checks did.
struct HookCounters {
  std::uint64_t graphs = 0;     // Ubatches.
  std::uint64_t attention = 0;  // Attention calls in them.
  std::uint64_t sampled = 0;    // Looked at.
  std::uint64_t observed = 0;   // Handed to the guard.
  std::uint64_t not_told = 0;   // Of those, judged by the engine's own mask:
                                // nobody said which sequences there are.
  std::uint64_t declined = 0;   // Not judged; last_reason says why.
  std::string last_reason;      // Also why rows are judged by the engine's mask
                                // although the host says its batches.

  struct Check {
    std::uint64_t runs = 0;
    std::uint64_t judged = 0;      // mask elements, weight rows, cells
    std::uint64_t violations = 0;  // Runs that found something.
    std::uint64_t findings = 0;
  };
  std::array<Check, kNumEngineChecks> checks = {};

  const Check& check(EngineCheck which) const {
    return checks[static_cast<std::size_t>(which)];
  }
};

// The counters as metrics, to be put beside the guard's own: names begin with
// attnguard_llama_cpp_.
std::vector<MetricFamily> hook_metrics(const HookCounters& counters);

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_FINDINGS_H_
