// Each fault of a whole model is found by the checks that are there for it; a
// correct model passes all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "guard/model/model_check.h"
#include "guard/model/verify_model.h"
#include "tests/model/toy_model.h"
#include "tests/support/model_results.h"

namespace attnguard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const CheckResult& check_of(const ModelResult& result, std::string_view id) {
  for (const CheckResult& check : result.checks)
    if (check.check == id) return check;
  static const CheckResult none;
  ADD_FAILURE() << "no result of " << id;
  return none;
}

TEST(ModelChecks, PassOnACorrectModel) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const std::int64_t tokens : {4, 5, 48, 129}) {
      const ModelResult result = verify_model(
          toy_model(ToyFault::kNone), {.num_tokens = tokens, .seed = seed});
      EXPECT_EQ(result.verdict, Verdict::kPass) << tokens << ' ' << seed;
      EXPECT_EQ(with_verdict(result, Verdict::kPass).size(),
                all_model_checks().size());
      ASSERT_TRUE(result.loss);
      EXPECT_EQ(result.loss->gap(), 0);
      EXPECT_EQ(result.loss->positions, tokens - 1);
      EXPECT_GT(result.loss->one_pass, 0);
      ASSERT_TRUE(result.map);
      EXPECT_EQ(result.map->cells.front().substr(0, 4), "#...");
      EXPECT_EQ(result.map->cells[3].substr(0, 4), "####");
    }
  }
}

struct Expected {
  ToyFault fault;
  std::vector<std::string> violated;  // In the order of reports.
};

TEST(ModelChecks, EachFaultIsFoundByTheChecksThatAreThereForIt) {
  const std::vector<Expected> cases = {
      {ToyFault::kSoftmaxOverQueries,
       {"model-future", "model-prefix", "model-incremental", "model-loss-gap"}},
      {ToyFault::kSeesNextToken,
       {"model-future", "model-prefix", "model-incremental", "model-loss-gap"}},
      {ToyFault::kCopiesNextToken,
       {"model-future", "model-prefix", "model-incremental", "model-loss-gap"}},
      {ToyFault::kDropsCacheToken, {"model-incremental", "model-loss-gap"}},
      {ToyFault::kPositionsStartOver, {"model-incremental", "model-loss-gap"}},
      {ToyFault::kCountsTheStep,
       {"model-prefix", "model-incremental", "model-loss-gap"}},
      {ToyFault::kSeesOtherSequence, {"model-batch"}},
      {ToyFault::kMixesBatch, {"model-batch"}},
      {ToyFault::kReadsPastItsLength, {"model-future", "model-reuse"}},
      {ToyFault::kNanBehindTheTenth, {"model-finite"}}};
  for (const Expected& expected : cases) {
    const int number = static_cast<int>(expected.fault);
    const ModelResult result = verify_model(toy_model(expected.fault));
    EXPECT_EQ(result.verdict, Verdict::kViolation) << number;
    std::vector<std::string> violated =
        with_verdict(result, Verdict::kViolation);
    // What else a fault moves is not wrong to report; what is not there is.
    for (const std::string& id : expected.violated)
      EXPECT_THAT(violated, testing::Contains(id)) << number;
    EXPECT_EQ(violated.front(), expected.violated.front()) << number;
    const CheckResult& first = check_of(result, expected.violated.front());
    EXPECT_GT(first.num_findings, 0) << number;
    ASSERT_FALSE(first.findings.empty()) << number;
    EXPECT_FALSE(first.findings.front().message.empty()) << number;
  }
}

TEST(ModelChecks, ALeakIsNamedWithTheTokenAndDrawnOnTwoTokens) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kSoftmaxOverQueries));
  const Finding& finding = check_of(result, "model-future").findings.front();
  EXPECT_EQ(finding.kind, FindingKind::kLeak);
  EXPECT_EQ(finding.query, 0);
  EXPECT_GT(finding.key, 0);
  EXPECT_EQ(finding.bound, 0);
  EXPECT_NE(finding.observed, finding.expected);
  EXPECT_THAT(finding.message, HasSubstr("the logits of token 0 move by "));
  ASSERT_TRUE(result.map);
  EXPECT_EQ(result.map->problem, "2 tokens, in one pass");
  EXPECT_THAT(result.map->cells, ElementsAre("#X", "##"));
}

TEST(ModelChecks, ADroppedCacheTokenIsDrawnTokenByToken) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kDropsCacheToken));
  EXPECT_THAT(with_verdict(result, Verdict::kViolation),
              ElementsAre("model-incremental", "model-loss-gap"));
  ASSERT_TRUE(result.map);
  EXPECT_EQ(result.map->problem, "2 tokens, token by token");
  EXPECT_THAT(result.map->cells, ElementsAre("#.", "o#"));
}

TEST(ModelChecks, TheLossGapIsWhatAModelReadsFromItsOwnFuture) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kCopiesNextToken));
  ASSERT_TRUE(result.loss);
  EXPECT_LT(result.loss->one_pass, 1);
  EXPECT_GT(result.loss->token_by_token, 3);
  EXPECT_GT(result.loss->gap(), 2);
  const Finding& finding = check_of(result, "model-loss-gap").findings.front();
  EXPECT_EQ(finding.kind, FindingKind::kLeak);
  EXPECT_THAT(finding.message,
              StartsWith("one pass over the text reads ahead"));
  EXPECT_EQ(finding.observed, result.loss->one_pass);
  EXPECT_EQ(finding.expected, result.loss->token_by_token);
}

TEST(ModelChecks, ALeakThatNothingWasTrainedToUseShowsInEachPositionsLoss) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kSoftmaxOverQueries));
  ASSERT_TRUE(result.loss);
  EXPECT_GT(result.loss->mean_difference, 100 * result.loss->bound);
  EXPECT_LT(std::abs(result.loss->gap()), result.loss->mean_difference);
}

TEST(ModelChecks, NoiseIsAFindingUnlessItIsDeclaredAndThenAllowedFor) {
  Model model = toy_model(ToyFault::kRandom);
  const ModelResult secret = verify_model(model);
  EXPECT_EQ(check_of(secret, "model-repeatable").verdict, Verdict::kViolation);
  model.deterministic = false;
  const ModelResult declared = verify_model(model);
  EXPECT_EQ(declared.verdict, Verdict::kPass);
  EXPECT_EQ(check_of(declared, "model-repeatable").verdict,
            Verdict::kNotApplicable);
  // A leak is larger than the noise.
  Model leak = toy_model(ToyFault::kSoftmaxOverQueries);
  leak.deterministic = false;
  EXPECT_EQ(check_of(verify_model(leak), "model-future").verdict,
            Verdict::kViolation);
}

TEST(ModelChecks, WithoutACacheOrASecondSequenceSomeDoNotApply) {
  Model model = toy_model(ToyFault::kNone);
  model.max_sequences = 1;
  model.incremental = false;
  const ModelResult result = verify_model(model);
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_THAT(with_verdict(result, Verdict::kNotApplicable),
              ElementsAre("model-incremental", "model-batch", "model-reuse"));
  Model leak = toy_model(ToyFault::kSeesNextToken);
  leak.incremental = false;
  EXPECT_THAT(with_verdict(verify_model(leak), Verdict::kViolation),
              ElementsAre("model-future", "model-prefix", "model-loss-gap"));
}

TEST(ModelChecks, AModelOfSingleTokensIsNotComparedWithItself) {
  Model model = toy_model(ToyFault::kNone);
  model.most_tokens_per_call = 1;
  EXPECT_THAT(with_verdict(verify_model(model), Verdict::kNotApplicable),
              ElementsAre("model-incremental", "model-loss-gap"));
}

TEST(ModelChecks, NoEvidenceIsNotAPass) {
  for (const ToyFault fault :
       {ToyFault::kIgnoresContext, ToyFault::kConstant}) {
    const ModelResult result = verify_model(toy_model(fault));
    EXPECT_EQ(result.verdict, Verdict::kInconclusive);
    EXPECT_EQ(exit_code(result.verdict), 4);
    EXPECT_THAT(with_verdict(result, Verdict::kInconclusive),
                testing::Contains("model-prefix"));
  }
  // A bound as wide as the signal sees nothing, and says so.
  const ModelResult wide =
      verify_model(toy_model(ToyFault::kNone), {.rounding = 1e7});
  EXPECT_EQ(wide.verdict, Verdict::kInconclusive);
  EXPECT_THAT(check_of(wide, "model-prefix").note, HasSubstr("would not show"));
}

TEST(ModelChecks, NothingCheckedIsInconclusive) {
  Model model = toy_model(ToyFault::kNone);
  model.max_sequences = 1;
  const ModelResult result = verify_model(model, {.checks = {"model-batch"}});
  ASSERT_EQ(result.checks.size(), 1u);
  EXPECT_EQ(result.checks[0].verdict, Verdict::kNotApplicable);
  EXPECT_EQ(exit_code(result.verdict), 4);
}

TEST(ModelChecks, AModelThatFailsIsAnEngineError) {
  const ModelResult unwritten = verify_model(toy_model(ToyFault::kSkipsALogit));
  EXPECT_EQ(unwritten.verdict, Verdict::kEngineError);
  EXPECT_THAT(unwritten.note,
              HasSubstr("did not write the logits of position 3 (vocabulary "
                        "entry 5)"));
  const ModelResult throws =
      verify_model(toy_model(ToyFault::kThrowsInSecondBatch));
  EXPECT_EQ(throws.verdict, Verdict::kEngineError);
  EXPECT_EQ(exit_code(throws.verdict), 3);
  EXPECT_EQ(check_of(throws, "model-batch").verdict, Verdict::kEngineError);
  EXPECT_THAT(check_of(throws, "model-batch").note,
              HasSubstr("no batches today"));
  EXPECT_EQ(check_of(throws, "model-future").verdict, Verdict::kPass);
}

TEST(ModelChecks, WrongDescriptionsAndOptionsSayWhatIsWrong) {
  Model model = toy_model(ToyFault::kNone);
  model.vocab_size = 0;
  EXPECT_THAT(verify_model(model).note, HasSubstr("vocab_size is 0"));
  model = toy_model(ToyFault::kNone);
  model.clear = nullptr;
  EXPECT_THAT(verify_model(model).note, HasSubstr("has no clear"));
  model = toy_model(ToyFault::kNone);
  model.decode = nullptr;
  EXPECT_EQ(verify_model(model).verdict, Verdict::kEngineError);
  const Model good = toy_model(ToyFault::kNone);
  EXPECT_THAT(verify_model(good, {.checks = {"model-futur"}}).note,
              HasSubstr("did you mean 'model-future'"));
  EXPECT_THAT(verify_model(good, {.num_tokens = 3}).note, HasSubstr("too few"));
  EXPECT_THAT(verify_model(good, {.text = {1, 2, 3, 99}}).note,
              HasSubstr("token 99"));
  EXPECT_THAT(verify_model(good, {.rounding = 0}).note,
              HasSubstr("positive factor"));
  EXPECT_THAT(verify_model(good, {.checks = {"model-futur"}}).checks,
              IsEmpty());
}

TEST(ModelChecks, AGivenTextIsReadInsteadOfARandomOne) {
  const ModelResult result =
      verify_model(toy_model(ToyFault::kNone), {.text = {5, 4, 3, 2, 1, 0}});
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_EQ(result.num_tokens, 6);
  EXPECT_FALSE(result.random_tokens);
  EXPECT_EQ(result.loss->positions, 5);
}

TEST(ModelCheckTable, IdsAreUniqueAndEveryCheckExplainsItself) {
  std::set<std::string_view> ids;
  for (const ModelCheckInfo* check : all_model_checks()) {
    EXPECT_TRUE(ids.insert(check->id).second) << check->id;
    EXPECT_THAT(check->id, StartsWith("model-"));
    EXPECT_EQ(find_model_check(check->id), check);
    EXPECT_THAT(std::string(check->explanation),
                StartsWith(std::string(check->id) + ": " +
                           std::string(check->summary) + "\n\nWhat it sees"));
  }
  EXPECT_EQ(find_model_check("nothing"), nullptr);
}

}  // namespace
}  // namespace attnguard
