#include "guard/engine/mask_tensor.h"

namespace attnguard {

void allowed_keys(const AttentionCall& call, const RowPlace& place,
                  KeyRanges& keys) {
  const Problem& problem = *call.problem;
  if (call.mask.data == nullptr) {
    problem.mask.allowed(place, keys);
    return;
  }
  const std::int64_t first =
      (place.batch * problem.max_len_q() + place.q_index) *
      problem.max_len_kv();
  keys.clear();
  for (std::int64_t j = 0; j < place.seq_len_kv; ++j) {
    bool may = false;
    if (call.mask.form == MaskForm::kAdditive) {
      double element = 0;
      decode(problem.dtype,
             call.mask.data + (first + j) * static_cast<std::int64_t>(
                                                dtype_size(problem.dtype)),
             1, 1, &element);
      may = element == 0;
    } else {
      const bool set = call.mask.data[first + j] != std::byte{0};
      may = set == (call.mask.form == MaskForm::kBoolean);
    }
    if (may) keys.append(j, j + 1);
  }
}

}  // namespace attnguard
