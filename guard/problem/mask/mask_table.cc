#include "guard/problem/mask/mask_table.h"

#include <array>

namespace attnguard {

std::span<const MaskKind* const> all_mask_kinds() {
  static constexpr std::array kKinds = {
      &kMaskFull,          &kMaskCausalTopLeft,        &kMaskCausalBottomRight,
      &kMaskSlidingWindow, &kMaskSlidingWindowTopLeft, &kMaskPrefixLm,
  };
  return kKinds;
}

const MaskKind* find_mask_kind(std::string_view name) {
  for (const MaskKind* kind : all_mask_kinds())
    if (kind->name == name) return kind;
  return nullptr;
}

}  // namespace attnguard
