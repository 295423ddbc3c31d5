// The checks, one per file in this folder. check_table.cc lists them.
#ifndef ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_
#define ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_

#include "guard/check/check.h"

namespace attnguard {

extern const CheckInfo kFutureInfluence;
extern const CheckInfo kAmplitude;
extern const CheckInfo kSequenceIsolation;
extern const CheckInfo kVisibility;
extern const CheckInfo kHeadMap;
extern const CheckInfo kRowSum;
extern const CheckInfo kValueRange;
extern const CheckInfo kReference;
extern const CheckInfo kScoreShift;
extern const CheckInfo kEmptyRow;
extern const CheckInfo kPrefixConsistency;
extern const CheckInfo kDecodeConsistency;
extern const CheckInfo kBatchConsistency;
extern const CheckInfo kToggle;
extern const CheckInfo kUnusedSlots;
extern const CheckInfo kUnusedSlotsNan;
extern const CheckInfo kWeights;
extern const CheckInfo kLse;
extern const CheckInfo kCacheWrite;
extern const CheckInfo kFinite;
extern const CheckInfo kMemory;
extern const CheckInfo kRepeatable;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_
