// ggml's CPU attention kernels, as llama.cpp runs them, found on the machine
// at run time: nothing of ggml is linked, included or shipped, so this builds
// everywhere and works with any recent llama.cpp build.
//
//   ggml:flash    ggml_flash_attn_ext: the fused kernel
//   ggml:softmax  ggml_mul_mat, ggml_soft_max_ext, ggml_mul_mat: what llama.cpp
//                 does when flash attention is off (V is stored transposed)
//
// Options:
//   kv=TYPE    how keys and values are stored: f32, f16, bf16 or q8_0. Absent:
//              as the problem's dtype. k=TYPE and v=TYPE set one of the two.
//   threads=N  absent: as many as OpenMP would use.
//   path=DIR   the folder that holds libggml-base.so, or a build folder above
//              it. Absent: the variable ATTNGUARD_GGML_PATH, else what
//              ci/fetch_engines.sh fetched.
//
// What the kernels see: queries become f32, keys and values the stored type,
// and the mask an additive tensor of 0 and -inf per batch entry. Entries
// shorter than the longest are padded, and their padding is masked, which is
// how llama.cpp treats empty cache slots: ggml multiplies what lies there by a
// weight of 0, so a NaN in padding reaches the output and a finite value does
// not. Packed and paged problems are run as one stream, see token_rows.h.
//
// Features, each by the kernels' own arguments and as llama.cpp uses them:
//   softcap       flash: logit_softcap; softmax: nodes of scale and tanh before
//                 ggml_soft_max_ext
//   alibi         max_bias, and distances in the mask; flash holds them in
//                 fp16, so that beyond 2048 tokens it is unsupported
//   sinks         ..._add_sinks, where the library has it
//   value_in_key  a view of the key tensor
//   mask_tensor   converted to ggml's mask
//   weights       softmax: the result of ggml_soft_max_ext
//
// Known of ggml 0.15.3: with a soft-cap and no mask, flash counts the padding
// of its last tile of keys (ggml-org/llama.cpp#29034). The adapter gives a mask
// only where some key is not allowed, as the kernel's interface permits.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_GGML_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_GGML_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kGgmlAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_GGML_H_
