// The part of a call that is kept as evidence: chosen to fit a number of
// bytes, and copied dense into memory that was allocated before.
#ifndef ATTNGUARD_GUARD_RUNTIME_CAPTURE_H_
#define ATTNGUARD_GUARD_RUNTIME_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/runtime/observe_context.h"
#include "guard/runtime/safetensors.h"

namespace attnguard {

// From `first` on, `count` of them.
struct IndexSpan {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool contains(std::int64_t index) const {
    return index >= first && index < first + count;
  }
  std::int64_t end() const { return first + count; }
  std::string text() const;  // "3:7", the end not included
  friend bool operator==(const IndexSpan&, const IndexSpan&) = default;
};

// What of a call is kept. All keys and values of the kept entries and KV heads
// are: a row can be judged only with every key it may see.
struct CaptureScope {
  IndexSpan batch, heads, kv_heads, queries;

  bool holds_row(std::int64_t b, std::int64_t head, std::int64_t query) const {
    return batch.contains(b) && heads.contains(head) && queries.contains(query);
  }
  friend bool operator==(const CaptureScope&, const CaptureScope&) = default;
};

CaptureScope whole_call(const Problem& problem);

// A call and what its rows see where its problem cannot say it.
struct CapturedCall {
  const AttentionCall* call = nullptr;
  const RowMask* mask = nullptr;  // nullptr: the problem says it.
};

// The tensors of a capture, in the order they are stored. Absent ones (a mask
// that is implied, cu_seqlens of what is not packed) are left out. Axes:
//   query, output   [kept entries, kept heads, kept queries, channels]
//   key, value      [kept entries, kept KV heads, longest seq_len_kv, channels]
//   mask            [kept entries, kept queries, longest seq_len_kv]
//   allowed         the same axes, bytes, 1 = may attend: what a RowMask said
//   cu_seqlens_q, cu_seqlens_kv [batch + 1], block_table [kept entries, width]
// Positions past an entry's own length are zero. `data` is empty.
std::vector<StoredTensor> capture_layout(const CapturedCall& captured,
                                         const CaptureScope& scope);

// Bytes of all of them.
std::uint64_t capture_bytes(const CapturedCall& captured,
                            const CaptureScope& scope);

// The largest part that `most` bytes hold and that has the row in it: all; one
// entry; its KV head with the heads that share it; one head; some queries
// around the row's. nullopt: one row with its keys is larger. Rows that are
// not known (-1) count as the first.
std::optional<CaptureScope> choose_scope(const CapturedCall& captured,
                                         const Finding& row,
                                         std::uint64_t most);

// Copies the tensors, one behind the other, and points each one's data at its
// bytes. `to` has capture_bytes() at least. The call's tensors are in host
// memory. Allocates nothing but what a RowMask does.
void capture_tensors(const CapturedCall& captured, const CaptureScope& scope,
                     std::span<StoredTensor> tensors, std::byte* to);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_CAPTURE_H_
