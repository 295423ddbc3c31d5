#include "tests/faults/fault_table.h"

namespace attnguard {

std::span<const Fault* const> all_faults() {
  static constexpr std::array kFaults = {
      // future_leak_global_stat
      &kFaultValueLimitOfPreviousCall,

      // padding_or_unused_slot_leak
      &kFaultLongestLengthSoFar,

      // cross_sequence
      &kFaultCacheEntryReusedFromThirdCall,
      &kFaultThirdIdenticalRequest,

      // stale_or_uninit
      &kFaultOutputRowOfPreviousCall,
      &kFaultOutputNotSavedInWindowedDecode,
      &kFaultMaskedRowsNotWritten,
      &kFaultTailTileRowsNotWritten,
      &kFaultLastChannelsNotWritten,
      &kFaultOutputOfPreviousCall,
      &kFaultKeysOfPreviousCall,
      &kFaultKeyLimitOfFirstCall,
      &kFaultValueLimitOfFirstCall,
      &kFaultFirstCallWithoutScale,
      &kFaultDenominatorNotCleared,
      &kFaultWorkspaceUninitialised,
      &kFaultMergeReadsPreviousLogSum,

      // nondeterminism_race
      &kFaultSplitPartialLost,
      &kFaultSplitPartialLostInSixthCall,
      &kFaultSummationOrderVaries,
      &kFaultRowUpdateLost,

      // index_overflow_oob
      &kFaultWritesPastTheEnd,
      &kFaultWritesBeforeTheStart,
      &kFaultWritesBetweenRows,
      &kFaultScalesQueryInPlace,
      &kFaultAppendsKeyToFirstEntry,
      &kFaultDequantisesValueInPlace,
      &kFaultReadsPastTheKeys,
  };
  return kFaults;
}

}  // namespace attnguard
