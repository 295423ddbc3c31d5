// The mask kinds, one per file in this folder. mask_table.cc lists them.
#ifndef ATTNGUARD_GUARD_PROBLEM_MASK_MASK_TABLE_H_
#define ATTNGUARD_GUARD_PROBLEM_MASK_MASK_TABLE_H_

#include "guard/problem/mask/mask.h"

namespace attnguard {

extern const MaskKind kMaskFull;
extern const MaskKind kMaskCausalTopLeft;
extern const MaskKind kMaskCausalBottomRight;
extern const MaskKind kMaskSlidingWindow;
extern const MaskKind kMaskSlidingWindowTopLeft;
extern const MaskKind kMaskPrefixLm;
extern const MaskKind kMaskSlidingWindowKeys;
extern const MaskKind kMaskSlidingWindowTwoSided;
extern const MaskKind kMaskWindowSymmetric;
extern const MaskKind kMaskEncoderWindow;
extern const MaskKind kMaskBidirectionalSpans;
extern const MaskKind kMaskChunkedLocal;
extern const MaskKind kMaskChunkedLocalFromPadding;
extern const MaskKind kMaskDocuments;
extern const MaskKind kMaskLeftPadding;
extern const MaskKind kMaskLeftPaddingKeys;
extern const MaskKind kMaskTree;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_MASK_MASK_TABLE_H_
