// The checks, one per file in this folder. check_table.cc lists them.
#ifndef ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_
#define ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_

#include "guard/check/check.h"

namespace attnguard {

extern const CheckInfo kCheckFutureInfluence;
extern const CheckInfo kCheckAmplitude;
extern const CheckInfo kCheckSequenceIsolation;
extern const CheckInfo kCheckVisibility;
extern const CheckInfo kCheckHeadMap;
extern const CheckInfo kCheckRowSum;
extern const CheckInfo kCheckValueRange;
extern const CheckInfo kCheckReference;
extern const CheckInfo kCheckScoreShift;
extern const CheckInfo kCheckEmptyRow;
extern const CheckInfo kCheckPrefixConsistency;
extern const CheckInfo kCheckDecodeConsistency;
extern const CheckInfo kCheckBatchConsistency;
extern const CheckInfo kCheckToggle;
extern const CheckInfo kCheckUnusedSlots;
extern const CheckInfo kCheckUnusedSlotsNan;
extern const CheckInfo kCheckWeights;
extern const CheckInfo kCheckLse;
extern const CheckInfo kCheckCacheWrite;
extern const CheckInfo kCheckFinite;
extern const CheckInfo kCheckMemory;
extern const CheckInfo kCheckRepeatable;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_
