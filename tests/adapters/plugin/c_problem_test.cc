// What a plugin is told of a problem, and that C and C++ see it alike.
#include "adapters/plugin/c_problem.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "adapters/plugin/codes.h"
#include "adapters/plugin/window.h"
#include "guard/problem/random_problem.h"
#include "tests/adapters/plugin/fixture/layout.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/support/problems.h"

namespace attnguard::plugin {
namespace {

using testing::ElementsAre;

TEST(PluginLayout, IsTheSameInCAndInCxx) {
  const std::size_t cxx[] = {ATTNGUARD_TEST_LAYOUT};
  std::size_t c[64] = {};
  ASSERT_EQ(attnguard_c_layout(c), std::size(cxx));
  for (std::size_t i = 0; i < std::size(cxx); ++i) EXPECT_EQ(c[i], cxx[i]) << i;
  EXPECT_EQ(cxx[0], 80u);
}

TEST(PluginLayout, FeatureAndDtypeBitsAreThoseOfTheGuard) {
  std::string unknown;
  EXPECT_EQ(features_of_bits(0x1ff, unknown).size(),
            all_input_features().size() + 2);
  EXPECT_EQ(dtypes_of_bits(0xf, unknown).size(), all_dtypes().size());
  EXPECT_EQ(unknown, "");
  for (const DtypeInfo& dtype : all_dtypes())
    EXPECT_EQ(dtype_of_code(dtype_code(dtype.dtype)), dtype.dtype);
  EXPECT_EQ(dtype_of_code(ATTNGUARD_BOOL), std::nullopt);
  EXPECT_TRUE(features_of_bits(UINT64_C(1) << 63 | 1 << 9, unknown).empty());
  EXPECT_EQ(unknown, "9, 63");
}

TEST(PluginLayout, EveryMaskKindHasANumberOfItsOwn) {
  std::set<std::uint32_t> codes;
  for (const MaskKind* kind : all_mask_kinds()) {
    const std::uint32_t code = mask_kind_code(kind->name);
    EXPECT_NE(code, ATTNGUARD_MASK_OTHER) << kind->name;
    EXPECT_TRUE(codes.insert(code).second) << kind->name;
  }
  EXPECT_EQ(mask_kind_code("caussal"), ATTNGUARD_MASK_OTHER);
}

TEST(CProblem, TellsAllOfTheProblem) {
  const Problem problem = problem_of(
      "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=3 seq_len_kv=9,5 "
      "head_dim_qk=24 head_dim_v=16 dtype=fp16 out_dtype=fp32 softcap=20 "
      "softmax_scale=0.25 alibi_max_bias=8 sinks=1,2,3,4 layout=bshd "
      "empty_row=mean "
      "mask=causal_bottom_right+chunked_local_from_padding(chunk=4,pad=0:2)");
  const CProblem owner(problem);
  const attnguard_problem& c = *owner.get();
  EXPECT_EQ(c.size, sizeof c);
  EXPECT_EQ(c.text, problem.text());
  ASSERT_EQ(c.batch, 2);
  ASSERT_EQ(c.num_heads, 4);
  EXPECT_EQ(c.num_kv_heads, 2);
  EXPECT_EQ(c.max_seq_len_q, 3);
  EXPECT_EQ(c.max_seq_len_kv, 9);
  EXPECT_EQ(c.seq_len_q[1], 3);
  EXPECT_EQ(c.seq_len_kv[0], 9);
  EXPECT_EQ(c.seq_len_kv[1], 5);
  EXPECT_EQ(c.head_dim_qk, 24);
  EXPECT_EQ(c.head_dim_v, 16);
  EXPECT_EQ(c.dtype, ATTNGUARD_FP16);
  EXPECT_EQ(c.out_dtype, ATTNGUARD_FP32);
  EXPECT_EQ(c.softmax_scale, 0.25);
  EXPECT_EQ(c.softcap, 20);
  ASSERT_EQ(c.alibi_max_bias, 8);
  for (std::int64_t head = 0; head < 4; ++head) {
    EXPECT_EQ(c.alibi_slopes[head], problem.alibi_slope(head));
    EXPECT_EQ(c.sinks[head], static_cast<double>(head + 1));
  }
  EXPECT_EQ(c.empty_row, ATTNGUARD_EMPTY_MEAN);
  EXPECT_EQ(c.layout, ATTNGUARD_LAYOUT_BSHD);
  EXPECT_EQ(c.mask_form, ATTNGUARD_MASK_IMPLIED);
  EXPECT_EQ(c.window, ATTNGUARD_WINDOW_NONE);
  ASSERT_EQ(c.num_mask_terms, 2);
  EXPECT_EQ(c.mask_terms[0].kind, ATTNGUARD_MASK_CAUSAL_BOTTOM_RIGHT);
  EXPECT_EQ(c.mask_terms[0].num_parameters, 0u);
  const attnguard_mask_term& chunks = c.mask_terms[1];
  EXPECT_STREQ(chunks.name, "chunked_local_from_padding");
  EXPECT_EQ(chunks.kind, ATTNGUARD_MASK_CHUNKED_LOCAL_FROM_PADDING);
  ASSERT_EQ(chunks.num_parameters, 2u);
  EXPECT_STREQ(chunks.parameters[0].name, "chunk");
  EXPECT_EQ(chunks.parameters[0].values[0], 4);
  EXPECT_STREQ(chunks.parameters[1].name, "pad");
  ASSERT_EQ(chunks.parameters[1].num_values, 2);
  EXPECT_EQ(chunks.parameters[1].values[1], 2);
}

TEST(CProblem, LeavesOutWhatIsNotThere) {
  const CProblem owner(problem_of("seq_len=4 head_dim=8"));
  const attnguard_problem& c = *owner.get();
  EXPECT_EQ(c.softcap, 0);
  EXPECT_EQ(c.alibi_slopes, nullptr);
  EXPECT_EQ(c.sinks, nullptr);
  EXPECT_EQ(c.block_size, 0);
  EXPECT_EQ(c.packed, 0u);
}

TEST(CProblem, RowRangesAreTheMaskOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem = random_problem(seed);
    const CProblem owner(problem);
    const attnguard_problem* c = owner.get();
    KeyRanges allowed;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        problem.mask.allowed(problem.row(b, i), allowed);
        const attnguard_key_range* ranges = nullptr;
        std::int64_t count = -1;
        ASSERT_EQ(c->row_ranges(c, b, i, &ranges, &count), ATTNGUARD_OK);
        ASSERT_EQ(static_cast<std::size_t>(count), allowed.ranges().size());
        for (std::int64_t r = 0; r < count; ++r) {
          const KeyRange& range = allowed.ranges()[static_cast<std::size_t>(r)];
          ASSERT_EQ(ranges[r].begin, range.begin) << problem.text();
          ASSERT_EQ(ranges[r].end, range.end) << problem.text();
        }
      }
  }
}

// left and right, behind the alignment
std::vector<std::int64_t> window_on(const std::string& lengths,
                                    const std::string& mask) {
  const Window window =
      window_of(problem_of("head_dim=8 " + lengths + " mask=" + mask));
  return {static_cast<std::int64_t>(window.alignment), window.left,
          window.right};
}

TEST(PluginWindow, IsTheMaskWhereItIsOne) {
  const std::string longer = "seq_len_q=3 seq_len_kv=9";
  EXPECT_THAT(window_on(longer, "full"), ElementsAre(1, -1, -1));
  EXPECT_THAT(window_on(longer, "causal_bottom_right"), ElementsAre(1, -1, 0));
  EXPECT_THAT(window_on(longer, "causal_top_left"), ElementsAre(2, -1, 0));
  EXPECT_THAT(window_on("seq_len=9", "causal_top_left"), ElementsAre(1, -1, 0));
  EXPECT_THAT(window_on(longer, "sliding_window(left=4,right=-1)"),
              ElementsAre(1, 4, -1));
  EXPECT_THAT(
      window_on(longer, "causal_bottom_right+sliding_window(left=4,right=2)"),
      ElementsAre(1, 4, 0));
  EXPECT_THAT(window_on(longer, "sliding_window_keys(keys=4)"),
              ElementsAre(1, 3, 0));
  EXPECT_THAT(window_on(longer, "window_symmetric(width=5)"),
              ElementsAre(1, 2, 2));
  EXPECT_THAT(window_on(longer, "encoder_window(width=5)"),
              ElementsAre(1, 4, 4));
}

TEST(PluginWindow, IsNoneWhereTheMaskIsNone) {
  const std::string longer = "seq_len_q=3 seq_len_kv=9";
  for (const char* mask :
       {"prefix_lm(prefix=2)", "chunked_local(chunk=4)+causal_bottom_right",
        "causal_top_left+sliding_window_keys(keys=4)"})
    EXPECT_EQ(window_on(longer, mask).front(), ATTNGUARD_WINDOW_NONE) << mask;
}

// So that the device's test is one: the host is refused what it hands out.
TEST(PretendDevice, RefusesTheHost) {
  const Engine engine = plugin_engine("device");
  ASSERT_NE(engine.memory, nullptr);
  const Result<void*> allocated = engine.memory->allocate(5000);
  ASSERT_TRUE(allocated.ok()) << allocated.status().message();
  void* data = allocated.value();
  const char sent[3] = {'a', 'b', 'c'};
  char received[3] = {};
  EXPECT_TRUE(engine.memory->copy_in(data, sent, 3).ok());
  EXPECT_TRUE(engine.memory->copy_out(received, data, 3).ok());
  EXPECT_EQ(std::memcmp(sent, received, 3), 0);
  int pipe[2] = {-1, -1};
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_EQ(::write(pipe[1], data, 3), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(::write(pipe[1], sent, 3), 3);
  EXPECT_EQ(::read(pipe[0], data, 3), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(pipe[0]);
  ::close(pipe[1]);
  const Status past = engine.memory->copy_in(data, sent, 1 << 20);
  EXPECT_EQ(past.code(), StatusCode::kEngineFailure);
  EXPECT_EQ(past.message(), "copy_in() returned 'failed': no device address");
  engine.memory->release(data);
  engine.memory->release(data);  // Throws inside; nothing leaves.
}

}  // namespace
}  // namespace attnguard::plugin
