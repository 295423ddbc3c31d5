// cache-write: appending writes the owned slots and no others.
#include "guard/check/baseline.h"
#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/appendable.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

class CacheWrite final : public Check {
 public:
  explicit CacheWrite(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    base_.plan(plan, context_);
    const auto scores = std::make_shared<RandomScores>(problem, seed);
    const auto values = std::make_shared<RandomValues>(problem, seed);
    const std::int64_t most = most_tokens_to_append(problem);
    tickets_.push_back(plan.request(scores, values, {.append = 1}));
    if (most > 1)
      tickets_.push_back(plan.request(scores, values, {.append = most}));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    base_.judge(seen);
    for (const Ticket& ticket : tickets_) {
      if (ticket.call != seen.call) continue;
      ++calls_;
      for (const MemoryFault& fault : seen.append_faults)
        report(seen, fault, sink);
      // The same cache, the same shape: the outputs are those of the base.
      if (seen.append_faults.empty()) judge_output(seen, sink);
    }
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    if (!base_.too_noisy(result))
      conclude(sink, calls_ > 0, "nothing was appended", result);
    result.coverage = std::to_string(calls_) +
                      " calls, every place of the cache, " +
                      std::to_string(rows_) + " rows";
  }

 private:
  void report(const Observation& seen, const MemoryFault& fault,
              FindingSink& sink) {
    const Problem& problem = context_.problem;
    Finding finding{.kind = FindingKind::kOverwrite,
                    .probe = seen.planned->scores->name(),
                    .batch = fault.entry,
                    .key = fault.position};
    finding.tensor = fault.tensor;
    finding.element = fault.element;
    const std::string tensor(fault.tensor);
    const std::int64_t appended = seen.planned->mode.append;
    if (fault.entry < 0) {
      finding.message = "appending " + std::to_string(appended) +
                        " tokens wrote outside of the " + tensor + " cache";
    } else if (fault.entry == problem.batch) {
      finding.batch = finding.key = -1;
      finding.message = "appending " + std::to_string(appended) +
                        " tokens wrote into a block of the " + tensor +
                        " cache that belongs to nobody";
    } else {
      const bool owned =
          fault.position >= problem.len_kv(fault.entry) - appended &&
          fault.position < problem.len_kv(fault.entry);
      finding.message = "batch " + std::to_string(fault.entry) + ", KV head " +
                        std::to_string(fault.head) + ": the " + tensor +
                        " of token " + std::to_string(fault.position) +
                        (owned ? " was not appended"
                               : " was overwritten by appending " +
                                     std::to_string(appended) + " tokens");
    }
    sink.add(std::move(finding));
  }

  void judge_output(const Observation& seen, FindingSink& sink) {
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      ++rows_;
      double change = 0;
      if (!base_.moved(seen, b, h, i, change)) return;
      Finding finding{.kind = FindingKind::kValue,
                      .probe = seen.planned->scores->name(),
                      .batch = b,
                      .head = h,
                      .query = i,
                      .observed = change,
                      .bound = base_.limit()};
      finding.message = row_name(b, h, i) + ": output differs by " +
                        format_short(change) +
                        " when the last tokens are appended first, with the "
                        "same cache";
      sink.add(std::move(finding));
    });
  }

  CheckContext context_;
  Baseline base_;
  std::vector<Ticket> tickets_;
  std::int64_t calls_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace

const CheckInfo kCheckCacheWrite = {
    .id = "cache-write",
    .summary = "appending writes the owned slots and no others",
    .cost = "at most 2 calls",
    .explanation =
        R"(cache-write: appending writes the owned slots and no others

What it sees
  Of engines that append to a cache: the last one and the last three tokens of
  every entry are left out of the cache, which holds stale tokens there, and
  the engine appends them. Afterwards every place of the cache must hold what
  it must, to the bit: the new tokens where they belong, everything else as it
  was, blocks of other sequences and of nobody included. Attention over that
  cache must then give the bits of the base call.

      block 7 of entry 1     k k k k . .     append one token
                             k k k k N .     and nothing else changed

What it looks like
  A slot mapping that is off by one at block edges, the block of another entry,
  keys written and values forgotten, a write through the maximum's length, the
  token before overwritten.

Real reports
  Class stale_or_uninit of the survey (15 reports: memory not written, or
  written at the wrong time) and index_overflow_oob.

What to look at in the kernel
  slot = block_table[entry][position / block_size] * block_size +
  position % block_size, for the position before or after the length grows?

Tolerance
  The cache is compared bit for bit; outputs as in sequence-isolation.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      const Problem& problem = context.problem;
      if (context.engine == nullptr || !context.engine->append)
        return "the engine does not append to a cache";
      if (problem.packed && problem.block_size == 0)
        return "packed keys have no place for new tokens";
      if (std::string reason = no_row_with_keys(problem); !reason.empty())
        return reason;
      return most_tokens_to_append(problem) < 1
                 ? "an entry has no token of its own to append"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<CacheWrite>(context);
    },
};

}  // namespace attnguard
