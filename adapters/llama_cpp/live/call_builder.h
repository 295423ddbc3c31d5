// From an attention node and what is known of its tokens to the call that the
// guard judges.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CALL_BUILDER_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CALL_BUILDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "adapters/llama_cpp/live/attention_node.h"
#include "adapters/llama_cpp/live/cell_ledger.h"
#include "guard/engine/engine.h"
#include "guard/runtime/observe_context.h"

namespace attnguard::llama_cpp {

// What a layer owes, as the host knows it.
struct LayerRule {
  bool causal = true;
  std::int32_t window = 0;              // Tokens that a row sees; 0: all.
  std::optional<double> softmax_scale;  // Absent: the node's own.

  bool sees(std::int32_t query, std::int32_t key) const {
    return (!causal || key <= query) && (window == 0 || key > query - window);
  }
};

// Reuses its memory: allocates only while calls grow.
class CallBuilder : public RowMask {
 public:
  // One batch entry for each sequence among the rows; its keys are the cells
  // that the ledger gives it, in the order of positions, wherever they lie. No
  // mask tensor is read. Empty, or why it cannot be done.
  std::string_view build(const AttentionNode& node, std::span<const Token> rows,
                         const CellLedger& ledger, const LayerRule& rule,
                         std::uint64_t first_sequence_id);

  // One batch entry for each stream; what rows see is what the node's mask
  // tensor says. Where nobody says which sequences there are.
  std::string_view build_from_mask(const AttentionNode& node,
                                   const LayerRule& rule);

  // Of the last build; valid until the next one, or the node changes.
  const AttentionCall& call() const { return call_; }
  ObserveContext context() const;

  // The token of an entry's query.
  std::int32_t sequence(std::int64_t entry) const {
    return entries_[static_cast<std::size_t>(entry)].sequence;
  }

  // Where a row of the ubatch is in the call of the last build().
  struct RowOfCall {
    std::int64_t batch = -1, query = -1;  // -1: it is not in it.
  };
  RowOfCall row_of_call(std::int64_t ubatch_row) const;

  void allowed(const RowPlace& row, KeyRanges& out) const override;

 private:
  struct Row {
    std::int64_t index = 0;  // of the ubatch
    std::int32_t position = 0;
  };
  struct Entry {
    std::int32_t sequence = -1;
    std::vector<Row> rows;
    std::vector<Cell> cells;
  };
  // What a tensor is seen through.
  struct Side {
    TokenMap map;
    std::vector<float> decoded;  // Of types in blocks.
  };

  std::string_view collect(const AttentionNode& node,
                           std::span<const Token> rows,
                           const CellLedger& ledger);
  Entry& entry_of(std::int32_t sequence);
  bool rows_are_last(const Entry& entry) const;
  void fill_problem(const AttentionNode& node, const LayerRule& rule);
  template <typename IndexOf>
  std::string_view map_rows(const Place& place, bool queries, IndexOf index_of,
                            Side& side, ConstTensorView& view);
  void decode_rows(const Place& place, Side& side, ConstTensorView& view);
  void allowed_by_mask(const RowPlace& row, KeyRanges& out) const;

  std::vector<Entry> entries_;  // The first num_entries_ are in use.
  std::size_t num_entries_ = 0;
  LayerRule rule_;
  Place mask_;
  bool by_mask_ = false;    // build_from_mask
  bool plain_ = false;      // Problem::mask says all.
  bool from_zero_ = false;  // Every entry's keys have positions 0, 1, 2 ...

  Problem problem_;
  AttentionCall call_;
  Side query_, key_, value_, output_;
  std::vector<std::uint64_t> sequence_ids_;
};

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CALL_BUILDER_H_
