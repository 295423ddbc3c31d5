// The oracles, one per file in this folder; oracle_table.cc lists them.
#ifndef ATTNGUARD_BENCH_ORACLES_ORACLE_TABLE_H_
#define ATTNGUARD_BENCH_ORACLES_ORACLE_TABLE_H_

#include "bench/oracles/oracle.h"

namespace attnguard {

extern const Oracle kOracleAllclose;
extern const Oracle kOracleNmse;
extern const Oracle kOracleTwiceReferenceError;
extern const Oracle kOraclePerturbAndRowSum;
extern const Oracle kOracleAttnguard;

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_ORACLE_TABLE_H_
