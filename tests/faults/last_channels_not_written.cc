#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

constexpr std::int64_t kVector = 16;

Status run_last_channels_not_written(const AttentionCall& call, bool faulty) {
  const Problem& problem = *call.problem;
  Workspace result = attention_of(call);
  const std::int64_t channels =
      faulty ? round_down(problem.head_dim_v, kVector) : problem.head_dim_v;
  for_each_output_row(
      problem, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
        call.output.store_row(b, h, i, 0, channels, result.row(b, h, i).data());
      });
  return ok_status();
}

}  // namespace

const Fault kFaultLastChannelsNotWritten = {
    .id = "last-channels-not-written",
    .summary = "channels behind the last full vector of 16 are never written",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"num_heads=2 seq_len=20 head_dim=72 mask=causal_bottom_right"},
    .seen_by = {"memory", "finite"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_last_channels_not_written);
        },
};

}  // namespace attnguard
