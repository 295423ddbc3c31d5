// Where defects look for the tokens of packed and paged tensors, and where
// they append them. Whatever a defect asks for, the place lies in the tensor.
#ifndef ATTNGUARD_GUARD_DEFECT_STORAGE_H_
#define ATTNGUARD_GUARD_DEFECT_STORAGE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "guard/engine/attention_variant.h"

namespace attnguard {

// Whether the call's keys are packed or paged, and it says where they lie.
bool is_packed(const AttentionCall& call);
bool is_paged(const AttentionCall& call);

// For AttentionVariant::row_offset, in elements from the start of the tensor.
// Where the token is:
std::int64_t right_offset(const AttentionCall& call, TensorRole role,
                          const KvSlot& slot, std::int64_t position);

// Token number `token` of a packed tensor, moved to the nearest there is.
std::int64_t packed_offset(const AttentionCall& call, TensorRole role,
                           const KvSlot& slot, std::int64_t token);

// Row `row` of a block of a paged tensor, counted in tokens, for the slot's
// head. Blocks that do not exist are moved to the nearest one; rows past the
// block's end are those of the memory behind it, as far as there is any.
std::int64_t block_offset(const AttentionCall& call, TensorRole role,
                          const KvSlot& slot, std::int64_t block,
                          std::int64_t row);

// The block id at `index` of an entry's row of the table; past the row's end
// its last one.
std::int64_t table_entry(const AttentionCall& call, std::int64_t entry,
                         std::int64_t index);

// One row that an append writes.
struct AppendedRow {
  const CacheAppend& append;
  TensorRole role;  // kKey or kValue
  std::int64_t batch = 0;
  std::int64_t kv_head = 0;
  std::int64_t position = 0;  // of the token in the cache

  // The place of a token of this head in the role's cache.
  std::int64_t offset(std::int64_t entry, std::int64_t at) const;
};

// append_tokens with each row written to `where` says, in elements from the
// start of its cache; nullopt: nowhere.
Status append_rows(
    const CacheAppend& append,
    const std::function<std::optional<std::int64_t>(const AppendedRow&)>&
        where);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DEFECT_STORAGE_H_
