// visibility: what each row sees is exactly what is declared.
#include "guard/check/check_table.h"
#include "guard/check/rows.h"
#include "guard/check/visibility_probes.h"

namespace attnguard {
namespace {

// Census columns from which two different sets of keys look alike with odds
// of at most 2^-15.
constexpr std::int64_t kEnoughColumns = 16;

class Visibility final : public Check {
 public:
  explicit Visibility(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override {
    const bool ladder_up = add(make_ladder_up_probe);
    const bool ladder_down = add(make_ladder_down_probe);
    const bool needle = add(make_needle_probe);
    const bool census = add(make_census_probe);
    add(make_step_probe);
    // The weights themselves, where the ladder's range does not fit.
    bool one_hot = false;
    if (!ladder_up || !ladder_down) one_hot = add(make_one_hot_probe);
    // Few columns of equal weights cannot tell keys apart on their own.
    enough_ = (ladder_up && ladder_down) || needle || one_hot ||
              (census && code_columns(context_.problem) >= kEnoughColumns);
    for (const auto& probe : probes_) probe->plan(plan);
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    for (const auto& probe : probes_) {
      const std::int64_t before = probe->rows_judged();
      probe->judge(seen, sink);
      if (probe->rows_judged() != before) ++calls_;
    }
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    std::int64_t rows = 0;
    std::string names;
    for (const auto& probe : probes_) {
      rows += probe->rows_judged();
      if (probe->rows_judged() == 0) continue;
      names += (names.empty() ? "" : ", ") + probe->name();
    }
    conclude(sink, rows > 0 && enough_,
             "the probes that fit cannot tell keys apart: " + left_out_,
             result);
    result.coverage = std::to_string(calls_) + " calls (" + names + ")" +
                      (enough_ ? ", every row and key" : "");
    if (!left_out_.empty() && result.note.empty())
      result.note = "not used: " + left_out_;
  }

 private:
  bool add(VisibilityProbePtr (*make)(const CheckContext&, std::string&)) {
    std::string why_not;
    VisibilityProbePtr probe = make(context_, why_not);
    if (probe) {
      probes_.push_back(std::move(probe));
      return true;
    }
    if (left_out_.find(why_not) == std::string::npos)
      left_out_ += (left_out_.empty() ? "" : "; ") + why_not;
    return false;
  }

  CheckContext context_;
  std::vector<VisibilityProbePtr> probes_;
  std::string left_out_;
  bool enough_ = false;
  std::int64_t calls_ = 0;
};

}  // namespace

const CheckInfo kCheckVisibility = {
    .id = "visibility",
    .summary = "every row sees exactly the keys that it is declared to see",
    .cost = "at most 6 calls at any length",
    .explanation =
        R"(visibility: every row sees exactly the keys that it is declared to see

What it sees
  Leaks (a key is seen that is not allowed) and misses (an allowed key is not
  seen), for every row and key of every head, in a handful of calls whatever
  the length. Each key's value is its own address in binary (batch entry, KV
  head, position), so an output says whose key was read:

    ladder-up    scores rise with the position: the row shows its last
                 visible key. One leaked later key takes the row over.
    ladder-down  the same, falling: the first visible key.
    needle       each row looks for one visible key chosen at random among
                 random codes: the row shows that key.
    census       equal weights: the sum of the visible keys' codes, an
                 integer; what is left over names the key that is missing,
                 extra or swapped.
    step         V = 1 from a threshold on: exactly 0 for rows that end
                 before it, at any score.
    one-hot      the weights themselves, when the ladder's range does not fit
                 the engine's scores.

  The report says which were used, and why one was not.

What it looks like
  Windows off by one, causal masks aligned to the wrong corner, the last
  partial tile dropped, keys skipped at tile edges, another batch entry or KV
  head read (head % num_kv_heads), padding seen as keys.

What to look at in the kernel
  For a leak of the key after the last: < against <= in the mask. For misses
  at multiples of a tile: loop bounds. For keys of another head or batch
  entry: the head map and strides.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<Visibility>(context);
    },
};

}  // namespace attnguard
