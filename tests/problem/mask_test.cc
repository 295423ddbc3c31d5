#include "guard/problem/mask/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace attnguard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The definition of each mask, key by key. `diagonal` is the key that is the
// query's own token: q with first tokens aligned, q + kv - q with last ones.
using Allowed = std::function<bool(std::int64_t q, std::int64_t k,
                                   std::int64_t len_q, std::int64_t len_kv)>;

struct MaskCase {
  const char* text;
  Allowed allowed;
};

std::int64_t own_key(std::int64_t q, std::int64_t len_q, std::int64_t len_kv) {
  return q + len_kv - len_q;
}

bool in_window(std::int64_t k, std::int64_t center, std::int64_t left,
               std::int64_t right) {
  return (left < 0 || k >= center - left) && (right < 0 || k <= center + right);
}

const MaskCase kCases[] = {
    {"full", [](auto, auto, auto, auto) { return true; }},
    {"causal_top_left", [](auto q, auto k, auto, auto) { return k <= q; }},
    {"causal_bottom_right",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return k <= own_key(q, len_q, len_kv);
     }},
    {"prefix_lm(prefix=3)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return k < 3 || k <= own_key(q, len_q, len_kv);
     }},
    {"prefix_lm(prefix=0)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return k <= own_key(q, len_q, len_kv);
     }},
    {"sliding_window(left=2,right=0)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return in_window(k, own_key(q, len_q, len_kv), 2, 0);
     }},
    {"sliding_window(left=0,right=2)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return in_window(k, own_key(q, len_q, len_kv), 0, 2);
     }},
    {"sliding_window(left=-1,right=1)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return in_window(k, own_key(q, len_q, len_kv), -1, 1);
     }},
    {"sliding_window(left=1,right=-1)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       return in_window(k, own_key(q, len_q, len_kv), 1, -1);
     }},
    {"sliding_window_top_left(left=1,right=1)",
     [](auto q, auto k, auto, auto) { return in_window(k, q, 1, 1); }},
    {"sliding_window_top_left(left=-1,right=-1)",
     [](auto, auto, auto, auto) { return true; }},
    {"causal_top_left+sliding_window_top_left(left=2,right=5)",
     [](auto q, auto k, auto, auto) { return k <= q && k >= q - 2; }},
    {"prefix_lm(prefix=4)+sliding_window(left=1,right=0)",
     [](auto q, auto k, auto len_q, auto len_kv) {
       const auto own = own_key(q, len_q, len_kv);
       return (k < 4 || k <= own) && in_window(k, own, 1, 0);
     }},
};

TEST(Mask, AllowsExactlyTheKeysOfItsDefinition) {
  KeyRanges keys;
  for (const MaskCase& mask_case : kCases) {
    const Result<Mask> mask = Mask::parse(mask_case.text);
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    for (std::int64_t len_q = 0; len_q <= 7; ++len_q)
      for (std::int64_t len_kv = 0; len_kv <= 7; ++len_kv)
        for (std::int64_t q = 0; q < len_q; ++q) {
          mask.value().allowed({0, q, len_q, len_kv}, keys);
          std::int64_t count = 0;
          for (std::int64_t k = -1; k <= len_kv; ++k) {
            const bool wanted =
                k >= 0 && k < len_kv && mask_case.allowed(q, k, len_q, len_kv);
            ASSERT_EQ(keys.contains(k), wanted)
                << mask_case.text << " q " << q << " of " << len_q << " k " << k
                << " of " << len_kv;
            count += wanted;
          }
          ASSERT_EQ(keys.count(), count);
        }
  }
}

TEST(Mask, CasesHereCoverEveryKind) {
  std::set<std::string_view> seen, known;
  for (const MaskCase& mask_case : kCases) {
    const Mask mask = Mask::parse(mask_case.text).value();
    for (const MaskTerm& term : mask.terms()) seen.insert(term.kind->name);
  }
  for (const MaskKind* kind : all_mask_kinds()) known.insert(kind->name);
  EXPECT_EQ(seen, known);
}

TEST(Mask, PrintsTheTextItWasParsedFrom) {
  for (const MaskCase& mask_case : kCases) {
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
