// Which rows of ggml's tensors the tokens of a problem are.
//
// ggml knows neither cu_seqlens nor block tables. A padded problem has one
// stream per batch entry, as llama.cpp's cache with a stream per sequence. A
// packed or paged problem is one stream, as llama.cpp's unified cache: the
// tokens of all sequences one behind another, every query beside every key,
// and only the mask keeps the sequences apart.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_TOKEN_ROWS_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_TOKEN_ROWS_H_

#include <cstdint>
#include <vector>

#include "guard/problem/problem.h"

namespace attnguard::ggml {

struct TokenRows {
  std::int64_t streams = 1;
  std::int64_t rows = 0;  // of each stream

  // By batch entry: the row of its first token, and how many of its positions
  // have a row. In a stream of its own, padding has rows too.
  std::vector<std::int64_t> first, count;

  // The row of an entry's first token in a tensor of this many heads.
  std::int64_t row(std::int64_t entry, std::int64_t head,
                   std::int64_t heads) const {
    return (stream(entry) * heads + head) * rows +
           first[static_cast<std::size_t>(entry)];
  }
  std::int64_t stream(std::int64_t entry) const {
    return streams == 1 ? 0 : entry;
  }
};

bool shares_one_stream(const Problem& problem);

TokenRows query_rows(const Problem& problem);
TokenRows key_rows(const Problem& problem);

// The rows of a value tensor that is stored transposed: its channels. Only
// for problems that do not share one stream.
TokenRows channel_rows(const Problem& problem);

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_TOKEN_ROWS_H_
