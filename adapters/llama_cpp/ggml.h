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
// not.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_GGML_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_GGML_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kGgmlAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_GGML_H_
