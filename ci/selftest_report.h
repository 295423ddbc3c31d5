// The self-test's result as a text: functions of the finished result alone.
#ifndef ATTNGUARD_CI_SELFTEST_REPORT_H_
#define ATTNGUARD_CI_SELFTEST_REPORT_H_

#include <string>

#include "guard/diagnosis/selftest.h"

namespace attnguard {

// For people: the detection matrix (a row per defect, a column per check, the
// rank of the right cause), totals, and "pass" or "violation" as the last line.
std::string selftest_text(const SelftestResult& result);

// For programs; schema_version 1, see json_report.cc for what that promises.
std::string selftest_json(const SelftestResult& result);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_SELFTEST_REPORT_H_
