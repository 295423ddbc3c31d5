// model-future: later tokens do not move earlier logits.
#include <fmt/format.h>

#include <set>

#include "guard/base/rng.h"
#include "guard/model/exact.h"
#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

constexpr int kVariants = 2;  // Of the tokens behind each cut.
constexpr const char* kMissing =
    "changing tokens did not move their own logits or later ones: nothing "
    "shows that this model reads its tokens";

// Ends, quarters and two random places; each between 1 and length - 1.
std::set<std::int64_t> cuts_of(std::int64_t length, std::uint64_t seed) {
  std::set<std::int64_t> cuts = {1, length / 4, length / 2, length * 3 / 4,
                                 length - 1};
  for (std::uint64_t i = 0; i < 2; ++i)
    cuts.insert(1 + uniform_below(derive_seed(seed, 0xc07 + i), length - 1));
  cuts.erase(0);
  return cuts;
}

struct FutureWay {
  std::string name;                 // "one-pass"
  std::vector<std::int64_t> sizes;  // Of the pieces.
};

// Behind a cache the mask is another one: its first column is not the first
// token.
std::vector<FutureWay> ways_of(const ModelCheckContext& context) {
  std::vector<FutureWay> ways = {{"one-pass", {context.length()}}};
  if (context.model.incremental) {
    ways.push_back(
        {"behind-a-cache", {context.length() / 2, context.length()}});
    ways.push_back({"behind-one-token", {1, context.length()}});
  }
  return ways;
}

class Future {
 public:
  explicit Future(ModelCheckContext& context) : context_(context) {}

  Status try_way(const FutureWay& way) {
    const Result<Logits> before =
        context_.runner.in_pieces(context_.tokens, way.sizes);
    if (!before.ok()) return before.status();
    for (const std::int64_t cut :
         cuts_of(context_.length(), context_.options.seed))
      for (std::uint64_t variant = 0; variant < kVariants; ++variant) {
        Status status = try_cut(way, before.value(), cut, variant);
        if (!status.ok()) return status;
      }
    return ok_status();
  }

  void conclude(CheckResult& result) {
    result.coverage = fmt::format(
        "{} comparisons at cuts from 1 to {}, bit "
        "for bit",
        comparisons_, context_.length() - 1);
    if (!context_.model.deterministic)
      result.coverage =
          fmt::format("{} comparisons, differences above {}", comparisons_,
                      short_number(context_.exact_bound()));
    if (!findings_.empty()) {
      result.verdict = Verdict::kViolation;
    } else if (comparisons_ == 0 || unmoved_ > 0) {
      result.verdict = Verdict::kInconclusive;
      result.note = kMissing;
    } else {
      result.verdict = Verdict::kPass;
    }
    findings_.move_to(result);
  }

 private:
  Status try_cut(const FutureWay& way, const Logits& before, std::int64_t cut,
                 std::uint64_t variant) {
    const Result<Logits> after = context_.runner.in_pieces(
        context_.replaced_from(cut, variant), way.sizes);
    if (!after.ok()) return after.status();
    ++comparisons_;
    if (!any_moved(context_, before, after.value(), cut, context_.length()))
      ++unmoved_;
    find_moved(
        context_, before, after.value(), 0, cut,
        {.kind = FindingKind::kLeak, .probe = way.name, .batch = 0, .key = cut},
        fmt::format("when the tokens from {} on change", cut), findings_);
    return ok_status();
  }

  ModelCheckContext& context_;
  ModelFindings findings_;
  std::int64_t comparisons_ = 0;
  std::int64_t unmoved_ = 0;  // Of them, the positive control did not fire in.
};

Status run_future(ModelCheckContext& context, CheckResult& result) {
  Future future(context);
  for (const FutureWay& way : ways_of(context)) {
    Status status = future.try_way(way);
    if (!status.ok()) return status;
  }
  future.conclude(result);
  return ok_status();
}

}  // namespace

const ModelCheckInfo kModelFuture = {
    .id = "model-future",
    .summary = "later tokens do not move earlier logits",
    .cost = "up to 15 runs of the text, 45 with a cache",
    .explanation =
        R"(model-future: later tokens do not move earlier logits

What it sees
  All tokens from a cut on are replaced by others, at up to 7 cuts and with 2
  replacements each. Shapes stay the same, so the logits before the cut must
  stay the same bit for bit. Logits from the cut on must move: that is the
  positive control. With a cache the same is done for a second piece behind a
  first one, where the mask begins elsewhere.

What it looks like
  Training loss falls below what the text allows, and generation is poor. Or the
  loss of a benchmark is too good.

Where to look
  Softmax over the query axis, a mask that is missing, transposed, off by one or
  added after the softmax; a mask aligned to the wrong corner behind a cache;
  normalisation or routing over the whole sequence; a model run with causal
  attention switched off.
)",
    .not_applicable = [](const Model&) -> std::string { return {}; },
    .run = run_future,
};

}  // namespace attnguard
