// A mask as one window, where it is one.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_WINDOW_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_WINDOW_H_

#include <cstdint>

#include "guard/problem/problem.h"

namespace attnguard::plugin {

// Row i of an entry sees keys from center - left to center + right, both
// counted and -1 for all. The center is i for ATTNGUARD_WINDOW_TOP_LEFT, and
// i + seq_len_kv - seq_len_q for ATTNGUARD_WINDOW_BOTTOM_RIGHT, which is also
// what masks are called that are the same either way.
struct Window {
  std::uint32_t alignment = 0;  // enum attnguard_window
  std::int64_t left = -1;
  std::int64_t right = -1;
};

Window window_of(const Problem& problem);

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_WINDOW_H_
