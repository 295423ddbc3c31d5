#include "adapters/llama_cpp/token_rows.h"

namespace attnguard::ggml {
namespace {

TokenRows own_streams(std::int64_t batch, std::int64_t rows) {
  const auto entries = static_cast<std::size_t>(batch);
  return {batch, rows, std::vector<std::int64_t>(entries, 0),
          std::vector<std::int64_t>(entries, rows)};
}

template <typename Length>
TokenRows one_stream(std::int64_t batch, const Length& length) {
  TokenRows result;
  for (std::int64_t b = 0; b < batch; ++b) {
    result.first.push_back(result.rows);
    result.count.push_back(length(b));
    result.rows += length(b);
  }
  return result;
}

}  // namespace

bool shares_one_stream(const Problem& problem) {
  return problem.packed || problem.block_size > 0;
}

TokenRows query_rows(const Problem& problem) {
  if (!shares_one_stream(problem))
    return own_streams(problem.batch, problem.max_len_q());
  return one_stream(problem.batch,
                    [&](std::int64_t b) { return problem.len_q(b); });
}

TokenRows key_rows(const Problem& problem) {
  if (!shares_one_stream(problem))
    return own_streams(problem.batch, problem.max_len_kv());
  return one_stream(problem.batch,
                    [&](std::int64_t b) { return problem.len_kv(b); });
}

TokenRows channel_rows(const Problem& problem) {
  return own_streams(problem.batch, problem.head_dim_v);
}

}  // namespace attnguard::ggml
