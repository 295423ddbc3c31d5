// The totals and tables of a comparison made by hand.
#include "bench/oracles/comparison_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attnguard {
namespace {

using testing::HasSubstr;

constexpr Judgement (*kNoJudge)(const OracleCase&) =
    [](const OracleCase&) -> Judgement { return {}; };
const Oracle kSharp = {.id = "sharp", .summary = "sees all", .judge = kNoJudge};
const Oracle kDull = {.id = "dull", .summary = "sees none", .judge = kNoJudge};

const Defect kLeak = {
    .id = "leak", .summary = "", .cls = DefectClass::kFutureLeakDirect};
const Defect kDrop = {
    .id = "drop", .summary = "", .cls = DefectClass::kPastDropped};
const Defect kLegal = {
    .id = "legal-one", .summary = "", .cls = DefectClass::kNumericsNotBug};

Judgement says(Opinion opinion, std::int64_t calls) {
  return {opinion, calls, "because"};
}

Comparison by_hand() {
  constexpr Opinion kFine = Opinion::kFine, kAlarm = Opinion::kAlarm,
                    kNone = Opinion::kNone;
  Comparison comparison;
  comparison.seed = 7;
  comparison.local_fault_problem = "seq_len=8";
  comparison.oracles = {&kSharp, &kDull};
  comparison.oracle_seconds = {2.5, 0.25};
  comparison.cases = {
      {"defect:leak", "p1", &kLeak, {says(kAlarm, 3), says(kFine, 1)}},
      {"defect:leak", "p2", &kLeak, {says(kAlarm, 3), says(kAlarm, 1)}},
      {"defect:drop", "p1", &kDrop, {says(kAlarm, 3), says(kNone, 1)}},
      {"defect:legal-one", "p1", &kLegal, {says(kFine, 3), says(kAlarm, 1)}},
      {"right", "p1", nullptr, {says(kFine, 3), says(kAlarm, 1)}},
      {"right", "p2", nullptr, {says(kFine, 3), says(kFine, 1)}},
  };
  comparison.local_faults = {
      {"one extra key", "in one row", "fp16", 20, {20, 3}},
      {"one extra key", "in every row", "fp16", 20, {20, 20}}};
  return comparison;
}

TEST(ComparisonReport, CountsDefectsOnceAndAlarmsByKind) {
  const Comparison comparison = by_hand();
  const OracleTotals sharp = totals_of(comparison, 0);
  EXPECT_EQ(sharp.missed(), 0);
  EXPECT_EQ(sharp.false_alarms(), 0);
  EXPECT_EQ(sharp.calls, 18);
  const OracleTotals dull = totals_of(comparison, 1);
  EXPECT_EQ(dull.defects, 2);
  EXPECT_EQ(dull.defects_detected, 1);
  EXPECT_EQ(dull.faulty, 3);
  EXPECT_EQ(dull.faulty_detected, 1);
  EXPECT_EQ(dull.legal, 1);
  EXPECT_EQ(dull.legal_alarms, 1);
  EXPECT_EQ(dull.correct, 2);
  EXPECT_EQ(dull.correct_alarms, 1);
  EXPECT_EQ(dull.places, 40);
  EXPECT_EQ(dull.places_detected, 23);
  EXPECT_EQ(dull.missed(), 2 + 17);
  EXPECT_EQ(dull.false_alarms(), 2);
}

TEST(ComparisonReport, PrintsTheTotalsAndWhatGoesUnseen) {
  const std::string text = comparison_markdown(by_hand());
  EXPECT_THAT(text, HasSubstr("seed 7"));
  EXPECT_THAT(text, HasSubstr("| sharp | 2 / 2 | 3 / 3 | 0 / 1 | 0 / 2 | "
                              "40 / 40 | 3.0 | 2.5 |"));
  EXPECT_THAT(text, HasSubstr("| dull | 1 / 2 | 1 / 3 | 1 / 1 | 1 / 2 | "
                              "23 / 40 | 1.0 | 0.2 |"));
  EXPECT_THAT(text, HasSubstr("| future_leak_direct | 1 | 1 | 1 |"));
  EXPECT_THAT(text, HasSubstr("| past_dropped | 1 | 1 | 0 |"));
  EXPECT_THAT(text, HasSubstr("- sharp: none\n"));
  EXPECT_THAT(text, HasSubstr("- dull: drop\n"));
  EXPECT_THAT(text, HasSubstr("| right | 2 | 0 | 1 |"));
  EXPECT_THAT(text, HasSubstr("Each in 20 random places of `seq_len=8`"));
  EXPECT_THAT(text, HasSubstr("| one extra key | in one row | fp16 | 20 / 20 | "
                              "3 / 20 |"));
}

TEST(ComparisonReport, WritesTheSameAsData) {
  const auto json = nlohmann::json::parse(comparison_json(by_hand()));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["oracles"][1]["id"], "dull");
  EXPECT_EQ(json["oracles"][1]["defects_detected"], 1);
  ASSERT_EQ(json["cases"].size(), 6u);
  EXPECT_EQ(json["cases"][0]["kind"], "defect");
  EXPECT_EQ(json["cases"][0]["class"], "future_leak_direct");
  EXPECT_EQ(json["cases"][2]["oracles"]["dull"]["opinion"], "none");
  EXPECT_EQ(json["cases"][3]["kind"], "legal");
  EXPECT_EQ(json["cases"][4]["kind"], "correct");
  EXPECT_TRUE(json["cases"][4]["class"].is_null());
  EXPECT_EQ(json["local_faults"][0]["detected"]["dull"], 3);
}

}  // namespace
}  // namespace attnguard
