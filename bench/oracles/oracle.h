// Test oracles: ways in which people decide whether an attention kernel is
// right. All of them get the same engine on the same problem and say whether
// they would raise an alarm.
//
// Adding one: a file in this folder that defines an Oracle, and a line in
// oracle_table.h and in oracle_table.cc.
#ifndef ATTNGUARD_BENCH_ORACLES_ORACLE_H_
#define ATTNGUARD_BENCH_ORACLES_ORACLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/oracles/random_outputs.h"
#include "guard/engine/engine.h"

namespace attnguard {

enum class Opinion {
  kFine,   // Nothing wrong was seen.
  kAlarm,  // Something is wrong, or the engine failed.
  kNone,   // The oracle says nothing about this problem.
};

struct Judgement {
  Opinion opinion = Opinion::kNone;
  std::int64_t engine_calls = 0;
  std::string why;  // What was measured, or why there is no opinion.
};

// The engine under test on one problem. Random inputs follow from the seed.
struct OracleCase {
  const Engine& engine;
  const Problem& problem;
  std::uint64_t seed = 1;
  References& references;  // What correct engines give for the same inputs.
};

struct Oracle {
  std::string_view id;       // "allclose"
  std::string_view summary;  // One line: the rule, and whose it is.
  Judgement (*judge)(const OracleCase& subject);
};

std::span<const Oracle* const> all_oracles();

// nullptr when there is no such oracle.
const Oracle* find_oracle(std::string_view id);

inline Judgement alarm_if(bool wrong, std::int64_t engine_calls,
                          std::string why) {
  return {wrong ? Opinion::kAlarm : Opinion::kFine, engine_calls,
          std::move(why)};
}

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_ORACLE_H_
