#include <algorithm>
#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"
#include "guard/problem/mask/padding.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kLeftPaddingParameters = {kPadParameter};

Status validate_left_padding(const MaskValues& values, const Problem& problem) {
  return validate_pad(values.list(0), problem);
}

void shrink_left_padding(MaskValues& values, const Problem& problem) {
  values.set(0, shrunk_pad(values.list(0), problem));
}

}  // namespace

// The output of a padded query is nobody's business in the engines that pad on
// the left; here such a query has no allowed key, so that its row is judged as
// one: what an engine owes for it is its empty-row convention.
const MaskKind kMaskLeftPadding = {
    .name = "left_padding",
    .summary =
        "the first `pad` tokens are seen by nobody and, as queries, see "
        "nothing: padded batches of Hugging Face, ONNX Runtime",
    .parameters = kLeftPaddingParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t pad = pad_of(values.list(0), row.batch);
          if (row.bottom_right() >= pad) out.append(pad, row.seq_len_kv);
        },
    .exclusive_group = "padding",
    .validate = validate_left_padding,
    .shrink = shrink_left_padding,
};

const MaskKind kMaskLeftPaddingKeys = {
    .name = "left_padding_keys",
    .summary =
        "the first `pad` keys are seen by nobody; every query sees the "
        "others: PyTorch key_padding_mask, Hugging Face encoders",
    .parameters = kLeftPaddingParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          out.append(pad_of(values.list(0), row.batch), row.seq_len_kv);
        },
    .exclusive_group = "padding",
    .validate = validate_left_padding,
    .shrink = shrink_left_padding,
};

}  // namespace attnguard
