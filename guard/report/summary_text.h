// A run in one line, for every report that people read.
#ifndef ATTNGUARD_GUARD_REPORT_SUMMARY_TEXT_H_
#define ATTNGUARD_GUARD_REPORT_SUMMARY_TEXT_H_

#include <string>

#include "guard/report/totals.h"

namespace attnguard {

// "8 problems: 2 violated, 1 inconclusive, 3 passed, 1 unsupported, 1
// unchecked"
std::string problem_counts(const Totals& totals);

// The same, and whatever else people have to know of a run that passed, where
// nothing else says it: "1 problem: 1 passed, 3 warnings, 1 expired
// suppression".
std::string run_counts(const Totals& totals);

// Three digits that say something: "1.25 s", "3.00 ms", "85.1 us".
std::string duration(double seconds);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_SUMMARY_TEXT_H_
