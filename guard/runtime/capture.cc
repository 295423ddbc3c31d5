#include "guard/runtime/capture.h"

#include <algorithm>
#include <cstring>

namespace attnguard {
namespace {

std::uint64_t byte_count(const StoredTensor& tensor) {
  std::uint64_t count = tensor.type->size;
  for (std::int64_t length : tensor.shape)
    count *= static_cast<std::uint64_t>(length);
  return count;
}

// The dtype and the channels are those that the file says: a cache may hold
// others than the problem, such as fp16 under an engine that computes in fp32.
void copy_row(const ConstTensorView& view, std::int64_t b, std::int64_t h,
              std::int64_t position, Dtype as, std::int64_t channels,
              std::byte* to) {
  const std::size_t size = dtype_size(as);
  if (view.dtype == as && view.strides[3] == 1) {
    std::memcpy(to, view.at(b, h, position),
                size * static_cast<std::size_t>(channels));
    return;
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    double value = 0;
    view.load_row(b, h, position, c, 1, &value);
    encode(as, &value, 1, to + static_cast<std::size_t>(c) * size, 1);
  }
}

// Rows of one tensor, those past their entry's length as zeros.
template <typename Length>
void copy_rows(const ConstTensorView& view, const IndexSpan& batch,
               const IndexSpan& heads, const IndexSpan& positions,
               Length length, const StoredTensor& stored, std::byte* to) {
  const Dtype as = *stored.type->dtype;
  const std::int64_t channels = stored.shape[3];
  const std::size_t row = dtype_size(as) * static_cast<std::size_t>(channels);
  for (std::int64_t b = batch.first; b < batch.end(); ++b)
    for (std::int64_t h = heads.first; h < heads.end(); ++h)
      for (std::int64_t s = positions.first; s < positions.end(); ++s) {
        if (s < length(b))
          copy_row(view, b, h, s, as, channels, to);
        else
          std::memset(to, 0, row);
        to += row;
      }
}

std::size_t mask_element(const AttentionCall& call) {
  return call.mask.form == MaskForm::kAdditive ? dtype_size(call.problem->dtype)
                                               : 1;
}

void copy_mask(const AttentionCall& call, const CaptureScope& scope,
               std::byte* to) {
  const Problem& problem = *call.problem;
  const auto row =
      static_cast<std::size_t>(problem.max_len_kv()) * mask_element(call);
  for (std::int64_t b = scope.batch.first; b < scope.batch.end(); ++b)
    for (std::int64_t i = scope.queries.first; i < scope.queries.end(); ++i) {
      const auto index = static_cast<std::size_t>(b * problem.max_len_q() + i);
      std::memcpy(to, call.mask.data + index * row, row);
      to += row;
    }
}

void copy_allowed(const CapturedCall& captured, const CaptureScope& scope,
                  std::byte* to) {
  const Problem& problem = *captured.call->problem;
  const auto row = static_cast<std::size_t>(problem.max_len_kv());
  KeyRanges keys;
  for (std::int64_t b = scope.batch.first; b < scope.batch.end(); ++b)
    for (std::int64_t i = scope.queries.first; i < scope.queries.end(); ++i) {
      std::memset(to, 0, row);
      keys.clear();
      if (i < problem.len_q(b)) captured.mask->allowed(problem.row(b, i), keys);
      for (const KeyRange& range : keys.ranges())
        std::memset(to + range.begin, 1,
                    static_cast<std::size_t>(range.end - range.begin));
      to += row;
    }
}

void copy_tensor(const CapturedCall& captured, const CaptureScope& scope,
                 const StoredTensor& stored, std::size_t bytes, std::byte* to) {
  const std::string_view name = stored.name;
  const AttentionCall& call = *captured.call;
  const Problem& problem = *call.problem;
  const IndexSpan keys{0, problem.max_len_kv()};
  const auto len_q = [&](std::int64_t b) { return problem.len_q(b); };
  const auto len_kv = [&](std::int64_t b) { return problem.len_kv(b); };
  if (name == "query")
    copy_rows(call.query, scope.batch, scope.heads, scope.queries, len_q,
              stored, to);
  else if (name == "output")
    copy_rows(call.output, scope.batch, scope.heads, scope.queries, len_q,
              stored, to);
  else if (name == "key")
    copy_rows(call.key, scope.batch, scope.kv_heads, keys, len_kv, stored, to);
  else if (name == "value")
    copy_rows(call.value, scope.batch, scope.kv_heads, keys, len_kv, stored,
              to);
  else if (name == "mask")
    copy_mask(call, scope, to);
  else if (name == "allowed")
    copy_allowed(captured, scope, to);
  else if (name == "cu_seqlens_q")
    std::memcpy(to, call.cu_seqlens_q, bytes);
  else if (name == "cu_seqlens_kv")
    std::memcpy(to, call.cu_seqlens_kv, bytes);
  else if (name == "block_table")
    std::memcpy(to,
                call.block_table + scope.batch.first * call.block_table_width,
                bytes);
}

IndexSpan only(std::int64_t index, std::int64_t of) {
  return {std::clamp<std::int64_t>(index, 0, of - 1), 1};
}

// As many queries around `query` as fit.
std::optional<CaptureScope> some_queries(const CapturedCall& call,
                                         CaptureScope scope, std::int64_t query,
                                         std::uint64_t most) {
  const std::int64_t all = scope.queries.count;
  scope.queries = only(query, all);
  const std::uint64_t one = capture_bytes(call, scope);
  if (one > most) return std::nullopt;
  scope.queries.count = std::min<std::int64_t>(2, all);
  const std::uint64_t each = capture_bytes(call, scope) - one;
  const std::uint64_t further =
      each == 0 ? static_cast<std::uint64_t>(all) : (most - one) / each;
  scope.queries.count = static_cast<std::int64_t>(
      std::min<std::uint64_t>(further + 1, static_cast<std::uint64_t>(all)));
  scope.queries.first = std::clamp<std::int64_t>(
      query - scope.queries.count / 2, 0, all - scope.queries.count);
  return scope;
}

}  // namespace

std::string IndexSpan::text() const {
  return std::to_string(first) + ':' + std::to_string(end());
}

CaptureScope whole_call(const Problem& problem) {
  return {.batch = {0, problem.batch},
          .heads = {0, problem.num_heads},
          .kv_heads = {0, problem.num_kv_heads},
          .queries = {0, problem.max_len_q()}};
}

std::vector<StoredTensor> capture_layout(const CapturedCall& captured,
                                         const CaptureScope& scope) {
  const AttentionCall& call = *captured.call;
  const Problem& problem = *call.problem;
  const std::int64_t len_kv = problem.max_len_kv();
  const StoredType* type = &stored_type(problem.dtype);
  const StoredType* index = find_stored_type("I32");
  const auto& [batch, heads, kv_heads, queries] = scope;
  // Wide elements first: each tensor is then aligned to its own.
  std::vector<StoredTensor> tensors = {
      {"query",
       type,
       {batch.count, heads.count, queries.count, problem.head_dim_qk}},
      {"key", type, {batch.count, kv_heads.count, len_kv, problem.head_dim_qk}},
      {"value",
       type,
       {batch.count, kv_heads.count, len_kv, problem.head_dim_v}},
      {"output",
       &stored_type(problem.output_dtype()),
       {batch.count, heads.count, queries.count, problem.head_dim_v}}};
  if (call.mask.data != nullptr)
    tensors.push_back(
        {"mask",
         call.mask.form == MaskForm::kAdditive ? type : find_stored_type("U8"),
         {batch.count, queries.count, len_kv}});
  if (captured.mask != nullptr)
    tensors.push_back({"allowed",
                       find_stored_type("U8"),
                       {batch.count, queries.count, len_kv}});
  if (call.cu_seqlens_q != nullptr)
    tensors.push_back({"cu_seqlens_q", index, {problem.batch + 1}});
  if (call.cu_seqlens_kv != nullptr)
    tensors.push_back({"cu_seqlens_kv", index, {problem.batch + 1}});
  if (call.block_table != nullptr)
    tensors.push_back(
        {"block_table", index, {batch.count, call.block_table_width}});
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const StoredTensor& a, const StoredTensor& b) {
                     return a.type->size > b.type->size;
                   });
  return tensors;
}

std::uint64_t capture_bytes(const CapturedCall& call,
                            const CaptureScope& scope) {
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : capture_layout(call, scope))
    bytes += byte_count(tensor);
  return bytes;
}

std::optional<CaptureScope> choose_scope(const CapturedCall& call,
                                         const Finding& row,
                                         std::uint64_t most) {
  const Problem& problem = *call.call->problem;
  CaptureScope scope = whole_call(problem);
  if (capture_bytes(call, scope) <= most) return scope;
  scope.batch = only(row.batch, problem.batch);
  if (capture_bytes(call, scope) <= most) return scope;
  const IndexSpan head = only(row.head, problem.num_heads);
  scope.kv_heads = {problem.kv_head_of(head.first), 1};
  scope.heads = {scope.kv_heads.first * problem.group_size(),
                 problem.group_size()};
  if (capture_bytes(call, scope) <= most) return scope;
  scope.heads = head;
  if (capture_bytes(call, scope) <= most) return scope;
  return some_queries(call, scope, row.query, most);
}

void capture_tensors(const CapturedCall& call, const CaptureScope& scope,
                     std::span<StoredTensor> tensors, std::byte* to) {
  for (StoredTensor& tensor : tensors) {
    const auto bytes = static_cast<std::size_t>(byte_count(tensor));
    copy_tensor(call, scope, tensor, bytes, to);
    tensor.data = {to, bytes};
    to += bytes;
  }
}

}  // namespace attnguard
