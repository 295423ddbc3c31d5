#include <vector>

#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

constexpr std::int64_t kStoreWidth = 16;

Status run_writes_between_rows(const AttentionCall& call, bool faulty) {
  const Problem& problem = *call.problem;
  Workspace result = attention_of(call);
  for_each_output_row(
      problem, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
        std::vector<double> row = result.row(b, h, i);
        // Behind the last row there is no gap: that is another fault.
        if (faulty && i + 1 < problem.len_q(b))
          row.resize(static_cast<std::size_t>(
              round_up(problem.head_dim_v, kStoreWidth)));
        call.output.store_row(b, h, i, 0, static_cast<std::int64_t>(row.size()),
                              row.data());
      });
  return ok_status();
}

}  // namespace

const Fault kFaultWritesBetweenRows = {
    .id = "writes-between-rows",
    .summary =
        "stores whole vectors of 16 channels, over the end of rows of 40",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"num_heads=2 seq_len=20 head_dim=40 mask=causal_bottom_right "
                 "output_strides=1920,960,48,1"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_writes_between_rows);
        },
};

}  // namespace attnguard
