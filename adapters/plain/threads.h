#ifndef ATTNGUARD_ADAPTERS_PLAIN_THREADS_H_
#define ATTNGUARD_ADAPTERS_PLAIN_THREADS_H_

#include <cstdint>

#include "guard/problem/problem.h"

namespace attnguard {

// Starting threads costs more than a small problem: below about 2^22 products
// a call runs on the caller's thread.
inline bool is_worth_threads(const Problem& problem) {
  return problem.batch * problem.num_heads * problem.max_len_q() *
             problem.max_len_kv() * (problem.head_dim_qk + problem.head_dim_v) >
         (1 << 22);
}

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_THREADS_H_
