#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"
#include "guard/problem/mask/padding.h"

namespace attnguard {
namespace {

constexpr MaskParameter kChunk = {"chunk", 1, true, 0, "keys per chunk"};

constexpr std::array<MaskParameter, 1> kChunkedLocalParameters = {kChunk};
constexpr std::array<MaskParameter, 2> kPaddingParameters = {kChunk,
                                                             kPadParameter};

// The chunk of the row's own key; chunks are counted from key `origin`, and
// there is none before it.
void append_chunk(std::int64_t chunk, std::int64_t origin, const RowPlace& row,
                  KeyRanges& out) {
  const std::int64_t place = row.bottom_right() - origin;
  if (place < 0) return;
  const std::int64_t begin = origin + place / chunk * chunk;
  append_clipped(begin, begin + chunk, row.seq_len_kv, out);
}

}  // namespace

// Both directions within the chunk: Llama 4 is this and causal_bottom_right.
const MaskKind kMaskChunkedLocal = {
    .name = "chunked_local",
    .summary =
        "keys of the query's own chunk, chunks counted from key 0, last query "
        "aligned with last key: vLLM, llama.cpp (Llama 4, with causal)",
    .parameters = kChunkedLocalParameters,
    .allowed = [](const MaskValues& values, const RowPlace& row,
                  KeyRanges& out) { append_chunk(values[0], 0, row, out); },
    .exclusive_group = "chunk",
};

const MaskKind kMaskChunkedLocalFromPadding = {
    .name = "chunked_local_from_padding",
    .summary =
        "the same, chunks counted from the first token that is not padding; "
        "padding as in left_padding: Hugging Face (Llama 4)",
    .parameters = kPaddingParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          append_chunk(values[0], pad_of(values.list(1), row.batch), row, out);
        },
    .exclusive_group = "chunk",
    .validate =
        [](const MaskValues& values, const Problem& problem) {
          return validate_pad(values.list(1), problem);
        },
    .shrink =
        [](MaskValues& values, const Problem& problem) {
          values.set(1, shrunk_pad(values.list(1), problem));
        },
};

}  // namespace attnguard
