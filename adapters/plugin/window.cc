#include "adapters/plugin/window.h"

#include <algorithm>

#include "adapters/plugin/attnguard_plugin.h"
#include "adapters/plugin/codes.h"

namespace attnguard::plugin {
namespace {

constexpr Window kNoWindow = {ATTNGUARD_WINDOW_NONE, 0, 0};

Window window_of(const MaskTerm& term) {
  const MaskValues& values = term.values;
  switch (mask_kind_code(term.kind->name)) {
    case ATTNGUARD_MASK_FULL:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, -1, -1};
    case ATTNGUARD_MASK_CAUSAL_TOP_LEFT:
      return {ATTNGUARD_WINDOW_TOP_LEFT, -1, 0};
    case ATTNGUARD_MASK_CAUSAL_BOTTOM_RIGHT:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, -1, 0};
    case ATTNGUARD_MASK_SLIDING_WINDOW:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, values[0], values[1]};
    case ATTNGUARD_MASK_SLIDING_WINDOW_TOP_LEFT:
      return {ATTNGUARD_WINDOW_TOP_LEFT, values[0], values[1]};
    case ATTNGUARD_MASK_SLIDING_WINDOW_KEYS:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, values[0] - 1, 0};
    case ATTNGUARD_MASK_SLIDING_WINDOW_TWO_SIDED:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, values[0], values[0]};
    case ATTNGUARD_MASK_WINDOW_SYMMETRIC:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, values[0] / 2, values[0] / 2};
    case ATTNGUARD_MASK_ENCODER_WINDOW:
      return {ATTNGUARD_WINDOW_BOTTOM_RIGHT, values[0] - 1, values[0] - 1};
    default:
      return kNoWindow;
  }
}

bool unlimited(const Window& window) {
  return window.left < 0 && window.right < 0;
}

std::int64_t narrower(std::int64_t a, std::int64_t b) {
  if (a < 0) return b;
  return b < 0 ? a : std::min(a, b);
}

bool lengths_agree(const Problem& problem) {
  for (std::int64_t b = 0; b < problem.batch; ++b)
    if (problem.len_q(b) != problem.len_kv(b)) return false;
  return true;
}

}  // namespace

Window window_of(const Problem& problem) {
  const bool same_either_way = lengths_agree(problem);
  Window all = {ATTNGUARD_WINDOW_BOTTOM_RIGHT, -1, -1};
  for (const MaskTerm& term : problem.mask.terms()) {
    Window window = window_of(term);
    if (window.alignment == ATTNGUARD_WINDOW_NONE) return kNoWindow;
    if (unlimited(window)) continue;
    if (same_either_way) window.alignment = ATTNGUARD_WINDOW_BOTTOM_RIGHT;
    if (!unlimited(all) && all.alignment != window.alignment) return kNoWindow;
    all = {window.alignment, narrower(all.left, window.left),
           narrower(all.right, window.right)};
  }
  return all;
}

}  // namespace attnguard::plugin
