// sequence-isolation: a row depends on its own sequence alone.
#include <functional>
#include <map>

#include "guard/base/rng.h"
#include "guard/check/baseline.h"
#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"
#include "guard/probe/target_rows.h"

namespace attnguard {
namespace {

struct Targets {
  std::string name;
  std::shared_ptr<const TargetRows> rows;
  bool extreme = false;
};

// Rows of an entry that begin with the same key form a group: a packed
// document, a chunk; under a causal mask all rows are one.
std::vector<std::vector<std::int64_t>> groups_of(const Problem& problem) {
  std::vector<std::vector<std::int64_t>> groups;
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    std::map<std::int64_t, std::int64_t> numbers;
    auto& entry = groups.emplace_back();
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (allowed.empty()) {
        entry.push_back(-1);
        continue;
      }
      const auto [at, added] = numbers.emplace(
          allowed.first(), static_cast<std::int64_t>(numbers.size()));
      entry.push_back(at->second);
    }
  }
  return groups;
}

bool has_holes(const Problem& problem) {
  bool holes = false;
  for_each_row(problem, [&](std::int64_t, std::int64_t h, std::int64_t,
                            const KeyRanges& allowed) {
    if (h == 0) holes |= allowed.ranges().size() > 1 || allowed.first() > 0;
  });
  return holes;
}

std::vector<Targets> choose_targets(const CheckContext& context) {
  const Problem& problem = context.problem;
  std::vector<Targets> chosen;
  const auto add =
      [&](std::string name, bool extreme,
          const std::function<bool(std::int64_t, std::int64_t)>& is_target) {
        auto rows = std::make_shared<TargetRows>(problem, is_target);
        if (rows->num_targets() > 0 && rows->num_perturbed_keys() > 0)
          chosen.push_back({std::move(name), std::move(rows), extreme});
      };
  for (std::int64_t turn : {0, 1})
    if (problem.batch > 1)
      add("other batch entries", turn == 1,
          [&](std::int64_t b, std::int64_t) { return b % 2 == turn; });
  const auto groups = groups_of(problem);
  for (std::int64_t turn : {0, 1})
    add("keys of other documents, chunks or windows", turn == 1,
        [&](std::int64_t b, std::int64_t i) {
          const std::int64_t group =
              groups[static_cast<std::size_t>(b)][static_cast<std::size_t>(i)];
          return group >= 0 && group % 2 == turn;
        });
  // Where rows see no prefix of their sequence, single rows say most: all that
  // they do not see changes, before them and after.
  if (!has_holes(problem)) return chosen;
  const std::int64_t rounds = context.coverage == Coverage::kSampled ? 1 : 3;
  for (std::int64_t turn = 0; turn < rounds; ++turn)
    add("all keys that the row does not see", turn == 1,
        [&](std::int64_t b, std::int64_t i) {
          const std::int64_t len = std::max<std::int64_t>(problem.len_q(b), 1);
          const std::uint64_t bits =
              derive_seed(base_seed(context.seed) ^ 0x69736f6c,
                          static_cast<std::uint64_t>(b * rounds + turn));
          return i == (turn == 0 ? len - 1 : uniform_below(bits, len));
        });
  return chosen;
}

class SequenceIsolation final : public Check {
 public:
  explicit SequenceIsolation(const CheckContext& context)
      : context_(context), targets_(choose_targets(context)) {}

  void plan(Plan& plan) override {
    base_.plan(plan, context_);
    base_.plan_control(plan, context_);
    for (std::size_t n = 0; n < targets_.size(); ++n) {
      Perturbation how;
      how.label = "isolation-" + std::to_string(n);
      how.base_seed = base_seed(context_.seed);
      how.fresh_seed = derive_seed(how.base_seed, 0x69736f6c00 + n);
      if (targets_[n].extreme) how.value_amplitude = how.score_amplitude = 8;
      tickets_.push_back(plan.request(perturbed_scores(targets_[n].rows, how),
                                      perturbed_values(targets_[n].rows, how)));
    }
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    base_.judge(seen);
    for (std::size_t n = 0; n < targets_.size(); ++n)
      if (tickets_[n].call == seen.call) judge_round(seen, targets_[n], sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    if (!base_.too_noisy(result))
      conclude(sink, rows_held_ > 0 && base_.rows_moved_by_control() > 0,
               "no row moved when all inputs changed, so the engine does not "
               "react to its inputs",
               result);
    result.coverage = std::to_string(targets_.size()) + " calls, " +
                      std::to_string(rows_held_) + " rows that must hold, " +
                      std::to_string(rows_moved_) + " rows moved";
  }

 private:
  void judge_round(const Observation& seen, const Targets& targets,
                   FindingSink& sink) {
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      double change = 0;
      const bool moved = base_.moved(seen, b, h, i, change);
      if (!targets.rows->target(b, i)) {
        rows_moved_ += moved;
        return;
      }
      ++rows_held_;
      if (!moved) return;
      Finding finding{.kind = FindingKind::kLeak,
                      .probe = seen.planned->scores->name(),
                      .batch = b,
                      .head = h,
                      .query = i,
                      .observed = change,
                      .bound = base_.limit()};
      finding.message = row_name(b, h, i) + ": output moves by " +
                        format_short(change) + " when " + targets.name +
                        " change, none of which it may see";
      sink.add(std::move(finding));
    });
  }

  CheckContext context_;
  std::vector<Targets> targets_;
  std::vector<Ticket> tickets_;
  Baseline base_;
  std::int64_t rows_held_ = 0;
  std::int64_t rows_moved_ = 0;
};

}  // namespace

const CheckInfo kCheckSequenceIsolation = {
    .id = "sequence-isolation",
    .summary = "a row depends on its own sequence alone",
    .cost = "at most 9 calls",
    .explanation =
        R"(sequence-isolation: a row depends on its own sequence alone

What it sees
  Some rows are chosen, and everything that none of them may see gets fresh
  values: the tokens of other batch entries and of other requests' pages, other
  packed documents, other branches of a tree, keys out of a window, and the
  queries of all other rows. The chosen rows must be unchanged bit for bit; the
  shapes stay the same, so rounding cannot change them.

      two documents in one row         document 2 changes
        doc 1  aaa                       doc 1  aaa   unchanged
        doc 2     bbbb                   doc 2     cccc

  Chosen in turn: every other batch entry, every other document (chunk,
  window), and single rows.

What it looks like
  Packed documents that see each other because the mask was derived from
  lengths alone, a page of another request in the block table, a batch mate's
  length used for all, beams that share a cache slot, tree branches that see
  their elder siblings, a statistic over the whole batch.

Real reports
  PetrochukM/PyTorch-NLP#2 (softmax over batch and queries),
  sgl-project/sglang#8134 (one scale per batch); the class cross_sequence of
  the survey has 25 reports, none of which a causality test and a row sum see.

What to look at in the kernel
  cu_seqlens and its offsets, the row of block_table that is used, the strides
  of the batch axis, anything reduced over more than one row.

Tolerance
  auto: exact (bitwise), or four times the noise of an engine that declares
  itself non-deterministic.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return choose_targets(context).empty()
                 ? "there is one sequence, and no key is hidden from its rows "
                   "but later ones"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<SequenceIsolation>(context);
    },
};

}  // namespace attnguard
