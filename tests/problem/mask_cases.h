// Masks and their definitions, key by key: what the tests of masks compare
// with. The definitions share nothing with the library's.
#ifndef ATTNGUARD_TESTS_PROBLEM_MASK_CASES_H_
#define ATTNGUARD_TESTS_PROBLEM_MASK_CASES_H_

#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "guard/problem/mask/mask.h"

namespace attnguard {

using Row = const RowPlace&;
using Key = std::int64_t;

struct MaskCase {
  const char* text;
  std::function<bool(Row row, Key k)> allowed;
};

// The key that is the query's own token, last query and last key aligned.
inline std::int64_t own_key(Row row) {
  return row.q_index + row.seq_len_kv - row.seq_len_q;
}

inline bool in_window(std::int64_t k, std::int64_t center, std::int64_t left,
                      std::int64_t right) {
  return (left < 0 || k >= center - left) && (right < 0 || k <= center + right);
}

inline std::int64_t distance(Row row, std::int64_t k) {
  return std::abs(k - own_key(row));
}

// The chunk that a place is in, rounding down also below 0.
inline std::int64_t chunk_of(std::int64_t place, std::int64_t chunk) {
  std::int64_t number = 0;
  while (place >= chunk) place -= chunk, ++number;
  while (place < 0) place += chunk, --number;
  return number;
}

// The document of a token, -1 for none.
inline int document_of(std::int64_t token,
                       const std::vector<std::int64_t>& lengths) {
  std::vector<int> documents;
  for (std::size_t d = 0; d < lengths.size(); ++d)
    documents.insert(documents.end(), static_cast<std::size_t>(lengths[d]),
                     static_cast<int>(d));
  const auto size = static_cast<std::int64_t>(documents.size());
  return token < 0 || token >= size
             ? -1
             : documents[static_cast<std::size_t>(token)];
}

inline bool same_document(Row row, std::int64_t k,
                          const std::vector<std::int64_t>& lengths) {
  const int document = document_of(k, lengths);
  return document >= 0 && document == document_of(own_key(row), lengths);
}

inline bool tree_allows(Row row, std::int64_t k,
                        const std::vector<std::int64_t>& parents) {
  const auto first = row.seq_len_kv - static_cast<std::int64_t>(parents.size());
  const std::int64_t own = own_key(row);
  if (own < 0 || k > own) return false;
  if (k == own || k < first) return true;
  const std::int64_t parent = parents[static_cast<std::size_t>(own - first)];
  if (parent < 0) return false;
  RowPlace above = row;
  above.q_index -= own - (first + parent);
  return tree_allows(above, k, parents);
}

inline bool in_one_span(
    std::int64_t a, std::int64_t b,
    const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  for (const auto& [begin, length] : spans)
    if (a >= begin && a < begin + length && b >= begin && b < begin + length)
      return true;
  return false;
}

inline const std::vector<MaskCase> kBasicMaskCases = {
    {"full", [](Row, Key) { return true; }},
    {"causal_top_left", [](Row row, Key k) { return k <= row.q_index; }},
    {"causal_bottom_right", [](Row row, Key k) { return k <= own_key(row); }},
    {"prefix_lm(prefix=3)",
     [](Row row, Key k) { return k < 3 || k <= own_key(row); }},
    {"prefix_lm(prefix=0)", [](Row row, Key k) { return k <= own_key(row); }},
    {"sliding_window(left=2,right=0)",
     [](Row row, Key k) { return in_window(k, own_key(row), 2, 0); }},
    {"sliding_window(left=0,right=2)",
     [](Row row, Key k) { return in_window(k, own_key(row), 0, 2); }},
    {"sliding_window(left=-1,right=1)",
     [](Row row, Key k) { return in_window(k, own_key(row), -1, 1); }},
    {"sliding_window(left=1,right=-1)",
     [](Row row, Key k) { return in_window(k, own_key(row), 1, -1); }},
    {"sliding_window_top_left(left=1,right=1)",
     [](Row row, Key k) { return in_window(k, row.q_index, 1, 1); }},
    {"sliding_window_top_left(left=-1,right=-1)",
     [](Row, Key) { return true; }},
    {"causal_top_left+sliding_window_top_left(left=2,right=5)",
     [](Row row, Key k) { return k <= row.q_index && k >= row.q_index - 2; }},
    {"prefix_lm(prefix=4)+sliding_window(left=1,right=0)",
     [](Row row, Key k) {
       return (k < 4 || k <= own_key(row)) && in_window(k, own_key(row), 1, 0);
     }},
};

inline const std::vector<MaskCase> kWindowMaskCases = {
    {"sliding_window_keys(keys=1)",
     [](Row row, Key k) { return k == own_key(row); }},
    {"sliding_window_keys(keys=3)",
     [](Row row, Key k) { return k <= own_key(row) && distance(row, k) < 3; }},
    {"causal_bottom_right+sliding_window_keys(keys=4)",
     [](Row row, Key k) { return k <= own_key(row) && distance(row, k) < 4; }},
    {"sliding_window_two_sided(width=0)",
     [](Row row, Key k) { return k == own_key(row); }},
    {"sliding_window_two_sided(width=2)",
     [](Row row, Key k) { return distance(row, k) <= 2; }},
    {"window_symmetric(width=1)",
     [](Row row, Key k) { return k == own_key(row); }},
    {"window_symmetric(width=4)",
     [](Row row, Key k) { return distance(row, k) <= 2; }},
    {"window_symmetric(width=5)",
     [](Row row, Key k) { return distance(row, k) <= 2; }},
    {"encoder_window(width=1)",
     [](Row row, Key k) { return k == own_key(row); }},
    {"encoder_window(width=3)",
     [](Row row, Key k) { return distance(row, k) < 3; }},
    {"causal_bottom_right+encoder_window(width=2)",
     [](Row row, Key k) { return k <= own_key(row) && distance(row, k) < 2; }},
    {"sliding_window_keys(keys=1099511627776)",
     [](Row row, Key k) { return k <= own_key(row); }},
};

inline const std::vector<MaskCase> kGroupMaskCases = {
    {"chunked_local(chunk=1)",
     [](Row row, Key k) { return k == own_key(row); }},
    {"chunked_local(chunk=3)",
     [](Row row, Key k) { return k / 3 == chunk_of(own_key(row), 3); }},
    {"causal_bottom_right+chunked_local(chunk=4)",
     [](Row row, Key k) {
       return k <= own_key(row) && k / 4 == chunk_of(own_key(row), 4);
     }},
    {"chunked_local_from_padding(chunk=2,pad=1:0:5)",
     [](Row row, Key k) {
       const Key pad = row.batch == 0 ? 1 : row.batch == 1 ? 0 : 5;
       return k >= pad &&
              chunk_of(k - pad, 2) == chunk_of(own_key(row) - pad, 2);
     }},
    {"documents(lengths=3)",
     [](Row row, Key k) { return same_document(row, k, {3}); }},
    {"documents(lengths=0:2:0:0:3:1)",
     [](Row row, Key k) {
       return same_document(row, k, {0, 2, 0, 0, 3, 1});
     }},
    {"causal_bottom_right+documents(lengths=2:4:0)",
     [](Row row, Key k) {
       return k <= own_key(row) && same_document(row, k, {2, 4, 0});
     }},
    {"left_padding(pad=2)",
     [](Row row, Key k) { return k >= 2 && own_key(row) >= 2; }},
    {"left_padding(pad=3:0:6)",
     [](Row row, Key k) {
       const Key pad = row.batch == 0 ? 3 : row.batch == 1 ? 0 : 6;
       return k >= pad && own_key(row) >= pad;
     }},
    {"causal_bottom_right+left_padding(pad=1:0:4)",
     [](Row row, Key k) {
       return k <= own_key(row) && k >= (row.batch == 0   ? 1
                                         : row.batch == 1 ? 0
                                                          : 4);
     }},
    {"left_padding_keys(pad=3:0:6)",
     [](Row row, Key k) {
       return k >= (row.batch == 0 ? 3 : row.batch == 1 ? 0 : 6);
     }},
    {"tree(parents=-1)", [](Row row, Key k) { return k <= own_key(row); }},
    {"tree(parents=-1:0:0:1)",
     [](Row row, Key k) {
       return tree_allows(row, k, {-1, 0, 0, 1});
     }},
    {"tree(parents=-1:-1:0:1:2:2)",
     [](Row row, Key k) {
       return tree_allows(row, k, {-1, -1, 0, 1, 2, 2});
     }},
    {"tree(parents=-1:0:0)+sliding_window_keys(keys=2)",
     [](Row row, Key k) {
       return tree_allows(row, k, {-1, 0, 0}) && distance(row, k) < 2;
     }},
    {"bidirectional_spans(begin=2,length=3)",
     [](Row row, Key k) {
       return k <= own_key(row) || in_one_span(k, own_key(row), {{2, 3}});
     }},
    {"bidirectional_spans(begin=0:2:2:5,length=2:0:2:2)",
     [](Row row, Key k) {
       return k <= own_key(row) ||
              in_one_span(k, own_key(row), {{0, 2}, {2, 2}, {5, 2}});
     }},
};

inline std::vector<MaskCase> all_mask_cases() {
  std::vector<MaskCase> cases;
  for (const auto* part :
       {&kBasicMaskCases, &kWindowMaskCases, &kGroupMaskCases})
    cases.insert(cases.end(), part->begin(), part->end());
  return cases;
}

// Calls visit(row) for rows of three batch entries and lengths from 0 on.
template <typename Visit>
void for_each_small_row(Visit visit) {
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t len_q = 0; len_q <= 9; ++len_q)
      for (std::int64_t len_kv = 0; len_kv <= 9; ++len_kv)
        for (std::int64_t q = 0; q < len_q; ++q)
          visit(RowPlace{b, q, len_q, len_kv});
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_PROBLEM_MASK_CASES_H_
