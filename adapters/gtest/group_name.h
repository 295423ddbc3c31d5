// Names and texts of the GoogleTest adapter.
#ifndef ATTNGUARD_ADAPTERS_GTEST_GROUP_NAME_H_
#define ATTNGUARD_ADAPTERS_GTEST_GROUP_NAME_H_

#include <string>

#include "guard/finding/result.h"
#include "guard/problem/problem.h"

namespace attnguard {

// The problem in letters, digits and '_': what filters, file names and XML
// take as it is. Two problems may share one.
std::string group_name(const Problem& problem);

// The text report, without its title.
std::string render_test_report(const RunResult& run);

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_GTEST_GROUP_NAME_H_
