#include "bench/oracles/local_fault.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guard/base/rng.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kTile = 64;

// Which rows of which heads have the fault.
struct Rows {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t head = -1;  // -1: all
};

Rows rows_of(const LocalFault& fault, const Problem& problem) {
  const std::int64_t length = problem.max_len_q();
  const std::int64_t head =
      uniform_below(derive_seed(fault.seed, 1), problem.num_heads);
  const std::uint64_t place = derive_seed(fault.seed, 2);
  // The first row has one key, which it must keep, and the last has none
  // behind it.
  const std::int64_t row = 1 + uniform_below(place, length - 2);
  const std::int64_t tile =
      uniform_below(place, std::max<std::int64_t>(length / kTile, 1)) * kTile;
  switch (fault.spread) {
    case Spread::kOneRowOneHead:
      return {row, row + 1, head};
    case Spread::kOneRowAllHeads:
      return {row, row + 1, -1};
    case Spread::kTileOneHead:
      return {tile, tile + kTile, head};
    case Spread::kSecondHalf:
      return {length / 2, length, -1};
    case Spread::kEveryRow:
      break;
  }
  return {0, length, -1};
}

// Outputs and log-sum-exps of one call, in fp64.
struct Computed {
  std::vector<double> output;       // [head][q_index][head_dim_v]
  std::vector<double> log_sum_exp;  // [head][q_index]
};

Computed compute(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const std::int64_t rows = problem.num_heads * problem.max_len_q();
  const std::int64_t channels = problem.head_dim_v;
  Computed computed;
  computed.output.resize(static_cast<std::size_t>(rows * channels));
  computed.log_sum_exp.resize(static_cast<std::size_t>(rows));
  const auto index = [&](const VariantRow& row) {
    return row.head * problem.max_len_q() + row.place.q_index;
  };
  AttentionVariant variant;
  variant.row_softmax = [&](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
    computed.log_sum_exp[static_cast<std::size_t>(index(row))] =
        log_sum_exp(keys, scores);
    softmax_row(keys, scores.data());
  };
  variant.output = [&](const VariantRow& row, std::span<double> output) {
    std::copy(output.begin(), output.end(),
              computed.output.begin() + index(row) * channels);
  };
  variant.keeps = [](const VariantRow&) { return false; };
  // Engines of variants do not fail.
  static_cast<void>(run_variant(variant, call));
  return computed;
}

std::uint64_t hash_tensor(const ConstTensorView& view, std::uint64_t hash) {
  const auto size =
      static_cast<std::size_t>(view.shape[3]) * dtype_size(view.dtype);
  for (std::int64_t h = 0; h < view.shape[1]; ++h)
    for (std::int64_t s = 0; s < view.shape[2]; ++s) {
      const std::byte* row = view.at(0, h, s);
      for (std::size_t at = 0; at < size; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, row + at, std::min<std::size_t>(8, size - at));
        hash = mix_bits(hash ^ word);
      }
    }
  return hash;
}

std::uint64_t hash_inputs(const AttentionCall& call) {
  return hash_tensor(call.value,
                     hash_tensor(call.key, hash_tensor(call.query, 1)));
}

// Rows as they are read and written, one after the other.
class RowEditor {
 public:
  RowEditor(const AttentionCall& call, const Computed& computed)
      : call_(call),
        problem_(*call.problem),
        computed_(computed),
        query_(static_cast<std::size_t>(problem_.head_dim_qk)),
        key_(static_cast<std::size_t>(problem_.head_dim_qk)),
        value_(static_cast<std::size_t>(problem_.head_dim_v)),
        row_(static_cast<std::size_t>(problem_.head_dim_v)) {}

  void copy(std::int64_t head, std::int64_t q_index) {
    load(head, q_index);
    store(head, q_index);
  }

  // o and L belong to keys K with L = log sum_K exp(s_j). With x = s_k - L,
  //
  //   K and k:      (o + e^x v_k) / (1 + e^x)
  //   K without k:  (o - e^x v_k) / (1 - e^x)
  //
  // False when e^x is so near to 1 that the second loses its digits.
  bool edit(std::int64_t head, std::int64_t q_index, std::int64_t key,
            KeyFault fault) {
    load(head, q_index);
    const double x = score(head, q_index, key) - log_sum_exp(head, q_index);
    if (fault == KeyFault::kDropped && x > std::log(0.5)) return false;
    // Both sides are divided by the larger of 1 and e^x.
    const double own = x > 0 ? std::exp(-x) : 1;
    double other = x > 0 ? 1 : std::exp(x);
    if (fault == KeyFault::kDropped) other = -other;
    call_.value.load_row(0, problem_.kv_head_of(head), key, 0,
                         problem_.head_dim_v, value_.data());
    for (std::size_t c = 0; c < row_.size(); ++c)
      row_[c] = (own * row_[c] + other * value_[c]) / (own + other);
    store(head, q_index);
    return true;
  }

 private:
  std::size_t index(std::int64_t head, std::int64_t q_index) const {
    return static_cast<std::size_t>(head * problem_.max_len_q() + q_index);
  }
  double log_sum_exp(std::int64_t head, std::int64_t q_index) const {
    return computed_.log_sum_exp[index(head, q_index)];
  }
  void load(std::int64_t head, std::int64_t q_index) {
    std::copy_n(
        computed_.output.begin() +
            static_cast<std::ptrdiff_t>(index(head, q_index) * row_.size()),
        row_.size(), row_.begin());
  }
  void store(std::int64_t head, std::int64_t q_index) {
    call_.output.store_row(0, head, q_index, 0, problem_.head_dim_v,
                           row_.data());
  }
  double score(std::int64_t head, std::int64_t q_index, std::int64_t key) {
    call_.query.load_row(0, head, q_index, 0, problem_.head_dim_qk,
                         query_.data());
    call_.key.load_row(0, problem_.kv_head_of(head), key, 0,
                       problem_.head_dim_qk, key_.data());
    double sum = 0;
    for (std::size_t k = 0; k < query_.size(); ++k) sum += query_[k] * key_[k];
    return problem_.scale() * sum;
  }

  const AttentionCall& call_;
  const Problem& problem_;
  const Computed& computed_;
  std::vector<double> query_, key_, value_, row_;
};

}  // namespace

class FaultMemory {
 public:
  const Computed& of(const AttentionCall& call) {
    const std::uint64_t hash = hash_inputs(call);
    const auto found = computed_.find(hash);
    if (found != computed_.end()) return found->second;
    return computed_.emplace(hash, compute(call)).first->second;
  }

 private:
  std::unordered_map<std::uint64_t, Computed> computed_;
};

std::shared_ptr<FaultMemory> make_fault_memory() {
  return std::make_shared<FaultMemory>();
}

std::string_view key_fault_name(KeyFault fault) {
  return fault == KeyFault::kExtra ? "one extra key" : "one dropped key";
}

std::string_view spread_name(Spread spread) {
  switch (spread) {
    case Spread::kOneRowOneHead:
      return "in one row of one head";
    case Spread::kOneRowAllHeads:
      return "in one row of all heads";
    case Spread::kTileOneHead:
      return "in 64 rows of one head";
    case Spread::kSecondHalf:
      return "in every row of the second half";
    case Spread::kEveryRow:
      return "in every row";
  }
  return "";
}

std::int64_t LocalFault::key_of(const Problem& problem, std::int64_t head,
                                std::int64_t q_index) const {
  const Rows rows = rows_of(*this, problem);
  if (q_index < rows.first || q_index >= rows.end) return -1;
  if (rows.head >= 0 && head != rows.head) return -1;
  const std::uint64_t draw = derive_seed(
      derive_seed(seed, 3),
      static_cast<std::uint64_t>(head * problem.max_len_q() + q_index));
  if (fault == KeyFault::kDropped)
    return q_index == 0 ? -1 : uniform_below(draw, q_index + 1);
  const std::int64_t behind = problem.max_len_kv() - q_index - 1;
  return behind == 0 ? -1 : q_index + 1 + uniform_below(draw, behind);
}

AttentionVariant fault_variant(const LocalFault& fault) {
  AttentionVariant variant;
  variant.allowed = [fault](const VariantRow& row, KeyRanges& keys) {
    const std::int64_t key =
        fault.key_of(row.problem, row.head, row.place.q_index);
    if (key < 0) return;
    if (fault.fault == KeyFault::kExtra)
      see(row, key, key + 1, keys);
    else
      drop(key, key + 1, keys);
  };
  return variant;
}

Engine fault_engine(const LocalFault& fault,
                    const std::shared_ptr<FaultMemory>& memory) {
  Engine engine;
  engine.name = "oracle:local_fault";
  engine.description = std::string(key_fault_name(fault.fault)) + " " +
                       std::string(spread_name(fault.spread));
  engine.run = [fault, memory](const AttentionCall& call) {
    const Problem& problem = *call.problem;
    RowEditor editor(call, memory->of(call));
    std::vector<std::pair<std::int64_t, std::int64_t>> in_full;
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.max_len_q(); ++i) {
        const std::int64_t key = fault.key_of(problem, h, i);
        if (key < 0)
          editor.copy(h, i);
        else if (!editor.edit(h, i, key, fault.fault))
          in_full.emplace_back(h, i);
      }
    if (in_full.empty()) return ok_status();
    AttentionVariant variant = fault_variant(fault);
    // Rows that are not wanted are given no key, and cost nothing.
    const auto edit = variant.allowed;
    const auto wanted = [&](const VariantRow& row) {
      return std::binary_search(in_full.begin(), in_full.end(),
                                std::pair(row.head, row.place.q_index));
    };
    variant.allowed = [&](const VariantRow& row, KeyRanges& keys) {
      if (wanted(row))
        edit(row, keys);
      else
        keys.clear();
    };
    variant.keeps = wanted;
    return run_variant(variant, call);
  };
  return engine;
}

}  // namespace attnguard
