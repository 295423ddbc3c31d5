#include "guard/defect/storage.h"

#include <algorithm>
#include <vector>

namespace attnguard {
namespace {

const ConstTensorView& view_of(const AttentionCall& call, TensorRole role) {
  return role == TensorRole::kKey ? call.key : call.value;
}

// Elements from a row's first channel to one past its last.
std::int64_t row_extent(const ConstTensorView& view) {
  return (view.shape[3] - 1) * view.strides[3] + 1;
}

void append_row(const AppendedRow& row, const ConstTensorView& from,
                const TensorView& to, std::int64_t offset) {
  const std::int64_t channels = to.shape[3];
  const std::int64_t first =
      row.append.problem->len_kv(row.batch) - row.append.num_new;
  std::vector<double> values(static_cast<std::size_t>(channels));
  from.load_row(row.batch, row.kv_head, row.position - first, 0, channels,
                values.data());
  encode(to.dtype, values.data(), channels,
         to.data + offset * static_cast<std::int64_t>(dtype_size(to.dtype)),
         to.strides[3]);
}

}  // namespace

bool is_packed(const AttentionCall& call) {
  return call.problem->is_packed(TensorRole::kKey) &&
         call.cu_seqlens_kv != nullptr;
}

bool is_paged(const AttentionCall& call) {
  return call.problem->is_paged(TensorRole::kKey) &&
         call.block_table != nullptr;
}

std::int64_t right_offset(const AttentionCall& call, TensorRole role,
                          const KvSlot& slot, std::int64_t position) {
  return view_of(call, role).offset(slot.batch, slot.kv_head, position);
}

std::int64_t packed_offset(const AttentionCall& call, TensorRole role,
                           const KvSlot& slot, std::int64_t token) {
  const ConstTensorView& view = view_of(call, role);
  const Problem& problem = *call.problem;
  const std::int64_t tokens =
      call.cu_seqlens_kv[problem.batch] + problem.packed_padding;
  token =
      std::clamp<std::int64_t>(token, 0, std::max<std::int64_t>(tokens - 1, 0));
  return token * view.strides[2] + slot.kv_head * view.strides[1];
}

std::int64_t block_offset(const AttentionCall& call, TensorRole role,
                          const KvSlot& slot, std::int64_t block,
                          std::int64_t row) {
  const ConstTensorView& view = view_of(call, role);
  const std::int64_t extent = call.problem->extent(role);
  const std::int64_t blocks = (extent - 1) / view.strides[0] + 1;
  block = std::clamp<std::int64_t>(block, 0, blocks - 1);
  const std::int64_t offset = block * view.strides[0] + row * view.strides[2] +
                              slot.kv_head * view.strides[1];
  return std::min(offset, extent - row_extent(view));
}

std::int64_t table_entry(const AttentionCall& call, std::int64_t entry,
                         std::int64_t index) {
  return call.block_table[entry * call.block_table_width +
                          std::min(index, call.block_table_width - 1)];
}

std::int64_t AppendedRow::offset(std::int64_t entry, std::int64_t at) const {
  const TensorView& cache =
      role == TensorRole::kKey ? append.key : append.value;
  return cache.offset(entry, kv_head, at);
}

Status append_rows(
    const CacheAppend& append,
    const std::function<std::optional<std::int64_t>(const AppendedRow&)>&
        where) {
  const Problem& problem = *append.problem;
  for (TensorRole role : {TensorRole::kKey, TensorRole::kValue}) {
    // The key has written it already.
    if (role == TensorRole::kValue && problem.value_in_key) continue;
    const bool key = role == TensorRole::kKey;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
        for (std::int64_t n = 0; n < append.num_new; ++n) {
          const AppendedRow row{append, role, b, g,
                                problem.len_kv(b) - append.num_new + n};
          if (const std::optional<std::int64_t> offset = where(row))
            append_row(row, key ? append.new_key : append.new_value,
                       key ? append.key : append.value, *offset);
        }
  }
  return ok_status();
}

}  // namespace attnguard
