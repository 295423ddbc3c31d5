// The oracles, one per file in this folder; oracle_table.cc lists them.
#ifndef ATTNGUARD_BENCH_ORACLES_ORACLE_TABLE_H_
#define ATTNGUARD_BENCH_ORACLES_ORACLE_TABLE_H_

#include "bench/oracles/oracle.h"
#include "bench/oracles/rules.h"

namespace attnguard {

extern const Oracle kOracleAllclose;
extern const Oracle kOracleAllcloseLoose;
extern const Oracle kOracleNmse;
extern const Oracle kOracleTwiceReferenceError;
extern const Oracle kOraclePerturbAndRowSum;
extern const Oracle kOracleAttnguard;

// Shared by those that compare element by element with fp64 attention.
Judgement judge_closeness(const OracleCase& subject, const Closeness& limit);

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_ORACLE_TABLE_H_
