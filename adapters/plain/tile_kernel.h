// One tile of queries against all keys: flash attention's inner part.
//
// For each tile of keys that some row may see
//   S = scale * Q K^T           [rows, kTileKeys]
//   m' = max(m, row max of S)   rows that see nothing of the tile stay as
//   P = exp(S - m')             they are; masked keys weigh exactly 0 and
//   l = l exp(m - m') + P 1     their values are not read
//   O = O exp(m - m') + P V     [rows, channels]
// and in the end output = O / l.
//
// Sums over keys and over channels run in rising order, one product at a time,
// on every path, so a row's bits depend on that row's own inputs only: not on
// the other rows of the tile, the number of threads or the instruction set.
#ifndef ATTNGUARD_ADAPTERS_PLAIN_TILE_KERNEL_H_
#define ATTNGUARD_ADAPTERS_PLAIN_TILE_KERNEL_H_

#include <cstdint>
#include <limits>

#include "guard/problem/key_ranges.h"

namespace attnguard {

inline constexpr std::int64_t kTileQueries = 64;
inline constexpr std::int64_t kTileKeys = 64;

// Channels of packed values are padded with zeros to a multiple of this.
template <typename Real>
inline constexpr std::int64_t kChannelBlock = 64 / sizeof(Real);

// Keys of one (batch, KV head), packed once and shared by all query tiles.
// Past seq_len_kv both are padded with zeros.
template <typename Real>
struct PackedHead {
  const Real* key = nullptr;    // [key tiles, head_dim_qk, kTileKeys]
  const Real* value = nullptr;  // [key tiles, kTileKeys, channels]
  std::int64_t seq_len_kv = 0;
  std::int64_t head_dim_qk = 0;
  std::int64_t channels = 0;  // head_dim_v, padded
};

// What bends the scores of a head, after the scale; see row_steps.h.
struct Bend {
  double softcap = 0;  // 0: none
  double slope = 0;    // of ALiBi
  double sink = -std::numeric_limits<double>::infinity();

  // The place among the keys of the tile's first query.
  std::int64_t first_position = 0;

  bool bends_scores() const { return softcap > 0 || slope > 0; }
};

// `allowed[i]` are the keys of row i; rows <= kTileQueries.
template <typename Real>
struct QueryTile {
  std::int64_t rows = 0;
  Real scale = 1;
  const Real* query = nullptr;         // [kTileQueries, head_dim_qk]
  const KeyRanges* allowed = nullptr;  // [rows]
  Real* scores = nullptr;              // [kTileQueries, kTileKeys], scratch
  Real* output = nullptr;              // [kTileQueries, channels], result
  Bend bend;
  Real* lse = nullptr;  // [rows], result; nullptr: not wanted
};

enum class InstructionSet {
  kBaseline,  // what the build targets
  kWidest,    // the widest that this machine and this file know
};

// Rows without allowed keys become 0. Query rows past `rows`, up to a multiple
// of 4, are read; what they hold does not matter.
void attend(const PackedHead<float>& head, const QueryTile<float>& tile,
            InstructionSet set = InstructionSet::kWidest);
void attend(const PackedHead<double>& head, const QueryTile<double>& tile,
            InstructionSet set = InstructionSet::kWidest);

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_TILE_KERNEL_H_
