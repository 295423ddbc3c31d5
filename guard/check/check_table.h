// The checks, one per file in this folder. check_table.cc lists them.
#ifndef ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_
#define ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_

#include "guard/check/check.h"

namespace attnguard {

extern const CheckInfo kFutureInfluence;
extern const CheckInfo kVisibility;
extern const CheckInfo kRowSum;
extern const CheckInfo kReference;
extern const CheckInfo kFinite;
extern const CheckInfo kMemory;
extern const CheckInfo kRepeatable;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_CHECK_TABLE_H_
