// Lists in masks, and what the masks that know of a problem's lengths refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "guard/diagnosis/shrink.h"
#include "guard/problem/mask/mask.h"
#include "guard/problem/problem.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MaskList, TakesBlanksAndPrintsNone) {
  EXPECT_EQ(Mask::parse(" documents( lengths = 5 : 3: 8 ) ").value().text(),
            "documents(lengths=5:3:8)");
  EXPECT_EQ(
      Mask::parse("bidirectional_spans(length=1:2,begin=3:9)").value().text(),
      "bidirectional_spans(begin=3:9,length=1:2)");
}

TEST(MaskList, IsPartOfWhatMakesTwoMasksEqual) {
  const auto mask = [](const char* text) { return Mask::parse(text).value(); };
  EXPECT_EQ(mask("tree(parents=-1:0)"), mask("tree(parents=-1:0)"));
  EXPECT_NE(mask("tree(parents=-1:0)"), mask("tree(parents=-1:-1)"));
  EXPECT_NE(mask("tree(parents=-1)"), mask("tree(parents=-1:-1)"));
}

TEST(MaskList, SaysWhatIsWrongWithAText) {
  const std::pair<const char*, ::testing::Matcher<std::string>> cases[] = {
      {"documents", AllOf(HasSubstr("needs lengths=N:N:..."),
                          HasSubstr("tokens of each document"))},
      {"documents(lengths=)", HasSubstr("'lengths=' needs lengths=N:N:...")},
      {"documents(lengths=5:)", HasSubstr("with integers N >= 0")},
      {"documents(lengths=5::3)", HasSubstr("with integers N >= 0")},
      {"documents(lengths=5:-1)", HasSubstr("with integers N >= 0")},
      {"documents(lengths=5,3)", HasSubstr("has no parameter '3'")},
      {"documents(lengths=1099511627777)", HasSubstr("at most 2^40")},
      {"prefix_lm(prefix=1:2)", HasSubstr("an integer N >= 0")},
      {"chunked_local(chunk=0)", HasSubstr("an integer N >= 1")},
      {"chunked_local_from_padding(chunk=4)", HasSubstr("needs pad=N:N:...")},
      {"left_padding(pad=-1)", HasSubstr("integers N >= 0")},
      {"sliding_window_keys(keys=0)", HasSubstr("an integer N >= 1")},
      {"sliding_window_two_sided(width=-1)", HasSubstr("an integer N >= 0")},
      {"encoder_window(width=0)", HasSubstr("an integer N >= 1")},
      {"window_symmetric(keys=4)", HasSubstr("has no parameter 'keys'")},
      {"tree(parents=-2)", HasSubstr("integers N >= -1")},
      {"tree(parents=0)",
       HasSubstr("mask tree: parents: token 0 has parent 0, and a parent comes "
                 "before its child: give an index below 0, or -1")},
      {"tree(parents=-1:0:2)", HasSubstr("token 2 has parent 2")},
      {"tree(parents=-1:7)", HasSubstr("token 1 has parent 7")},
      {"bidirectional_spans(begin=1:5,length=2)",
       HasSubstr("begin has 2 numbers and length 1; give one of each")},
      {"bidirectional_spans(begin=1:2,length=2:1)",
       HasSubstr("a span begins at 2, before the one at 1 ends")},
      {"bidirectional_spans(begin=4:2,length=1:1)",
       HasSubstr("a span begins at 2, before the one at 4 ends")},
      {"causal_bottom_right+tree(parents=-1)", HasSubstr("cannot be combined")},
      {"sliding_window_keys(keys=2)+encoder_window(width=2)",
       HasSubstr("cannot be combined")},
      {"left_padding(pad=1)+left_padding_keys(pad=1)",
       HasSubstr("cannot be combined")},
  };
  for (const auto& [text, message] : cases) {
    const Result<Mask> mask = Mask::parse(text);
    ASSERT_FALSE(mask.ok()) << text;
    EXPECT_EQ(mask.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(mask.status().message(), message) << text;
  }
}

TEST(MaskAndProblem, FitWhenTheListsReachTheLengthsButNotBeyond) {
  for (const char* line :
       {"seq_len=16 mask=documents(lengths=5:3:8)",
        "seq_len=17 mask=documents(lengths=5:3:8)",
        "seq_len=0 mask=documents(lengths=0)",
        "batch=3 seq_len=5 mask=left_padding(pad=3:0:5)",
        "batch=3 seq_len=5 mask=left_padding_keys(pad=5)",
        "batch=2 seq_len=5,7 mask=left_padding(pad=5:7)",
        "batch=2 seq_len=9 mask=chunked_local_from_padding(chunk=4,pad=0:9)",
        "seq_len_q=4 seq_len_kv=4 mask=tree(parents=-1:0:0:1)",
        "seq_len_q=1 seq_len_kv=9 mask=tree(parents=-1:0:0:1)",
        "seq_len=8 mask=bidirectional_spans(begin=0:5,length=5:3)"})
    EXPECT_EQ(problem_of(line).mask.validate(problem_of(line)).message(), "")
        << line;
}

TEST(MaskAndProblem, SaysWhatDoesNotFit) {
  const std::pair<const char*, const char*> cases[] = {
      {"seq_len=15 mask=documents(lengths=5:3:8)",
       "problem: mask documents: lengths sum to more than seq_len_kv=15 of "
       "batch entry 0; shorten them or raise seq_len_kv"},
      {"batch=2 seq_len=16,4 mask=documents(lengths=5:3:8)", "batch entry 1"},
      {"batch=2 seq_len=5 mask=left_padding(pad=3:0:5)",
       "mask left_padding: pad has 3 numbers for batch=2: give one for all, or "
       "one per batch entry"},
      {"batch=3 seq_len=4 mask=left_padding(pad=3:0:5)",
       "pad=5 is more than seq_len_kv=4 of batch entry 2; lower pad or raise "
       "seq_len_kv"},
      {"seq_len=4 mask=left_padding_keys(pad=5)", "pad=5 is more than"},
      {"seq_len=4 mask=chunked_local_from_padding(chunk=2,pad=5)",
       "mask chunked_local_from_padding: pad=5 is more than"},
      {"seq_len=3 mask=tree(parents=-1:0:0:1)",
       "mask tree: parents has 4 tokens, more than seq_len_kv=3"},
      {"seq_len=7 mask=bidirectional_spans(begin=0:5,length=5:3)",
       "mask bidirectional_spans: the last span ends at 8, beyond "
       "seq_len_kv=7"},
      {"seq_len=7 mask=causal_bottom_right+documents(lengths=8)",
       "mask documents: lengths sum"},
  };
  for (const auto& [line, message] : cases) {
    const Result<Problem> problem = Problem::parse(line);
    ASSERT_FALSE(problem.ok()) << line;
    EXPECT_EQ(problem.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(problem.status().message(), HasSubstr(message)) << line;
  }
}

// A batch of any size is judged by the entries that differ.
TEST(MaskAndProblem, AreComparedAtOnceWhateverTheBatch) {
  for (const char* mask :
       {"documents(lengths=0)", "left_padding(pad=0)",
        "bidirectional_spans(begin=0,length=0)", "left_padding_keys(pad=0)",
        "chunked_local_from_padding(chunk=1,pad=0)"})
    EXPECT_TRUE(Problem::parse("batch=9000000000 seq_len=0 head_dim=1 mask=" +
                               std::string(mask))
                    .ok())
        << mask;
}

TEST(MaskAndProblem, ShrinkTogether) {
  const std::pair<const char*, const char*> cases[] = {
      {"seq_len=40 mask=documents(lengths=3:0:20:17)",
       "documents(lengths=3:0:2)"},
      {"seq_len=40 mask=documents(lengths=40)", "documents(lengths=5)"},
      {"seq_len=40 mask=documents(lengths=2:2)", "documents(lengths=2:2)"},
      {"batch=3 seq_len=40 mask=left_padding(pad=3:0:30)",
       "left_padding(pad=3)"},
      {"batch=3 seq_len=40 mask=left_padding_keys(pad=30:0:3)",
       "left_padding_keys(pad=4)"},
      {"batch=3 seq_len=40 mask=chunked_local_from_padding(chunk=8,pad=9)",
       "chunked_local_from_padding(chunk=8,pad=4)"},
      {"seq_len=40 mask=tree(parents=-1:0:0:1:-1:4:5)",
       "tree(parents=-1:0:0:1:-1)"},
      {"seq_len=40 mask=bidirectional_spans(begin=1:9,length=8:3)",
       "bidirectional_spans(begin=1,length=4)"},
      {"seq_len=40 mask=bidirectional_spans(begin=9,length=3)",
       "bidirectional_spans(begin=5,length=0)"},
  };
  for (const auto& [line, mask] : cases) {
    const auto candidates = shrink_candidates(problem_of(line));
    ASSERT_FALSE(candidates.empty()) << line;
    EXPECT_EQ(candidates.front().mask.text(), mask) << line;
    EXPECT_EQ(candidates.front().len_kv(0), 5) << line;
    for (const Problem& candidate : candidates)
      EXPECT_TRUE(candidate.validate().ok()) << candidate.text();
  }
}

// The empty row is the padded query's, not the decoded token's.
TEST(LeftPadding, HidesThePaddingFromADecodedToken) {
  const Problem problem = problem_of(
      "batch=2 seq_len_q=1 seq_len_kv=6 "
      "mask=causal_bottom_right+left_padding(pad=2:6)");
  KeyRanges keys;
  problem.mask.allowed(problem.row(0, 0), keys);
  EXPECT_EQ(keys.ranges(), (std::vector<KeyRange>{{2, 6}}));
  problem.mask.allowed(problem.row(1, 0), keys);
  EXPECT_TRUE(keys.empty());
}

TEST(Tree, ShowsATokenItsAncestorsAndNotItsSiblings) {
  const Problem problem =
      problem_of("seq_len_q=5 seq_len_kv=9 mask=tree(parents=-1:0:0:2:1)");
  KeyRanges keys;
  problem.mask.allowed(problem.row(0, 3), keys);  // child of 2, child of 0
  EXPECT_EQ(keys.ranges(), (std::vector<KeyRange>{{0, 5}, {6, 8}}));
  problem.mask.allowed(problem.row(0, 4), keys);  // child of 1, child of 0
  EXPECT_EQ(keys.ranges(), (std::vector<KeyRange>{{0, 6}, {8, 9}}));
}

}  // namespace
}  // namespace attnguard
