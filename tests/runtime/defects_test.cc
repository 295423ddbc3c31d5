// The known defects in a running engine: what a row that is computed again can
// see is seen, and legal variants raise no alarm.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "guard/defect/defect.h"
#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kInputSeed = 20260704;  // Of all inputs.
constexpr int kInputDraws = 4;  // Inputs that a defect is tried on.

std::unique_ptr<Guard> recomputing(std::int64_t rows) {
  RuntimePolicy policy = look_always({LiveCheck::kRecompute});
  policy.patches[0].rows = rows;
  return std::move(Guard::create(policy).value());
}

struct Live {
  std::unique_ptr<LiveCallData> data;
  Engine engine;
  LayerOptions options;
};

// False when the defect says that it cannot run the problem.
bool prepare(const Defect& defect, std::string_view line, Live& live) {
  live.engine = defect_engine(defect);
  live.options.numerics = defect.numerics;
  live.data = std::make_unique<LiveCallData>(std::string(line), kInputSeed);
  return unsupported_reason(live.engine, live.data->problem).empty();
}

// Looks until it is found; 0: not within `most` calls.
int calls_to_detection(Live& live, std::int64_t rows, int most) {
  auto guard = recomputing(rows);
  const LayerHandle layer = guard->layer("a", live.options);
  for (int call = 1; call <= most; ++call) {
    live.data->fill(kInputSeed +
                    static_cast<std::uint64_t>(call % kInputDraws));
    if (!live.engine.run(live.data->call()).ok()) return 0;
    if (guard->observe(layer, live.data->call()).violations > 0) return call;
  }
  return 0;
}

TEST(LiveDefects, WhatARecomputedRowCanSeeIsSeen) {
  int seen = 0, not_visible = 0;
  for (const Defect* defect : all_defects()) {
    if (defect->legal()) continue;
    SCOPED_TRACE(std::string(defect->id));
    bool visible = false, found = false;
    for (std::string_view line : defect->shows_on) {
      if (line.empty()) continue;
      Live live;
      if (!prepare(*defect, line, live)) continue;
      // 1000 rows a look are all of them, as these problems are small.
      if (calls_to_detection(live, 1000, kInputDraws) == 0) continue;
      visible = true;
      // And by the policy's own number of rows, in time.
      found = found || calls_to_detection(live, 4, 400) > 0;
    }
    EXPECT_EQ(found, visible);
    seen += found;
    not_visible += !visible;
  }
  std::printf("%d defects seen by recompute alone, %d not visible in rows\n",
              seen, not_visible);
  EXPECT_GT(seen, 120);
}

TEST(LiveDefects, LegalVariantsRaiseNoAlarm) {
  int variants = 0;
  for (const Defect* defect : all_defects()) {
    if (!defect->legal()) continue;
    for (std::string_view line : defect->shows_on) {
      if (line.empty()) continue;
      SCOPED_TRACE(std::string(defect->id) + " on " + std::string(line));
      Live live;
      if (!prepare(*defect, line, live)) continue;
      auto sink = std::make_shared<RecordingSink>();
      auto guard = std::move(
          Guard::create(look_always({LiveCheck::kFinite, LiveCheck::kValueRange,
                                     LiveCheck::kSingleKey,
                                     LiveCheck::kRecompute, LiveCheck::kOnes}),
                        {.sink = sink})
              .value());
      const AttentionCallback guarded =
          guard->wrap(live.engine.run, guard->layer("a", live.options));
      for (std::uint64_t n = 0; n < 10; ++n) {
        live.data->fill(kInputSeed + n);
        ASSERT_TRUE(guarded(live.data->call()).ok());
      }
      EXPECT_EQ(sink->text(), "");
      EXPECT_EQ(guard->counters().checked, 10u);
    }
    ++variants;
  }
  EXPECT_GT(variants, 8);
}

}  // namespace
}  // namespace attnguard
