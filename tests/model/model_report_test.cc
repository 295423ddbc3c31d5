// The callback program of guard/model/README.md, as it stands there, and what
// reports say of a clean and of a leaking model.
#include "guard/report/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/model/toy_model.h"
#include "tests/support/text_file.h"

#define main callback_example
#include "tests/model/callback_example.cc"
#undef main

namespace {

attnguard::ToyFault fault = attnguard::ToyFault::kNone;

}  // namespace

void my_model(std::span<const std::int32_t> tokens, std::span<float> logits) {
  const attnguard::ModelStep step{.tokens = tokens, .logits = logits};
  EXPECT_TRUE(attnguard::toy_model(fault).decode({&step, 1}).ok());
}

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

TEST(ModelCallback, TheProgramOfThePageIsTheOneCompiledHere) {
  const std::string page =
      read_file(ATTNGUARD_TEST_DATA "/../guard/model/README.md");
  const std::string program =
      read_file(ATTNGUARD_TEST_DATA "/model/callback_example.cc");
  EXPECT_THAT(page, HasSubstr("```cpp\n" + program + "```\n"));
  EXPECT_LT(std::ranges::count(program, '\n'), 30);
}

TEST(ModelCallback, PassesACorrectModelAndCatchesALeakingOne) {
  fault = ToyFault::kNone;
  testing::internal::CaptureStdout();
  EXPECT_EQ(callback_example(), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("\npass  "));
  fault = ToyFault::kSoftmaxOverQueries;
  testing::internal::CaptureStdout();
  EXPECT_EQ(callback_example(), 1);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("row 0 is moved by key 1, and must not be"));
}

TEST(ModelTextReport, ShowsEvidenceFindingsLossesAndTheMap) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kCopiesNextToken));
  const std::string text =
      model_text_report(result, {.version = "9.9", .command_line = "do it"});
  for (const char* line :
       {"attnguard 9.9\ndo it\n", "model  toy\n", "48 random tokens, seed 1\n",
        "model-future  violation, ", " more\n",
        "loss of the text, in nats per token\n", "  read from its own future\n",
        "smallest failing case\n", "2 tokens, in one pass",
        "row 0 is moved by key 1",
        "violation  8 checks: 4 violated, 4 passed; "})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(model_text_report(result, {.color = true}), HasSubstr("\x1b["));
}

TEST(ModelTextReport, NamesWithControlCharactersDoNotReachTheTerminal) {
  Model model = toy_model(ToyFault::kNone);
  model.name = "evil\x1b[2J";
  const std::string text = model_text_report(verify_model(model), {});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("evil\\x1b[2J"));
}

TEST(ModelJsonReport, HoldsWhatTheTextSays) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kCopiesNextToken));
  const Json report = Json::parse(model_json_report(result, {}));
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["exit_code"], 1);
  EXPECT_EQ(report["tokens"], 48);
  EXPECT_EQ(report["loss"]["positions"], 47);
  EXPECT_DOUBLE_EQ(report["loss"]["gap"].get<double>(), result.loss->gap());
  EXPECT_EQ(report["influence_map"]["cells"], Json({"#X", "##"}));
  ASSERT_EQ(report["checks"].size(), 8u);
  EXPECT_EQ(report["checks"][0]["check"], "model-future");
  EXPECT_EQ(report["checks"][0]["findings"][0]["token"], 0);
  EXPECT_EQ(report["checks"][0]["findings"][0]["kind"], "leak");
}

TEST(ModelJsonReport, WithoutResultsTheFieldsAreNull) {
  const ModelResult result = verify_model(toy_model(ToyFault::kSkipsALogit));
  const Json report = Json::parse(model_json_report(result, {}));
  EXPECT_EQ(report["verdict"], "engine_error");
  EXPECT_TRUE(report["loss"].is_null());
  EXPECT_TRUE(report["influence_map"].is_null());
  EXPECT_TRUE(report["checks"].empty());
}

TEST(ModelRunResult, EveryReportFormatTakesIt) {
  const RunResult run =
      as_run_result(verify_model(toy_model(ToyFault::kSoftmaxOverQueries)));
  EXPECT_EQ(run.verdict, Verdict::kViolation);
  for (const ReportFormat* format : all_report_formats())
    EXPECT_THAT(format->render({&run, 1}, {}), HasSubstr("model-future"))
        << format->name;
}

}  // namespace
}  // namespace attnguard
