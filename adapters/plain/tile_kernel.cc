#include "adapters/plain/tile_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "adapters/plain/lanes.h"

namespace attnguard {
namespace {

constexpr std::int64_t kRowBlock = 4;

// Running state of a row's softmax.
template <typename Real>
struct RowState {
  Real largest = -std::numeric_limits<Real>::infinity();
  Real sum = 0;
};

// scores = Q K^T for a block of kRowBlock rows and two vectors of keys: eight
// sums stay in registers.
template <typename Real>
ATTNGUARD_INLINE void score_block(const Real* query, const Real* key,
                                  std::int64_t head_dim, Real* scores) {
  constexpr int kLanes = Lanes<Real>::kCount;
  Vector<Real> sums[kRowBlock][2] = {};
  for (std::int64_t k = 0; k < head_dim; ++k) {
    Vector<Real> left, right;
    load(key + k * kTileKeys, left);
    load(key + k * kTileKeys + kLanes, right);
#pragma GCC unroll 4
    for (int r = 0; r < kRowBlock; ++r) {
      const Real x = query[r * head_dim + k];
      add_product(x, left, sums[r][0]);
      add_product(x, right, sums[r][1]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRowBlock; ++r) {
    store(sums[r][0], scores + r * kTileKeys);
    store(sums[r][1], scores + r * kTileKeys + kLanes);
  }
}

// output += P V over keys [begin, end) of the tile, kRows rows and two vectors
// of channels.
template <typename Real, int kRows>
ATTNGUARD_INLINE void mix_block(const Real* weights, const Real* value,
                                std::int64_t channels, std::int64_t begin,
                                std::int64_t end, Real* output) {
  constexpr int kLanes = Lanes<Real>::kCount;
  Vector<Real> sums[kRows][2];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    load(output + r * channels, sums[r][0]);
    load(output + r * channels + kLanes, sums[r][1]);
  }
  for (std::int64_t j = begin; j < end; ++j) {
    Vector<Real> left, right;
    load(value + j * channels, left);
    load(value + j * channels + kLanes, right);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Real weight = weights[r * kTileKeys + j];
      add_product(weight, left, sums[r][0]);
      add_product(weight, right, sums[r][1]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    store(sums[r][0], output + r * channels);
    store(sums[r][1], output + r * channels + kLanes);
  }
}

template <typename Real, int kRows>
ATTNGUARD_INLINE void mix(const Real* weights, const Real* value,
                          std::int64_t channels, std::int64_t begin,
                          std::int64_t end, Real* output) {
  for (std::int64_t c = 0; c < channels; c += kChannelBlock<Real>)
    mix_block<Real, kRows>(weights, value + c, channels, begin, end,
                           output + c);
}

// Multiplies a row by exp(-by), by >= 0.
template <typename Real>
ATTNGUARD_INLINE void rescale(Real by, std::int64_t channels, Real* output,
                              Real& sum) {
  Vector<Real> factors = Vector<Real>{} - by;
  exp_lanes<Real>(factors);
  const Real factor = factors[0];
  sum *= factor;
  for (std::int64_t c = 0; c < channels; c += Lanes<Real>::kCount) {
    Vector<Real> part;
    load(output + c, part);
    part = part * factor;
    store(part, output + c);
  }
}

// Scores of a row become weights relative to the largest score so far.
template <typename Real>
ATTNGUARD_INLINE void weigh_row(Real* scores, Real scale, std::int64_t channels,
                                Real* output, RowState<Real>& state) {
  constexpr int kLanes = Lanes<Real>::kCount;
  constexpr Real kLowest = -std::numeric_limits<Real>::infinity();
  Vector<Real> largest = Vector<Real>{} + kLowest;
  for (std::int64_t j = 0; j < kTileKeys; j += kLanes) {
    Vector<Real> part;
    load(scores + j, part);
    part = part * scale;
    largest = part > largest ? part : largest;
    store(part, scores + j);
  }
  const Real tile_largest = largest_lane<Real>(largest);
  if (tile_largest > state.largest) {
    rescale(tile_largest - state.largest, channels, output, state.sum);
    state.largest = tile_largest;
  }
  // While every score is -inf the weights are 0, not exp(-inf + inf).
  const Real shift = state.largest == kLowest ? Real{0} : state.largest;
  Vector<Real> sum = {};
  for (std::int64_t j = 0; j < kTileKeys; j += kLanes) {
    Vector<Real> part;
    load(scores + j, part);
    part = part - shift;
    exp_lanes<Real>(part);
    sum = sum + part;
    store(part, scores + j);
  }
  state.sum += sum_of_lanes<Real>(sum);
}

// Calls visit(begin, end) for the row's allowed keys in the tile, counted from
// the tile's first key.
template <typename Visit>
ATTNGUARD_INLINE void for_each_part(const KeyRanges& allowed,
                                    std::int64_t first, std::int64_t count,
                                    Visit&& visit) {
  for (const KeyRange& range : allowed.ranges()) {
    const std::int64_t begin = std::max<std::int64_t>(range.begin - first, 0);
    const std::int64_t end = std::min(range.end - first, count);
    if (begin < end) visit(begin, end);
  }
}

std::int64_t allowed_in_tile(const KeyRanges& allowed, std::int64_t first,
                             std::int64_t count) {
  std::int64_t total = 0;
  for_each_part(
      allowed, first, count,
      [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
  return total;
}

// Puts -inf at every key of the tile that the row may not see.
template <typename Real>
void hide(const KeyRanges& allowed, std::int64_t first, std::int64_t count,
          Real* scores) {
  constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
  std::int64_t next = 0;
  for_each_part(allowed, first, count,
                [&](std::int64_t begin, std::int64_t end) {
                  std::fill(scores + next, scores + begin, kHidden);
                  next = end;
                });
  std::fill(scores + next, scores + kTileKeys, kHidden);
}

// Scales, caps and biases the scores of row i, whose first key is `first`.
template <typename Real>
void bend_row(const Bend& bend, Real scale, std::int64_t i, std::int64_t first,
              std::int64_t count, Real* scores) {
  const Real cap = static_cast<Real>(bend.softcap);
  const Real slope = static_cast<Real>(bend.slope);
  for (std::int64_t j = 0; j < count; ++j) {
    Real score = scores[j] * scale;
    if (cap > 0) score = cap * std::tanh(score / cap);
    scores[j] = score - slope * static_cast<Real>(std::abs(
                                    first + j - bend.first_position - i));
  }
}

// The tile of `count` keys that begins at key `first`.
template <typename Real>
ATTNGUARD_INLINE void attend_keys(const PackedHead<Real>& head,
                                  const QueryTile<Real>& tile,
                                  std::int64_t first, std::int64_t count,
                                  RowState<Real>* states) {
  std::int64_t seen[kTileQueries];
  std::int64_t lowest = count, total = 0;
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    seen[i] = allowed_in_tile(tile.allowed[i], first, count);
    lowest = std::min(lowest, seen[i]);
    total += seen[i];
  }
  if (total == 0) return;

  const Real* key = head.key + first * head.head_dim_qk;
  const Real* value = head.value + first * head.channels;
  for (std::int64_t i = 0; i < tile.rows; i += kRowBlock)
    for (std::int64_t j = 0; j < kTileKeys; j += 2 * Lanes<Real>::kCount)
      score_block(tile.query + i * head.head_dim_qk, key + j, head.head_dim_qk,
                  tile.scores + i * kTileKeys + j);

  for (std::int64_t i = 0; i < tile.rows; ++i) {
    if (seen[i] == 0) continue;
    Real* scores = tile.scores + i * kTileKeys;
    const bool bends = tile.bend.bends_scores();
    if (bends) bend_row(tile.bend, tile.scale, i, first, count, scores);
    if (seen[i] < kTileKeys) hide(tile.allowed[i], first, count, scores);
    weigh_row(scores, bends ? Real{1} : tile.scale, head.channels,
              tile.output + i * head.channels, states[i]);
  }

  if (lowest == count) {  // every row sees every key
    for (std::int64_t i = 0; i < tile.rows; i += kRowBlock)
      mix<Real, kRowBlock>(tile.scores + i * kTileKeys, value, head.channels, 0,
                           count, tile.output + i * head.channels);
    return;
  }
  for (std::int64_t i = 0; i < tile.rows; ++i)
    for_each_part(
        tile.allowed[i], first, count,
        [&](std::int64_t begin, std::int64_t end)
            __attribute__((always_inline)) {
              mix<Real, 1>(tile.scores + i * kTileKeys, value, head.channels,
                           begin, end, tile.output + i * head.channels);
            });
}

template <typename Real>
ATTNGUARD_INLINE void attend_body(const PackedHead<Real>& head,
                                  const QueryTile<Real>& tile) {
  RowState<Real> states[kTileQueries];
  std::fill_n(tile.output, kTileQueries * head.channels, Real{0});
  for (std::int64_t first = 0; first < head.seq_len_kv; first += kTileKeys)
    attend_keys(head, tile, first, std::min(kTileKeys, head.seq_len_kv - first),
                states);
  const Real sink = static_cast<Real>(tile.bend.sink);
  constexpr Real kNone = -std::numeric_limits<Real>::infinity();
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    RowState<Real>& state = states[i];
    Real* output = tile.output + i * head.channels;
    if (sink > state.largest && state.largest > kNone) {
      rescale(sink - state.largest, head.channels, output, state.sum);
      state.largest = sink;
    }
    if (sink > kNone)
      state.sum += state.largest > kNone ? std::exp(sink - state.largest) : 1;
    if (tile.lse != nullptr)
      tile.lse[i] = std::max(state.largest, sink) + std::log(state.sum);
    if (tile.allowed[i].empty()) continue;
    for (std::int64_t c = 0; c < head.channels; ++c) output[c] /= state.sum;
  }
}

#if defined(__x86_64__)
template <typename Real>
__attribute__((target("avx2"))) void attend_avx2(const PackedHead<Real>& head,
                                                 const QueryTile<Real>& tile) {
  attend_body(head, tile);
}
#endif

template <typename Real>
void attend_with(InstructionSet set, const PackedHead<Real>& head,
                 const QueryTile<Real>& tile) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2 && set == InstructionSet::kWidest)
    return attend_avx2(head, tile);
#endif
  (void)set;
  attend_body(head, tile);
}

}  // namespace

void attend(const PackedHead<float>& head, const QueryTile<float>& tile,
            InstructionSet set) {
  attend_with(set, head, tile);
}

void attend(const PackedHead<double>& head, const QueryTile<double>& tile,
            InstructionSet set) {
  attend_with(set, head, tile);
}

}  // namespace attnguard
