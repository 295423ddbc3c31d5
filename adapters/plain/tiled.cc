// Tiled attention with an online softmax, as fast kernels compute it: tiles of
// 64 queries by 64 keys, sums in fp32 (fp64 for fp64). See tile_kernel.h.
#include <algorithm>
#include <limits>
#include <vector>

#include "adapters/plain/builtin_table.h"
#include "adapters/plain/threads.h"
#include "adapters/plain/tile_kernel.h"
#include "guard/engine/attention_variant.h"
#include "guard/engine/mask_tensor.h"

namespace attnguard {
namespace {

std::int64_t tiles_of(std::int64_t length, std::int64_t tile) {
  return (length + tile - 1) / tile;
}

// Keys and values of every (batch, KV head), converted and laid out in tiles.
template <typename Real>
class PackedKeys {
 public:
  explicit PackedKeys(const Problem& problem)
      : problem_(problem),
        tiles_(tiles_of(problem.max_len_kv(), kTileKeys)),
        channels_(tiles_of(problem.head_dim_v, kChannelBlock<Real>) *
                  kChannelBlock<Real>) {
    const std::int64_t keys =
        problem.batch * problem.num_kv_heads * tiles_ * kTileKeys;
    key_.resize(static_cast<std::size_t>(keys * problem.head_dim_qk));
    value_.resize(static_cast<std::size_t>(keys * channels_));
  }

  std::int64_t tiles() const { return tiles_; }

  PackedHead<Real> head(std::int64_t batch, std::int64_t kv_head) const {
    const std::int64_t first = first_key(batch, kv_head);
    return {key_.data() + first * problem_.head_dim_qk,
            value_.data() + first * channels_, problem_.len_kv(batch),
            problem_.head_dim_qk, channels_};
  }

  // Packs one tile of keys; tiles may be packed in parallel.
  void pack(const AttentionCall& call, std::int64_t batch, std::int64_t kv_head,
            std::int64_t tile) {
    const std::int64_t begin = tile * kTileKeys;
    const std::int64_t end =
        std::min(begin + kTileKeys, problem_.len_kv(batch));
    const std::int64_t first = first_key(batch, kv_head) + begin;
    std::vector<double> row(static_cast<std::size_t>(
        std::max(problem_.head_dim_qk, problem_.head_dim_v)));
    for (std::int64_t j = begin; j < end; ++j) {
      call.key.load_row(batch, kv_head, j, 0, problem_.head_dim_qk, row.data());
      Real* key = key_.data() + first * problem_.head_dim_qk + j - begin;
      for (std::int64_t k = 0; k < problem_.head_dim_qk; ++k)
        key[k * kTileKeys] = static_cast<Real>(row[k]);
      call.value.load_row(batch, kv_head, j, 0, problem_.head_dim_v,
                          row.data());
      std::copy_n(row.data(), problem_.head_dim_v,
                  value_.data() + (first + j - begin) * channels_);
    }
  }

 private:
  std::int64_t first_key(std::int64_t batch, std::int64_t kv_head) const {
    return (batch * problem_.num_kv_heads + kv_head) * tiles_ * kTileKeys;
  }

  const Problem& problem_;
  std::int64_t tiles_;
  std::int64_t channels_;
  std::vector<Real> key_;
  std::vector<Real> value_;
};

// Buffers of one thread, and the work of one query tile.
template <typename Real>
class TileRunner {
 public:
  TileRunner(const AttentionCall& call, const PackedKeys<Real>& keys)
      : call_(call),
        problem_(*call.problem),
        keys_(keys),
        row_(static_cast<std::size_t>(
            std::max(problem_.head_dim_qk, problem_.head_dim_v))),
        query_(static_cast<std::size_t>(kTileQueries * problem_.head_dim_qk)),
        scores_(static_cast<std::size_t>(kTileQueries * kTileKeys)),
        output_(
            static_cast<std::size_t>(kTileQueries * keys.head(0, 0).channels)),
        lse_(static_cast<std::size_t>(kTileQueries)),
        allowed_(static_cast<std::size_t>(kTileQueries)) {}

  void run(std::int64_t batch, std::int64_t head, std::int64_t tile) {
    const std::int64_t begin = tile * kTileQueries;
    const std::int64_t rows =
        std::min(kTileQueries, problem_.len_q(batch) - begin);
    if (rows <= 0) return;
    for (std::int64_t i = 0; i < rows; ++i) {
      allowed_keys(call_, problem_.row(batch, begin + i),
                   allowed_[static_cast<std::size_t>(i)]);
      call_.query.load_row(batch, head, begin + i, 0, problem_.head_dim_qk,
                           row_.data());
      std::copy_n(row_.data(), problem_.head_dim_qk,
                  query_.data() + i * problem_.head_dim_qk);
    }
    const PackedHead<Real> packed =
        keys_.head(batch, problem_.kv_head_of(head));
    const Bend bend{problem_.softcap.value_or(0), problem_.alibi_slope(head),
                    problem_.sink(head),
                    problem_.row(batch, begin).bottom_right()};
    const bool wants_lse = call_.softmax_lse.data != nullptr;
    attend(packed, {rows, static_cast<Real>(problem_.scale()), query_.data(),
                    allowed_.data(), scores_.data(), output_.data(), bend,
                    wants_lse ? lse_.data() : nullptr});
    for (std::int64_t i = 0; i < rows; ++i) {
      std::copy_n(output_.data() + i * packed.channels, problem_.head_dim_v,
                  row_.data());
      if (allowed_[static_cast<std::size_t>(i)].empty())
        fill_empty_row(batch, head);
      if (wants_lse) {
        const double lse = lse_[static_cast<std::size_t>(i)];
        call_.softmax_lse.store_row(batch, head, begin + i, 0, 1, &lse);
      }
      call_.output.store_row(batch, head, begin + i, 0, problem_.head_dim_v,
                             row_.data());
    }
  }

 private:
  // What the problem promises for a row without keys, into row_.
  void fill_empty_row(std::int64_t batch, std::int64_t head) {
    const std::int64_t channels = problem_.head_dim_v;
    if (problem_.empty_row == EmptyRow::kNan)
      std::fill_n(row_.data(), channels,
                  std::numeric_limits<double>::quiet_NaN());
    const std::int64_t keys = problem_.len_kv(batch);
    if (problem_.empty_row != EmptyRow::kMean || keys == 0) return;
    std::vector<double> value(static_cast<std::size_t>(channels));
    for (std::int64_t j = 0; j < keys; ++j) {
      call_.value.load_row(batch, problem_.kv_head_of(head), j, 0, channels,
                           value.data());
      for (std::int64_t c = 0; c < channels; ++c) row_[c] += value[c];
    }
    for (std::int64_t c = 0; c < channels; ++c)
      row_[c] /= static_cast<double>(keys);
  }

  const AttentionCall& call_;
  const Problem& problem_;
  const PackedKeys<Real>& keys_;
  std::vector<double> row_;
  std::vector<Real> query_;
  std::vector<Real> scores_;
  std::vector<Real> output_;
  std::vector<Real> lse_;
  std::vector<KeyRanges> allowed_;
};

template <typename Real>
void run_as(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const std::int64_t query_tiles = tiles_of(problem.max_len_q(), kTileQueries);
  PackedKeys<Real> keys(problem);
#pragma omp parallel if (is_worth_threads(problem))
  {
#pragma omp for collapse(3)
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
        for (std::int64_t t = 0; t < keys.tiles(); ++t)
          keys.pack(call, b, g, t);

    TileRunner<Real> runner(call, keys);
#pragma omp for collapse(3) schedule(dynamic)
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        for (std::int64_t t = 0; t < query_tiles; ++t) runner.run(b, h, t);
  }
}

Engine make_tiled() {
  Engine engine;
  engine.capabilities.features = all_input_features();
  engine.capabilities.features.push_back(Feature::kLse);
  engine.append = append_tokens;
  engine.run = [](const AttentionCall& call) {
    if (call.problem->dtype == Dtype::kFp64)
      run_as<double>(call);
    else
      run_as<float>(call);
    return ok_status();
  };
  return engine;
}

}  // namespace

const BuiltinEngine kBuiltinTiled = {
    .name = "tiled",
    .summary =
        "tiles of 64x64 with an online softmax in fp32 (fp64 for "
        "fp64), vectorised: how fast kernels compute",
    .make = make_tiled,
};

}  // namespace attnguard
