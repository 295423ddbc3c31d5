#include <gtest/gtest.h>

#include "callback.h"
#include "guard/report/report.h"

TEST(MyAttention, PassesThePolicy) {
  const attnguard::RunResult result =
      attnguard::verify(my_engine(), attnguard::default_policy());
  EXPECT_EQ(result.verdict, attnguard::Verdict::kPass)
      << attnguard::find_report_format("text")->render({&result, 1}, {});
}

TEST(MyAttention, SeesNoFutureInOneProblem) {
  const attnguard::Engine engine = my_engine();
  const attnguard::Result<attnguard::Problem> problem =
      attnguard::Problem::parse(
          "num_heads=4 num_kv_heads=2 seq_len=65 "
          "head_dim=32 mask=causal_bottom_right");
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  const attnguard::ProblemResult result = attnguard::verify_problem(
      engine, problem.value(),
      attnguard::default_policy().resolve(engine.name));
  EXPECT_EQ(result.verdict, attnguard::Verdict::kPass) << result.note;
}
