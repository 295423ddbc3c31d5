// LibTorch's scaled dot product attention on the CPU, as engines for the
// command:
//
//   libtorch:sdpa                  need_attn_weights=false
//   libtorch:sdpa_weights          need_attn_weights=true, up to 1.13
//   libtorch:sdpa,threads=1,causal=tensor
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_LIBTORCH_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_LIBTORCH_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kLibTorchAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_LIBTORCH_H_
