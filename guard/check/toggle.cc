// toggle: switching a feature of the problem on changes something.
#include <functional>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

struct Switch {
  std::string name;  // "the mask"
  std::shared_ptr<const Problem> without;
};

// The problem with one feature off, on the same tensors.
std::vector<Switch> switches_of(const CheckContext& context) {
  const Problem& problem = context.problem;
  std::vector<Switch> switches;
  const auto add = [&](std::string name,
                       const std::function<void(Problem&)>& turn_off) {
    Problem without = problem;
    turn_off(without);
    if (without == problem || !without.validate().ok()) return;
    if (context.engine != nullptr &&
        !unsupported_reason(*context.engine, without).empty())
      return;
    switches.push_back(
        {std::move(name), std::make_shared<const Problem>(std::move(without))});
  };
  // Terms of the mask one by one: a window may be ignored under a causal mask
  // that is not.
  const auto& terms = problem.mask.terms();
  for (std::size_t off = 0; off < terms.size(); ++off)
    add(std::string(terms[off].kind->name),
        [&](Problem& p) { p.mask = problem.mask.without(off); });
  add("softcap", [](Problem& p) { p.softcap.reset(); });
  add("alibi_max_bias", [](Problem& p) { p.alibi_max_bias.reset(); });
  add("sinks", [](Problem& p) { p.sinks.clear(); });
  add("softmax_scale", [](Problem& p) { p.softmax_scale = 2 * p.scale(); });
  return switches;
}

class Toggle final : public Check {
 public:
  explicit Toggle(const CheckContext& context)
      : context_(context), switches_(switches_of(context)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    const auto values = std::make_shared<RandomValues>(problem, seed);
    for (const Switch& feature : switches_) {
      // A cap shows where scores reach it.
      const bool capped = feature.name == "softcap";
      const ScorePatternPtr scores =
          capped ? capped_scores(problem, seed)
                 : std::make_shared<RandomScores>(problem, seed);
      const Ticket with = plan.request(scores, values);
      plan.keep_output(with);
      with_.push_back(with);
      without_.push_back(
          plan.request(scores, values, {.problem = feature.without}));
    }
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    for (std::size_t n = 0; n < switches_.size(); ++n)
      if (without_[n].call == seen.call)
        judge_switch(seen, switches_[n], seen.kept(with_[n].call), sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, judged_ > 0, "", result);
    if (judged_ == 0) {
      result.verdict = Verdict::kNotApplicable;
      result.note =
          "nothing that can be switched moves a row by more than rounding";
    }
    result.coverage = std::to_string(switches_.size()) + " calls (" + names_ +
                      (names_.empty() ? "nothing judged" : "") + ")";
  }

 private:
  // In each head some row must differ, if fp64 attention says that one does.
  void judge_switch(const Observation& seen, const Switch& feature,
                    const ConstTensorView& with, FindingSink& sink) {
    const Problem& problem = context_.problem;
    const auto heads = static_cast<std::size_t>(problem.num_heads);
    std::vector<char> must(heads, 0), differs(heads, 0);
    const RowChoice choice =
        choose_rows(problem, context_.coverage, context_.seed, kQuarterBudget);
    std::vector<char> moves(choice.rows.size(), 0);
    const ReferenceInputs on{&problem, seen.query, seen.key, seen.value};
    for_each_reference_row(
        seen, choice, [&](std::size_t n, const ReferenceRow& off_row) {
          const RowIndex& at = choice.rows[n];
          ReferenceRow row;
          reference_row(on, at.batch, at.head, at.query, row);
          for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
            const auto channel = static_cast<std::size_t>(c);
            const double bound =
                reference_bound(problem, context_.numerics, row, c) +
                reference_bound(problem, context_.numerics, off_row, c);
            if (std::abs(row.output[channel] - off_row.output[channel]) >
                4 * bound)
              moves[n] = 1;
          }
        });
    for (std::size_t n = 0; n < choice.rows.size(); ++n) {
      const RowIndex& at = choice.rows[n];
      const auto head = static_cast<std::size_t>(at.head);
      must[head] |= moves[n];
      differs[head] |= moves[n] != 0 && !rows_equal(with, seen.output, at.batch,
                                                    at.head, at.query);
    }
    bool judged = false;
    for (std::size_t h = 0; h < heads; ++h) {
      if (!must[h]) continue;
      judged = true;
      if (differs[h]) continue;
      Finding finding{.kind = FindingKind::kMiss,
                      .probe = "without " + feature.name,
                      .head = static_cast<std::int64_t>(h)};
      finding.message =
          "head " + std::to_string(h) + ": " +
          (feature.name == "softmax_scale" ? "doubling " : "switching off ") +
          feature.name + " changes no output bit";
      sink.add(std::move(finding));
    }
    if (!judged) return;
    ++judged_;
    names_ += (names_.empty() ? "" : ", ") + feature.name;
  }

  CheckContext context_;
  std::vector<Switch> switches_;
  std::vector<Ticket> with_, without_;
  std::string names_;
  std::int64_t judged_ = 0;
};

}  // namespace

const CheckInfo kCheckToggle = {
    .id = "toggle",
    .summary = "switching mask, window, sink, cap or scale changes something",
    .cost = "1 call per feature of the problem",
    .explanation =
        R"(toggle: switching mask, window, sink, cap or scale changes something

What it sees
  The base call once more with one thing switched off: each term of the mask
  (the causal limit, the window, the documents), the soft-cap, ALiBi, the
  sinks; and with the scale doubled. Where fp64 attention says that rows
  change, some row of each head must.

      causal=true    0.31 0.72 0.55
      causal=false   0.31 0.72 0.55     the flag is not read

What it looks like
  A flag that never reaches the kernel, a parameter that a fast path drops, a
  window that is set on the wrong layers.

Real reports
  jax-ml/jax#19237 (causal=True and causal=False give the same outputs),
  EricLBuehler/mistral.rs#2094 (window not passed in decode),
  keras-team/keras-hub#2186.

What to look at in the kernel
  The call site first: is the parameter passed on every path?
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      if (std::string reason = no_row_with_keys(context.problem);
          !reason.empty())
        return reason;
      return switches_of(context).empty()
                 ? "there is nothing to switch that the engine supports"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<Toggle>(context);
    },
    .beyond = true,
};

}  // namespace attnguard
