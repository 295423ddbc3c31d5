#include "guard/defect/defect_table.h"

#include <array>
#include <string>

namespace attnguard {
namespace {

struct ClassName {
  DefectClass cls;
  std::string_view name;
};

constexpr ClassName kClassNames[] = {
    {DefectClass::kFutureLeakDirect, "future_leak_direct"},
    {DefectClass::kFutureLeakNormaliser, "future_leak_normaliser"},
    {DefectClass::kFutureLeakGlobalStat, "future_leak_global_stat"},
    {DefectClass::kFiniteMaskLeak, "finite_mask_leak"},
    {DefectClass::kPastDropped, "past_dropped"},
    {DefectClass::kWindowOffByOne, "window_off_by_one"},
    {DefectClass::kWindowIgnored, "window_ignored"},
    {DefectClass::kPaddingOrUnusedSlotLeak, "padding_or_unused_slot_leak"},
    {DefectClass::kCrossSequence, "cross_sequence"},
    {DefectClass::kStaleOrUninit, "stale_or_uninit"},
    {DefectClass::kRowSumOrMerge, "row_sum_or_merge"},
    {DefectClass::kNanInf, "nan_inf"},
    {DefectClass::kPrefillNeDecode, "prefill_ne_decode"},
    {DefectClass::kNondeterminismRace, "nondeterminism_race"},
    {DefectClass::kWrongHeadOrDim, "wrong_head_or_dim"},
    {DefectClass::kWrongScaleOrBias, "wrong_scale_or_bias"},
    {DefectClass::kMaskMisread, "mask_misread"},
    {DefectClass::kIndexOverflowOob, "index_overflow_oob"},
    {DefectClass::kContractAlignment, "contract_alignment"},
    {DefectClass::kNumericsNotBug, "numerics_not_bug"},
};

}  // namespace

std::string_view defect_class_name(DefectClass cls) {
  for (const ClassName& entry : kClassNames)
    if (entry.cls == cls) return entry.name;
  return {};
}

std::span<const DefectClass> all_defect_classes() {
  static constexpr auto kClasses = [] {
    std::array<DefectClass, std::size(kClassNames)> classes{};
    for (std::size_t i = 0; i < classes.size(); ++i)
      classes[i] = kClassNames[i].cls;
    return classes;
  }();
  return kClasses;
}

std::span<const Defect* const> all_defects() {
  static constexpr std::array kDefects = {

      // future_leak_direct
      &kDefectNoMask,
      &kDefectCausalOffByOne,
      &kDefectCausalLimitOfRowGroup,
      &kDefectCausalOffsetUnsigned,
      &kDefectTailTileUnmasked,
      &kDefectDiagonalTileUnmasked,
      &kDefectRowTileUnmasked,
      &kDefectShortSequenceUnmasked,
      &kDefectGroupedHeadsUnmasked,
      &kDefectOddHeadDimUnmasked,
      &kDefectContinuedChunkUnmasked,
      &kDefectMaskPolarityInverted,
      &kDefectLatePositionsUnmasked,
      &kDefectPrefixOneLonger,
      &kDefectWindowRightUnbounded,
      &kDefectCausalLostBesideMaskTensor,

      // future_leak_normaliser
      &kDefectSoftmaxOverQueries,
      &kDefectSoftmaxOverBatch,
      &kDefectSoftmaxOverBatchAndQueries,
      &kDefectMaskAfterSoftmax,
      &kDefectDenominatorCountsMaskedTile,

      // future_leak_global_stat
      &kDefectKeyScalePerTensor,
      &kDefectKeyScalePerBlock,
      &kDefectValueScalePerBlock,
      &kDefectTopKeysBeforeMask,

      // finite_mask_leak
      &kDefectMaskedScoreMinusTen,
      &kDefectAdditiveMaskTooSmall,
      &kDefectAdditiveMaskTenThousand,
      &kDefectMaskMultipliedIntoScores,
      &kDefectSoftcapAfterMask,
      &kDefectEmptyRowMean,
      &kDefectSentinelMinusHundred,
      &kDefectSentinelMinusTenThousand,
      &kDefectSentinelFp16Lowest,

      // past_dropped
      &kDefectLastKeyDropped,
      &kDefectFirstKeyDropped,
      &kDefectPartialLastTileDropped,
      &kDefectLastKeyOfEachTileDropped,
      &kDefectKeysBeyond2048Dropped,
      &kDefectCacheKeepsNewest64,
      &kDefectNeighboursShortenContext,
      &kDefectSelfNotVisible,
      &kDefectCachedPrefixHidden,
      &kDefectEarlierTilesLost,
      &kDefectSplitBoundaryKeyDropped,
      &kDefectCausalForced,
      &kDefectKeyLoopStopsAtCausalTile,
      &kDefectKeysCountedTwice,
      &kDefectSecondHalfOfRowsLosesKeyZero,
      &kDefectCausalBesideMaskTensor,
      &kDefectAppendOverPreviousToken,

      // window_off_by_one
      &kDefectWindowLeftOneMore,
      &kDefectWindowLeftOneLess,
      &kDefectWindowRightOneMore,

      // window_ignored
      &kDefectWindowIgnored,
      &kDefectWindowIgnoredInDecode,
      &kDefectWindowIgnoredInPrefill,
      &kDefectWindowEdgeRoundedToTile,

      // padding_or_unused_slot_leak
      &kDefectLongestLengthForAll,
      &kDefectPaddingMinusTenThousand,
      &kDefectLengthOneTooLong,
      &kDefectLengthRoundedToTile,
      &kDefectFirstLengthForAll,
      &kDefectTailLanesInDenominator,
      &kDefectLastKeyRepeatedInTail,
      &kDefectRestOfLastBlockVisible,
      &kDefectMaskedValuesTimesZero,
      &kDefectAppendAtLongestLength,

      // cross_sequence
      &kDefectNextEntryKeys,
      &kDefectFirstEntryKeysForAll,
      &kDefectFirstEntryValuesForAll,
      &kDefectMaskTensorIgnoredWhenCausal,
      &kDefectDocumentsSeeEachOther,
      &kDefectTreeBranchesSeeEachOther,
      &kDefectCuSeqlensOffByOne,
      &kDefectPackedKeysAtQueryOffsets,
      &kDefectPackedEmptySequenceCounted,
      &kDefectPackedReadAsPadded,
      &kDefectBlockTableIgnored,
      &kDefectBlockTableOneEntryLate,
      &kDefectBlockTableStrideOfLongest,
      &kDefectBlockSizeOf16Assumed,
      &kDefectAppendToFirstEntry,

      // stale_or_uninit
      &kDefectEmptyRowUnwritten,
      &kDefectSharedBlockStale,
      &kDefectAppendKeyOnly,
      &kDefectAppendClearsBlock,

      // row_sum_or_merge
      &kDefectDoubleSoftmax,
      &kDefectMergeWithoutRescaling,
      &kDefectMergeWithEqualWeights,
      &kDefectMergeInWrongBase,
      &kDefectMergeOfFourPartsAtMost,
      &kDefectDenominatorMissesLastTile,
      &kDefectOutputMissesLastTile,
      &kDefectNotNormalised,
      &kDefectAccumulatorNotRescaled,
      &kDefectSinkIgnored,
      &kDefectSinkMassOnFirstKey,
      &kDefectSinkInEveryPart,
      &kDefectSinkPublishedByEmptyPart,
      &kDefectSinkScaledLikeScores,
      &kDefectSinkNotRescaled,
      &kDefectSoftmaxOneAsPlain,
      &kDefectLseFiniteForEmptyRow,
      &kDefectLseInBaseTwo,
      &kDefectLseWithoutMax,
      &kDefectLseWithoutScale,
      &kDefectLseWithoutSink,
      &kDefectWeightsNotNormalised,
      &kDefectExponentClampedAtMinusTen,

      // nan_inf
      &kDefectNoMaxSubtraction,
      &kDefectEmptyTileIsNan,
      &kDefectMaxOfMaskedTile,
      &kDefectScoresInHalf,
      &kDefectAccumulatorInHalf,
      &kDefectEmptyRowNan,
      &kDefectEmptyRowFirstValue,
      &kDefectTwiceMaskedIsInfinite,
      &kDefectRunningMaxFromZero,
      &kDefectRunningMaxFromMinusTenThousand,
      &kDefectRowSumInBf16,

      // prefill_ne_decode
      &kDefectDecodeMissesOwnToken,
      &kDefectDecodeAlignedTopLeft,
      &kDefectDecodeWithoutScale,
      &kDefectSoftcapIgnoredInPrefill,
      &kDefectAlibiLostInDecode,
      &kDefectSinkOnlyInPrefill,
      &kDefectChunkAlignedTopLeft,
      &kDefectDecodeWindowOneShort,
      &kDefectPrefillWindowOneLonger,

      // wrong_head_or_dim
      &kDefectKvHeadByModulo,
      &kDefectValueHeadByModulo,
      &kDefectKvHeadByWrongDivisor,
      &kDefectKvHeadsReversed,
      &kDefectQueryHeadsRotated,
      &kDefectScoreChannelTailIgnored,
      &kDefectValueChannelTailReversed,
      &kDefectValueRowStrideOfKeys,
      &kDefectSinkOfKvHead,
      &kDefectBlockAxesSwapped,
      &kDefectMlaValueFromLastChannels,
      &kDefectMlaPositionalChannelsDropped,

      // wrong_scale_or_bias
      &kDefectScaleMissing,
      &kDefectScaleOfWholeDim,
      &kDefectScaleAppliedTwice,
      &kDefectScaleOfModelWidth,
      &kDefectScaleOfValueDim,
      &kDefectScaleSettingIgnored,
      &kDefectExpInBaseTwo,
      &kDefectSoftcapIgnored,
      &kDefectSoftcapBeforeScale,
      &kDefectSoftcapWithoutMultiply,
      &kDefectAlibiIgnored,
      &kDefectAlibiSignFlipped,
      &kDefectAlibiSlopeOfKvHead,
      &kDefectAlibiSlopesOfOneSequence,
      &kDefectAlibiDistanceWithoutCache,
      &kDefectAlibiBeforeSoftcap,
      &kDefectAlibiSignedDistance,

      // mask_misread
      &kDefectLaterHeadsUnmasked,
      &kDefectFirstMaskForAllEntries,
      &kDefectMaskRowOfChunk,
      &kDefectMaskTransposed,
      &kDefectMaskRowStrideOfQueries,
      &kDefectLengthsSwapped,
      &kDefectLengthMinusOneConvention,
      &kDefectMaskTensorPolarityOfBoolean,
      &kDefectMaskTensorRowLate,
      &kDefectPaddingMaskOnQueries,
      &kDefectChunksFromPaddedStart,
      &kDefectWeightsBeforeMask,

      // index_overflow_oob
      &kDefectPositionWrapsAt256,
      &kDefectValueIndexWrapsAt256,
      &kDefectValueIndexOffByOne,
      &kDefectEntryIndexWrapsAtFour,
      &kDefectPositionsInBf16,
      &kDefectValueBlockOneEntryLate,
      &kDefectAppendOneSlotLate,
      &kDefectAppendStaysInFullBlock,

      // contract_alignment
      &kDefectTopLeftForBottomRight,
      &kDefectBottomRightForTopLeft,
      &kDefectAlignmentOfLongestEntry,

      // numerics_not_bug
      &kDefectLegalMergeOfParts,
      &kDefectLegalReversedSums,
      &kDefectLegalBf16Weights,
      &kDefectLegalFp16Weights,
      &kDefectLegalBaseTwoSoftmax,
      &kDefectLegalLazyRescale,
      &kDefectLegalMaxOfPaddedTile,
      &kDefectLegalSinkMergedOnce,
      &kDefectLegalTanhInFp32,
      &kDefectLegalSumsInBlockOrder,
      &kDefectLegalTokensInInt8,
  };
  return kDefects;
}

const Defect* find_defect(std::string_view id) {
  for (const Defect* defect : all_defects())
    if (defect->id == id) return defect;
  return nullptr;
}

Engine defect_engine(const Defect& defect) {
  Engine engine = variant_engine("defect:" + std::string(defect.id),
                                 std::string(defect.summary), defect.make());
  engine.capabilities.numerics = defect.numerics;
  return engine;
}

}  // namespace attnguard
