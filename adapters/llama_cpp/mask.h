// The mask tensor of ggml's kernels, which also carries ALiBi's distances:
// both kernels add slope * mask to the scores, with a slope of 1 where there
// is no ALiBi.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_MASK_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_MASK_H_

#include <cstdint>

#include "adapters/llama_cpp/token_rows.h"
#include "guard/base/dtype.h"
#include "guard/engine/engine.h"

namespace attnguard::ggml {

// Distances of whole tokens up to this are exact in fp16, which the flash
// kernel's mask is.
inline constexpr std::int64_t kMostFp16Distance = 2048;

// Rows of a mask tensor: those of the queries rounded up to 64, which flash
// attention asked for until 2025.
std::int64_t mask_rows(const TokenRows& queries);

// True when some key that the kernel reads is not allowed, when the mask comes
// as a tensor, and with ALiBi: otherwise the kernels run without a mask.
bool needs_mask(const Problem& problem, const TokenRows& keys);

// What the rows of a problem ask of a mask.
struct MaskExtremes {
  bool has_empty_row = false;
  std::int64_t distance = 0;  // Largest |distance| of an allowed key.
};
MaskExtremes mask_extremes(const Problem& problem);

// Fills [keys.rows, mask_rows, 1, streams] elements of `dtype` with 0 where a
// key is allowed (with ALiBi: minus its distance) and -inf elsewhere. From the
// call's mask tensor where it has one, otherwise from the problem's mask.
void fill_mask(const AttentionCall& call, const TokenRows& queries,
               const TokenRows& keys, Dtype dtype, int threads, void* to);

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_MASK_H_
