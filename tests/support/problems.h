// Problems for tests, from their line.
#ifndef ATTNGUARD_TESTS_SUPPORT_PROBLEMS_H_
#define ATTNGUARD_TESTS_SUPPORT_PROBLEMS_H_

#include <gtest/gtest.h>

#include <string>

#include "guard/problem/problem.h"

namespace attnguard {

// Parses a problem line; fails the test and returns the default otherwise.
inline Problem problem_of(const std::string& line) {
  Result<Problem> problem = Problem::parse(line);
  EXPECT_TRUE(problem.ok()) << line << ": " << problem.status().message();
  return problem.ok() ? problem.value() : Problem{};
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_PROBLEMS_H_
