// The canary's runs where several layers and layer groups take turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

constexpr const char* kCanaryLine =
    "num_heads=2 seq_len=24 head_dim=32 mask=causal_bottom_right";

// What a probe call is, by the scores of a row that sees every key.
std::string kind_of(const AttentionCall& call) {
  const Problem& p = *call.problem;
  const std::int64_t length = p.len_kv(0), channels = p.head_dim_qk;
  std::vector<double> query(static_cast<std::size_t>(channels)), key = query;
  call.query.load_row(0, 0, p.len_q(0) - 1, 0, channels, query.data());
  int rises = 0, falls = 0;
  double before = 0;
  for (std::int64_t j = 0; j < length; ++j) {
    call.key.load_row(0, 0, j, 0, channels, key.data());
    double score = 0;
    for (std::size_t c = 0; c < key.size(); ++c) score += query[c] * key[c];
    rises += j > 0 && score > before;
    falls += j > 0 && score < before;
    before = score;
  }
  if (rises == 0 && falls == 0) return "equal weights";
  if (rises == length - 1) return "ladder up";
  if (falls == length - 1) return "ladder down";
  return "other";
}

// A model of layers that are called in turn, each by a callback of its own.
class LayeredModel {
 public:
  explicit LayeredModel(RuntimePolicy policy) : data_(kCanaryLine) {
    guard_ = std::move(Guard::create(std::move(policy), {sink_, {}}).value());
  }

  void add(const std::string& layer, const AttentionCallback& kernel,
           const LayerOptions& options = {}) {
    layers_.push_back(guard_->wrap(
        [this, layer, kernel](const AttentionCall& call) {
          if (call.query.data != data_.view(TensorRole::kQuery).data) {
            probed_.push_back(layer);
            kinds_[layer].insert(kind_of(call));
          }
          return kernel(call);
        },
        guard_->layer(layer, options)));
  }

  // One step of decoding: every layer once.
  void step() {
    for (const AttentionCallback& layer : layers_)
      EXPECT_TRUE(layer(data_.call()).ok());
  }

  // The layers whose kernels made probe calls, in order.
  const std::vector<std::string>& probed() const { return probed_; }
  std::set<std::string> kinds(const std::vector<std::string>& layers) const {
    std::set<std::string> all;
    for (const std::string& layer : layers)
      if (kinds_.contains(layer))
        all.insert(kinds_.at(layer).begin(), kinds_.at(layer).end());
    return all;
  }
  GuardCounters counters() const { return guard_->counters(); }
  const RecordingSink& sink() const { return *sink_; }

 private:
  LiveCallData data_;
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  std::unique_ptr<Guard> guard_;
  std::vector<AttentionCallback> layers_;
  std::vector<std::string> probed_;
  std::map<std::string, std::set<std::string>> kinds_;
};

std::uint64_t skipped(const GuardCounters& counters, SkipReason reason) {
  return counters.check(LiveCheck::kCanary).skipped_for(reason);
}

TEST(LiveCanary, EachGroupMeetsItsLaddersAndItsCensus) {
  LayeredModel model(look_always({LiveCheck::kCanary}));
  const AttentionCallback kernel = builtin("tiled").run;
  for (const char* layer : {"dec.0", "enc.0", "dec.1", "enc.1"})
    model.add(layer, kernel);
  for (int n = 0; n < 40; ++n) model.step();
  const GuardCounters counters = model.counters();
  EXPECT_EQ(counters.canary.finished, 2u);
  EXPECT_EQ(counters.canary.shape_classes, 2u);
  EXPECT_EQ(model.sink().text(), "");
  EXPECT_GT(skipped(counters, SkipReason::kBusy), 0u);
  EXPECT_GT(skipped(counters, SkipReason::kNotDue), 0u);
  for (const char* group : {"dec.", "enc."}) {
    SCOPED_TRACE(group);
    const std::string name = group;
    EXPECT_THAT(model.kinds({name + "0", name + "1"}),
                IsSupersetOf({"ladder up", "ladder down", "equal weights"}));
  }
  // One run after the other, as long as each other; the layers of a group take
  // turns, so that none of them waits for one that is looked at seldom.
  const std::vector<std::string>& probed = model.probed();
  ASSERT_EQ(probed.size() % 2, 0u);
  const auto middle =
      probed.begin() + static_cast<std::ptrdiff_t>(probed.size() / 2);
  const std::vector<std::string> first(probed.begin(), middle);
  const std::vector<std::string> second(middle, probed.end());
  EXPECT_THAT(first, Each(StartsWith("dec.")));
  EXPECT_THAT(second, Each(StartsWith("enc.")));
  for (const auto& run : {first, second})
    for (std::size_t n = 1; n < run.size(); ++n) EXPECT_NE(run[n], run[n - 1]);
}

TEST(LiveCanary, AFaultOfOneGroupIsSaidOfThatGroup) {
  LayeredModel model(look_always({LiveCheck::kCanary}));
  model.add("good.0", builtin("tiled").run);
  model.add("bad.0", builtin("drops_last_key").run);
  model.add("good.1", builtin("tiled").run);
  model.add("bad.1", builtin("drops_last_key").run);
  for (int n = 0; n < 40; ++n) model.step();
  const GuardCounters counters = model.counters();
  EXPECT_EQ(counters.canary.finished, 2u);
  ASSERT_EQ(model.sink().records().size(), 1u) << model.sink().text();
  EXPECT_THAT(model.sink().text(), StartsWith("bad."));
  EXPECT_THAT(model.sink().text(), HasSubstr("does not see key"));
  ASSERT_EQ(counters.groups.size(), 2u);
  for (const LayerGroupCounters& group : counters.groups)
    EXPECT_EQ(group.violations[static_cast<std::size_t>(LiveCheck::kCanary)],
              group.group == "bad.*" ? 1u : 0u)
        << group.group;
}

// What was planned for one kernel says nothing of one that rounds otherwise.
TEST(LiveCanary, AKernelThatRoundsOtherwiseDoesNotGoOnWithTheRun) {
  LayeredModel model(look_always({LiveCheck::kCanary}));
  LayerOptions coarse;
  coarse.numerics = [](const Problem& problem) {
    Numerics numerics = default_numerics(problem);
    numerics.probability = Dtype::kBf16;
    return numerics;
  };
  model.add("blk.0", builtin("tiled").run);
  model.add("blk.1", builtin("tiled").run, coarse);
  for (int n = 0; n < 40; ++n) model.step();
  EXPECT_EQ(model.counters().canary.finished, 1u);
  EXPECT_THAT(model.probed(), Each("blk.0"));
  EXPECT_GT(skipped(model.counters(), SkipReason::kBusy), 0u);
}

// It is due all the while that another's run goes on.
TEST(LiveCanary, AGroupThatWaitsHasItsTurn) {
  LayeredModel model(look_always({LiveCheck::kCanary}));
  model.add("first", builtin("tiled").run);
  model.add("second", builtin("tiled").run);
  int steps = 0;
  while (model.counters().canary.finished == 0 && ++steps < 40) model.step();
  EXPECT_THAT(model.kinds({"second"}), IsEmpty());
  while (model.counters().canary.finished < 2 && ++steps < 80) model.step();
  EXPECT_EQ(model.counters().canary.finished, 2u);
  EXPECT_EQ(model.kinds({"second"}), model.kinds({"first"}));
}

}  // namespace
}  // namespace attnguard
