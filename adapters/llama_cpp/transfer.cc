#include "adapters/llama_cpp/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "guard/problem/key_ranges.h"

namespace attnguard::ggml {
namespace {

constexpr std::uint16_t kMinusInfinityF16 = 0xfc00;
constexpr std::uint32_t kMinusInfinityF32 = 0xff800000;

// Starting threads costs more than moving a small tensor, and idle ones keep
// spinning into the kernel's own time.
int threads_for(std::int64_t elements, int threads) {
  return elements < (std::int64_t{1} << 16) ? 1 : threads;
}

// Converts rows one at a time through double, which every dtype fits.
class RowConverter {
 public:
  RowConverter(const Library& library, const Storage& storage,
               std::int64_t channels)
      : library_(library),
        storage_(storage),
        values_(static_cast<std::size_t>(channels)),
        floats_(storage.dtype ? 0 : values_.size()) {}

  void convert(const ConstTensorView& from, std::int64_t batch,
               std::int64_t head, std::int64_t position, std::byte* to) {
    const std::int64_t channels = from.shape[3];
    from.load_row(batch, head, position, 0, channels, values_.data());
    if (storage_.dtype) {
      encode(*storage_.dtype, values_.data(), channels, to, 1);
      return;
    }
    for (std::size_t i = 0; i < floats_.size(); ++i)
      floats_[i] = static_cast<float>(values_[i]);
    library_.call.quantize_chunk(storage_.type, floats_.data(), to, 0, 1,
                                 channels, nullptr);
  }

 private:
  const Library& library_;
  const Storage& storage_;
  std::vector<double> values_;
  std::vector<float> floats_;
};

template <typename Bits>
void fill_mask(const Problem& problem, int threads, Bits minus_infinity,
               Bits* to) {
  const std::int64_t keys = problem.max_len_kv();
  const std::int64_t rows = mask_rows(problem);
  std::fill(to, to + problem.batch * rows * keys, minus_infinity);
  const int team = threads_for(problem.batch * rows * keys, threads);
#pragma omp parallel num_threads(team)
  {
    KeyRanges allowed;
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t q = 0; q < rows; ++q) {
        if (q >= problem.len_q(b)) continue;
        problem.mask.allowed(problem.row(b, q), allowed);
        Bits* row = to + (b * rows + q) * keys;
        for (const KeyRange& range : allowed.ranges())
          std::fill(row + range.begin, row + range.end, Bits{0});
      }
    }
  }
}

}  // namespace

ConstTensorView transposed(const ConstTensorView& view) {
  ConstTensorView result = view;
  std::swap(result.shape[2], result.shape[3]);
  std::swap(result.strides[2], result.strides[3]);
  return result;
}

void gather(const Library& library, const ConstTensorView& from,
            const Storage& storage, int threads, void* to) {
  const std::int64_t heads = from.shape[1];
  const std::int64_t positions = from.shape[2];
  const std::int64_t channels = from.shape[3];
  const std::int64_t row_bytes =
      static_cast<std::int64_t>(library.call.row_size(storage.type, channels));
  const bool copies = storage.dtype == from.dtype && from.strides[3] == 1;
  const bool dense = copies && from.strides[2] == channels;
  const std::int64_t slots = from.shape[0] * heads;
  std::byte* const base = static_cast<std::byte*>(to);
  const int team = threads_for(slots * positions * channels, threads);
#pragma omp parallel num_threads(team)
  {
    RowConverter converter(library, storage, channels);
#pragma omp for schedule(static)
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const std::int64_t b = slot / heads, h = slot % heads;
      std::byte* row = base + slot * positions * row_bytes;
      if (dense) {
        std::memcpy(row, from.at(b, h, 0), positions * row_bytes);
        continue;
      }
      for (std::int64_t i = 0; i < positions; ++i, row += row_bytes) {
        if (copies)
          std::memcpy(row, from.at(b, h, i), row_bytes);
        else
          converter.convert(from, b, h, i, row);
      }
    }
  }
}

void scatter(const Problem& problem, const float* from,
             const ResultStrides& strides, int threads, const TensorView& to) {
  const std::int64_t channels = problem.head_dim_v;
  const std::int64_t heads = problem.num_heads;
  const bool copies = to.dtype == Dtype::kFp32 && to.strides[3] == 1;
  const int team = threads_for(
      problem.batch * heads * problem.max_len_q() * channels, threads);
#pragma omp parallel num_threads(team)
  {
    std::vector<double> values(static_cast<std::size_t>(channels));
#pragma omp for schedule(static)
    for (std::int64_t slot = 0; slot < problem.batch * heads; ++slot) {
      const std::int64_t b = slot / heads, h = slot % heads;
      for (std::int64_t q = 0; q < problem.len_q(b); ++q) {
        const float* row =
            from + b * strides.batch + h * strides.head + q * strides.position;
        if (copies) {
          std::memcpy(to.at(b, h, q), row, channels * sizeof(float));
          continue;
        }
        std::copy(row, row + channels, values.begin());
        to.store_row(b, h, q, 0, channels, values.data());
      }
    }
  }
}

std::int64_t mask_rows(const Problem& problem) {
  return (problem.max_len_q() + 63) / 64 * 64;
}

bool needs_mask(const Problem& problem) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t q = 0; q < problem.len_q(b); ++q) {
      problem.mask.allowed(problem.row(b, q), allowed);
      if (allowed.count() != problem.max_len_kv()) return true;
    }
  }
  return false;
}

void fill_mask_f16(const Problem& problem, int threads, void* to) {
  fill_mask(problem, threads, kMinusInfinityF16,
            static_cast<std::uint16_t*>(to));
}

void fill_mask_f32(const Problem& problem, int threads, void* to) {
  fill_mask(problem, threads, kMinusInfinityF32,
            static_cast<std::uint32_t*>(to));
}

}  // namespace attnguard::ggml
