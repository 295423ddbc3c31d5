#include <algorithm>
#include <vector>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
namespace {

void clear_older_tokens(const CacheAppend& append) {
  const Problem& problem = *append.problem;
  const std::vector<double> zeros(static_cast<std::size_t>(
      std::max(problem.head_dim_qk, problem.head_dim_v)));
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g) {
      const std::int64_t first = problem.len_kv(b) - append.num_new;
      for (std::int64_t j = round_down(first, kBlock); j < first; ++j) {
        append.key.store_row(b, g, j, 0, problem.head_dim_qk, zeros.data());
        append.value.store_row(b, g, j, 0, problem.head_dim_v, zeros.data());
      }
    }
}

}  // namespace

// The block is initialised whenever it is written to, not when it is handed
// out.
const Defect kDefectAppendClearsBlock = {
    .id = "append-clears-block",
    .summary =
        "appending clears the older tokens of the block of 16 that is appended "
        "to",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "block_size=16 mask=causal_bottom_right",
                 "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            clear_older_tokens(append);
            return append_tokens(append);
          };
          return variant;
        },
};

}  // namespace attnguard
