#include <cmath>

#include "guard/base/rng.h"
#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

constexpr std::int64_t kGarbageTile = 16;

struct WorkspaceUninitialisedState {
  bool faulty;
  std::uint64_t calls = 0;
};

// Stands for memory that nobody wrote: other numbers in every call.
double garbage(std::uint64_t call, const VariantRow& row) {
  return 0.25 * std::abs(near_normal(
                    derive_seed(derive_seed(0x6d656d, call),
                                static_cast<std::uint64_t>(row_number(row)))));
}

Status run_workspace_uninitialised(const AttentionCall& call,
                                   WorkspaceUninitialisedState& state) {
  const std::uint64_t number = ++state.calls;
  AttentionVariant variant;
  variant.weights = [&](const VariantRow& row, const KeyRanges& keys,
                        std::span<double> weights) {
    if (!state.faulty ||
        row.place.q_index < round_down(row.place.seq_len_q - 1, kGarbageTile))
      return;
    const double factor = 1 / (1 + garbage(number, row));
    for_each_key(keys, weights, [&](std::int64_t, double& p) { p *= factor; });
  };
  return run_variant(variant, call);
}

}  // namespace

const Fault kFaultWorkspaceUninitialised = {
    .id = "workspace-uninitialised",
    .summary =
        "in the last tile of rows the sum of the softmax begins with what the "
        "memory holds",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"ggml-org/llama.cpp#13852"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"repeatable", "row-sum"},
    .make =
        [](bool faulty) {
          return stateful_engine(WorkspaceUninitialisedState{.faulty = faulty},
                                 run_workspace_uninitialised);
        },
};

}  // namespace attnguard
