// What a comparison of oracles found, as tables and as data.
#ifndef ATTNGUARD_BENCH_ORACLES_COMPARISON_REPORT_H_
#define ATTNGUARD_BENCH_ORACLES_COMPARISON_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/oracles/oracle.h"
#include "guard/defect/defect.h"

namespace attnguard {

// One engine on one problem, before every oracle.
struct ComparedCase {
  std::string engine;
  std::string problem;
  const Defect* defect = nullptr;     // absent: a correct engine
  std::vector<Judgement> judgements;  // one per oracle

  bool faulty() const { return defect != nullptr && !defect->legal(); }
  bool legal() const { return defect != nullptr && defect->legal(); }
};

// One kind of local fault, tried in several places.
struct LocalFaultResult {
  std::string fault;   // "one extra key"
  std::string spread;  // "in one row of one head"
  std::string dtype;
  std::int64_t places = 0;
  std::vector<std::int64_t> detected;  // one per oracle
};

struct Comparison {
  std::uint64_t seed = 1;
  std::string local_fault_problem;  // without its dtype
  std::vector<const Oracle*> oracles;
  std::vector<double> oracle_seconds;  // of each, calls and references
  std::vector<ComparedCase> cases;
  std::vector<LocalFaultResult> local_faults;
  double seconds = 0;
};

// What one oracle did.
struct OracleTotals {
  std::int64_t defects = 0, defects_detected = 0;  // on one problem at least
  std::int64_t faulty = 0, faulty_detected = 0;    // defects x problems
  std::int64_t legal = 0, legal_alarms = 0;
  std::int64_t correct = 0, correct_alarms = 0;
  std::int64_t places = 0, places_detected = 0;  // of local faults
  std::int64_t calls = 0;                        // engine calls of the cases
  std::int64_t cases() const { return faulty + legal + correct; }

  std::int64_t missed() const {
    return faulty - faulty_detected + places - places_detected;
  }
  std::int64_t false_alarms() const { return legal_alarms + correct_alarms; }
};

OracleTotals totals_of(const Comparison& comparison, std::size_t oracle);

std::string comparison_markdown(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_COMPARISON_REPORT_H_
