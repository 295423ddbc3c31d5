#include "guard/base/rng.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct RowUpdateLostState {
  bool faulty;
  std::uint64_t calls = 0;
  Workspace staged;
};

Status run_row_update_lost(const AttentionCall& call,
                           RowUpdateLostState& state) {
  const std::uint64_t seed = derive_seed(0x6c6f7374, ++state.calls);
  const Problem& problem = *call.problem;
  Workspace fresh = attention_of(call);
  const bool first = state.staged.shape() != fresh.shape();
  if (first) state.staged = Workspace(fresh.shape());
  for_each_output_row(problem, [&](std::int64_t b, std::int64_t h,
                                   std::int64_t i) {
    const auto row = static_cast<std::uint64_t>(row_number(problem, b, h, i));
    const bool lost = uniform_below(derive_seed(seed, row), 40) == 0;
    if (!state.faulty || first || !lost)
      state.staged.set_row(b, h, i, fresh.row(b, h, i));
    store_row(state.staged, call, b, h, i);
  });
  return ok_status();
}

}  // namespace

// What a lost update under contention looks like; the odds come from a seed.
const Fault kFaultRowUpdateLost = {
    .id = "row-update-lost",
    .summary =
        "one row in forty, at random, keeps what the previous call left in the "
        "staging buffer",
    .cls = DefectClass::kNondeterminismRace,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility"},
    .make =
        [](bool faulty) {
          return stateful_engine(RowUpdateLostState{.faulty = faulty},
                                 run_row_update_lost);
        },
};

}  // namespace attnguard
