// Checks of tensors that llama.cpp's graph has and an AttentionCall has not.
// Each visits everything, in one pass.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ENGINE_CHECKS_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ENGINE_CHECKS_H_

#include <cstdint>
#include <span>
#include <string>

#include "adapters/llama_cpp/live/attention_node.h"
#include "adapters/llama_cpp/live/call_builder.h"
#include "adapters/llama_cpp/live/cell_ledger.h"
#include "guard/finding/finding.h"

namespace attnguard::llama_cpp {

struct CheckOutcome {
  std::uint64_t judged = 0;
  std::uint64_t wrong = 0;
  // Of the first that is wrong.
  FindingKind kind = FindingKind::kValue;
  std::int64_t row = -1;   // of the ubatch
  std::int64_t head = -1;  // query head; -1: of none alone
  std::string message;
};

// Each element of the mask tensor against sequences and positions: finite where
// the row sees the cell, -inf elsewhere.
CheckOutcome check_mask(const AttentionNode& node, std::span<const Token> rows,
                        const CellLedger& ledger, const LayerRule& rule);

// The softmax weights, where they exist: not negative, exactly 0 where the mask
// says -inf, and a sum of 1 (with sinks: at most 1).
CheckOutcome check_weights(const AttentionNode& node);

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ENGINE_CHECKS_H_
