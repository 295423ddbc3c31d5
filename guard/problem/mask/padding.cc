#include "guard/problem/mask/padding.h"

#include <algorithm>
#include <string>

#include "guard/problem/problem.h"

namespace attnguard {
namespace {

// The batch entries that differ: one stands for all where neither the padding
// nor the lengths are given per entry.
std::int64_t unlike_entries(const std::vector<std::int64_t>& pad,
                            const Problem& problem) {
  return static_cast<std::int64_t>(
      std::max(pad.size(), problem.seq_len_kv.size()));
}

}  // namespace

std::int64_t pad_of(const std::vector<std::int64_t>& pad, std::int64_t batch) {
  const auto index = static_cast<std::size_t>(batch);
  return index < pad.size() ? pad[index] : pad.front();
}

Status validate_pad(const std::vector<std::int64_t>& pad,
                    const Problem& problem) {
  if (pad.size() != 1 && static_cast<std::int64_t>(pad.size()) != problem.batch)
    return invalid_argument(
        "pad has " + std::to_string(pad.size()) +
        " numbers for batch=" + std::to_string(problem.batch) +
        ": give one for all, or one per batch entry");
  for (std::int64_t b = 0; b < unlike_entries(pad, problem); ++b)
    if (pad_of(pad, b) > problem.len_kv(b))
      return invalid_argument(
          "pad=" + std::to_string(pad_of(pad, b)) +
          " is more than seq_len_kv=" + std::to_string(problem.len_kv(b)) +
          " of batch entry " + std::to_string(b) +
          "; lower pad or raise seq_len_kv");
  return ok_status();
}

std::vector<std::int64_t> shrunk_pad(const std::vector<std::int64_t>& pad,
                                     const Problem& problem) {
  std::vector<std::int64_t> shrunk = pad;
  if (static_cast<std::int64_t>(pad.size()) > problem.batch)
    shrunk.resize(static_cast<std::size_t>(problem.batch));
  for (std::int64_t b = 0; b < unlike_entries(shrunk, problem); ++b) {
    const std::size_t i =
        std::min(static_cast<std::size_t>(b), shrunk.size() - 1);
    shrunk[i] =
        std::min(shrunk[i], std::max<std::int64_t>(problem.len_kv(b) - 1, 0));
  }
  return shrunk;
}

}  // namespace attnguard
