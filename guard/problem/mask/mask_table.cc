#include "guard/problem/mask/mask_table.h"

#include <array>

namespace attnguard {

std::span<const MaskKind* const> all_mask_kinds() {
  static constexpr std::array kKinds = {
      &kMaskFull,
      &kMaskCausalTopLeft,
      &kMaskCausalBottomRight,
      &kMaskPrefixLm,
      &kMaskBidirectionalSpans,
      &kMaskTree,
      &kMaskSlidingWindow,
      &kMaskSlidingWindowTopLeft,
      &kMaskSlidingWindowKeys,
      &kMaskSlidingWindowTwoSided,
      &kMaskWindowSymmetric,
      &kMaskEncoderWindow,
      &kMaskChunkedLocal,
      &kMaskChunkedLocalFromPadding,
      &kMaskDocuments,
      &kMaskLeftPadding,
      &kMaskLeftPaddingKeys,
  };
  return kKinds;
}

const MaskKind* find_mask_kind(std::string_view name) {
  for (const MaskKind* kind : all_mask_kinds())
    if (kind->name == name) return kind;
  return nullptr;
}

}  // namespace attnguard
