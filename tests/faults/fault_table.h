// The faults, one per file in this folder. fault_table.cc lists them.
#ifndef ATTNGUARD_TESTS_FAULTS_FAULT_TABLE_H_
#define ATTNGUARD_TESTS_FAULTS_FAULT_TABLE_H_

#include "tests/faults/fault.h"

namespace attnguard {

extern const Fault kFaultValueLimitOfPreviousCall;
extern const Fault kFaultLongestLengthSoFar;
extern const Fault kFaultCacheEntryReusedFromThirdCall;
extern const Fault kFaultThirdIdenticalRequest;
extern const Fault kFaultOutputRowOfPreviousCall;
extern const Fault kFaultOutputNotSavedInWindowedDecode;
extern const Fault kFaultMaskedRowsNotWritten;
extern const Fault kFaultTailTileRowsNotWritten;
extern const Fault kFaultLastChannelsNotWritten;
extern const Fault kFaultOutputOfPreviousCall;
extern const Fault kFaultKeysOfPreviousCall;
extern const Fault kFaultKeyLimitOfFirstCall;
extern const Fault kFaultValueLimitOfFirstCall;
extern const Fault kFaultFirstCallWithoutScale;
extern const Fault kFaultDenominatorNotCleared;
extern const Fault kFaultWorkspaceUninitialised;
extern const Fault kFaultMergeReadsPreviousLogSum;
extern const Fault kFaultSplitPartialLost;
extern const Fault kFaultSplitPartialLostInSixthCall;
extern const Fault kFaultSummationOrderVaries;
extern const Fault kFaultRowUpdateLost;
extern const Fault kFaultWritesPastTheEnd;
extern const Fault kFaultWritesBeforeTheStart;
extern const Fault kFaultWritesBetweenRows;
extern const Fault kFaultScalesQueryInPlace;
extern const Fault kFaultAppendsKeyToFirstEntry;
extern const Fault kFaultDequantisesValueInPlace;
extern const Fault kFaultReadsPastTheKeys;

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_FAULTS_FAULT_TABLE_H_
