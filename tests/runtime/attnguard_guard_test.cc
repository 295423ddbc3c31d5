// The C interface of the live guard.
#include "guard/runtime/attnguard_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "guard/defect/defect.h"
#include "tests/runtime/live_call.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

attnguard_guard_tensor tensor_of(const ConstTensorView& view) {
  attnguard_guard_tensor tensor{};
  tensor.data = const_cast<std::byte*>(view.data);
  tensor.dtype = static_cast<std::uint32_t>(view.dtype);
  std::copy(view.shape.begin(), view.shape.end(), tensor.shape);
  std::copy(view.strides.begin(), view.strides.end(), tensor.strides);
  return tensor;
}

attnguard_guard_call c_call(LiveCallData& data, const std::string& line) {
  const AttentionCall from = data.call();
  attnguard_guard_call call{};
  call.size = sizeof call;
  call.problem = line.c_str();
  call.query = tensor_of(from.query);
  call.key = tensor_of(from.key);
  call.value = tensor_of(from.value);
  call.output = tensor_of(from.output);
  call.block_table = from.block_table;
  call.block_table_width = from.block_table_width;
  return call;
}

TEST(CGuard, FindsAWrongScaleInPaddedAndPagedCaches) {
  for (const std::string line :
       {"num_heads=2 seq_len=20 head_dim=16 mask=causal_bottom_right",
        "batch=2 num_heads=2 seq_len_q=3 seq_len_kv=40 head_dim=16 "
        "block_size=16 mask=causal_bottom_right"}) {
    char message[256] = "";
    attnguard_guard* guard = attnguard_guard_create(
        "sample=1 max_overhead=none rows=64", message, sizeof message);
    ASSERT_NE(guard, nullptr) << message;
    std::string told;
    attnguard_guard_set_callback(
        guard,
        [](void* user, const char* check, const char* text) {
          *static_cast<std::string*>(user) +=
              std::string(check) + " | " + text + "\n";
        },
        &told);
    const std::uint32_t layer = attnguard_guard_layer(guard, "blk.7.attn");
    LiveCallData data(line);
    const attnguard_guard_call call = c_call(data, line);
    ASSERT_TRUE(builtin("reference").run(data.call()).ok());
    EXPECT_EQ(attnguard_guard_sampled(guard, layer), 1);
    EXPECT_EQ(attnguard_guard_observe(guard, layer, &call), 0) << told;
    ASSERT_TRUE(
        defect_engine(*find_defect("scale-missing")).run(data.call()).ok());
    EXPECT_EQ(attnguard_guard_sampled(guard, layer), 1);
    EXPECT_GE(attnguard_guard_observe(guard, layer, &call), 1);
    EXPECT_THAT(told, HasSubstr("recompute | blk.7.attn: recompute: batch"));
    const attnguard_guard_counts counts = attnguard_guard_counters(guard);
    EXPECT_EQ(counts.calls, 2u);
    EXPECT_EQ(counts.checked, 2u);
    EXPECT_GE(counts.violations, 1u);
    attnguard_guard_destroy(guard);
  }
}

TEST(CGuard, TakesWhatTheEngineFound) {
  attnguard_guard* guard = attnguard_guard_create("", nullptr, 0);
  ASSERT_NE(guard, nullptr);
  std::string told;
  attnguard_guard_set_callback(
      guard,
      [](void* user, const char* check, const char* text) {
        *static_cast<std::string*>(user) +=
            std::string(check) + " | " + text + "\n";
      },
      &told);
  const std::uint32_t layer = attnguard_guard_layer(guard, "blk.7.attn");
  EXPECT_EQ(attnguard_guard_report(guard, layer, "mask", "shows key 3"), 1);
  EXPECT_EQ(told, "engine | blk.7.attn: engine: mask: shows key 3\n");
  EXPECT_EQ(attnguard_guard_counters(guard).violations, 1u);
  EXPECT_EQ(attnguard_guard_report(guard, layer, nullptr, "x"), -1);
  EXPECT_STREQ(attnguard_guard_last_error(), "check is NULL");
  EXPECT_EQ(attnguard_guard_report(guard, layer, "mask", nullptr), -1);
  EXPECT_STREQ(attnguard_guard_last_error(), "message is NULL");
  EXPECT_EQ(attnguard_guard_report(guard, 99, "mask", "x"), -1);
  EXPECT_STREQ(attnguard_guard_last_error(), "there is no layer 99");
  EXPECT_EQ(attnguard_guard_counters(guard).violations, 1u);
  attnguard_guard_destroy(guard);

  attnguard_guard* off = attnguard_guard_create("off=engine", nullptr, 0);
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(
      attnguard_guard_report(off, attnguard_guard_layer(off, "a"), "mask", "x"),
      0);
  EXPECT_EQ(attnguard_guard_counters(off).violations, 0u);
  attnguard_guard_destroy(off);
}

TEST(CGuard, WrongInputIsNamed) {
  char message[256] = "";
  EXPECT_EQ(attnguard_guard_create("sampel=1", message, sizeof message),
            nullptr);
  EXPECT_STREQ(message, "unknown option 'sampel'; did you mean 'sample'?");
  EXPECT_EQ(attnguard_guard_create("max_overhead=7", message, 10), nullptr);
  EXPECT_STREQ(message, "runtime: ");
  EXPECT_EQ(attnguard_guard_create("off=finit", message, sizeof message),
            nullptr);
  EXPECT_THAT(message, HasSubstr("did you mean 'finite'?"));
  attnguard_guard* guard = attnguard_guard_create("", nullptr, 0);
  ASSERT_NE(guard, nullptr);
  LiveCallData data("seq_len=4 head_dim=8");
  attnguard_guard_call call = c_call(data, "");
  const std::string line = "seq_len=4 head_dimm=8";
  call.problem = line.c_str();
  EXPECT_EQ(attnguard_guard_observe(guard, 0, &call), -1);
  EXPECT_THAT(attnguard_guard_last_error(), HasSubstr("head_dimm"));
  call.size = 8;
  EXPECT_EQ(attnguard_guard_observe(guard, 0, &call), -1);
  EXPECT_EQ(attnguard_guard_sampled(guard, 99), 0);
  attnguard_guard_destroy(guard);
}

}  // namespace
}  // namespace attnguard
