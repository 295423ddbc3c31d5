#include "guard/problem/mask/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "tests/problem/mask_cases.h"

namespace attnguard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Mask, AllowsExactlyTheKeysOfItsDefinition) {
  KeyRanges keys;
  for (const MaskCase& mask_case : all_mask_cases()) {
    const Result<Mask> mask = Mask::parse(mask_case.text);
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    for_each_small_row([&](const RowPlace& row) {
      mask.value().allowed(row, keys);
      std::int64_t count = 0;
      for (std::int64_t k = -1; k <= row.seq_len_kv; ++k) {
        const bool wanted =
            k >= 0 && k < row.seq_len_kv && mask_case.allowed(row, k);
        ASSERT_EQ(keys.contains(k), wanted)
            << mask_case.text << " batch " << row.batch << " q " << row.q_index
            << " of " << row.seq_len_q << " k " << k << " of "
            << row.seq_len_kv;
        count += wanted;
      }
      ASSERT_EQ(keys.count(), count);
    });
  }
}

TEST(Mask, CasesCoverEveryKind) {
  std::set<std::string_view> seen, known;
  for (const MaskCase& mask_case : all_mask_cases()) {
    const Mask mask = Mask::parse(mask_case.text).value();
    for (const MaskTerm& term : mask.terms()) seen.insert(term.kind->name);
  }
  for (const MaskKind* kind : all_mask_kinds()) known.insert(kind->name);
  EXPECT_EQ(seen, known);
}

TEST(Mask, PrintsTheTextItWasParsedFrom) {
  for (const MaskCase& mask_case : all_mask_cases()) {
    const Mask mask = Mask::parse(mask_case.text).value();
    EXPECT_EQ(mask.text(), mask_case.text);
    EXPECT_EQ(Mask::parse(mask.text()).value(), mask);
  }
  EXPECT_EQ(Mask().text(), "full");
  EXPECT_EQ(Mask(), Mask::parse("full").value());
}

TEST(Mask, TakesBlanksAndParametersInAnyOrder) {
  const Result<Mask> mask =
      Mask::parse(" causal_top_left + sliding_window( right = 0 , left = 3 ) ");
  ASSERT_TRUE(mask.ok()) << mask.status().message();
  EXPECT_EQ(mask.value().text(),
            "causal_top_left+sliding_window(left=3,right=0)");
  EXPECT_TRUE(mask.value().has("causal_top_left"));
  EXPECT_FALSE(mask.value().has("full"));
}

TEST(Mask, SaysWhatIsWrongWithAText) {
  const std::pair<const char*, ::testing::Matcher<std::string>> cases[] = {
      {"", HasSubstr("unknown mask ''")},
      {"causal", HasSubstr("unknown mask 'causal'")},
      {"casual_top_left", HasSubstr("did you mean 'causal_top_left'?")},
      {"FULL", HasSubstr("unknown mask 'FULL'")},
      {"full+", HasSubstr("unknown mask ''")},
      {"full(x=1)", HasSubstr("takes no parameters, got 'x=1'")},
      {"prefix_lm",
       AllOf(HasSubstr("needs prefix=N"), HasSubstr("number of leading keys"))},
      {"prefix_lm(prefix=-1)", HasSubstr("integer N >= 0")},
      {"prefix_lm(prefix)", HasSubstr("needs prefix=N")},
      {"prefix_lm(prefix=two)", HasSubstr("'prefix=two'")},
      {"prefix_lm(prefix=1,prefix=1)", HasSubstr("given twice")},
      {"prefix_lm(prefx=1)", HasSubstr("did you mean 'prefix'?")},
      {"prefix_lm(prefix=1", HasSubstr("expected ')'")},
      {"sliding_window(left=1)", HasSubstr("needs right=N")},
      {"sliding_window(left=-2,right=0)", HasSubstr("integer N >= -1")},
      {"causal_top_left+causal_bottom_right", HasSubstr("cannot be combined")},
      {"causal_top_left+prefix_lm(prefix=2)", HasSubstr("cannot be combined")},
      {"full+full", HasSubstr("cannot be combined")},
      {"sliding_window(left=1,right=0)+sliding_window_top_left(left=1,right=0)",
       HasSubstr("cannot be combined")},
  };
  for (const auto& [text, message] : cases) {
    const Result<Mask> mask = Mask::parse(text);
    ASSERT_FALSE(mask.ok()) << text;
    EXPECT_EQ(mask.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(mask.status().message(), message) << text;
  }
}

TEST(MaskKinds, AreFoundByNameOnly) {
  for (const MaskKind* kind : all_mask_kinds()) {
    EXPECT_EQ(find_mask_kind(kind->name), kind);
    EXPECT_FALSE(kind->summary.empty());
    EXPECT_FALSE(kind->exclusive_group.empty());
  }
  EXPECT_EQ(find_mask_kind("causal"), nullptr);
}

}  // namespace
}  // namespace attnguard
