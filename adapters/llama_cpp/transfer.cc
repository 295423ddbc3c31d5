#include "adapters/llama_cpp/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace attnguard::ggml {
namespace {

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

}  // namespace

int threads_for(std::int64_t elements, int threads) {
  return elements < (std::int64_t{1} << 16) ? 1 : threads;
}

ConstTensorView transposed(const ConstTensorView& view) {
  ConstTensorView result = view;
  std::swap(result.shape[2], result.shape[3]);
  std::swap(result.strides[2], result.strides[3]);
  return result;
}

void gather(const Library& library, const ConstTensorView& from,
            const TokenRows& rows, const Storage& storage, int threads,
            void* to) {
  const std::int64_t heads = from.shape[1];
  const std::int64_t channels = from.shape[3];
  const std::int64_t row_bytes =
      static_cast<std::int64_t>(library.call.row_size(storage.type, channels));
  const bool copies = storage.dtype == from.dtype && from.strides[3] == 1;
  const bool dense =
      copies && from.strides[2] == channels && from.tokens == nullptr;
  const std::int64_t slots = from.shape[0] * heads;
  std::byte* const base = static_cast<std::byte*>(to);
  const int team =
      threads_for(rows.streams * heads * rows.rows * channels, threads);
#pragma omp parallel num_threads(team)
  {
    RowConverter converter(library, storage, channels);
#pragma omp for schedule(static)
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const std::int64_t b = slot / heads, h = slot % heads;
      const std::int64_t positions = rows.count[static_cast<std::size_t>(b)];
      std::byte* row = base + rows.row(b, h, heads) * row_bytes;
      if (positions > 0 && dense) {
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
             const ResultStrides& strides, const TokenRows& rows, int threads,
             const TensorView& to) {
  const std::int64_t channels = problem.head_dim_v;
  const std::int64_t heads = problem.num_heads;
  const bool copies = to.dtype == Dtype::kFp32 && to.strides[3] == 1;
  const int team =
      threads_for(rows.streams * heads * rows.rows * channels, threads);
#pragma omp parallel num_threads(team)
  {
    std::vector<double> values(static_cast<std::size_t>(channels));
#pragma omp for schedule(static)
    for (std::int64_t slot = 0; slot < problem.batch * heads; ++slot) {
      const std::int64_t b = slot / heads, h = slot % heads;
      const float* row =
          from + rows.stream(b) * strides.stream + h * strides.head +
          rows.first[static_cast<std::size_t>(b)] * strides.position;
      for (std::int64_t q = 0; q < problem.len_q(b);
           ++q, row += strides.position) {
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

void scatter_weights(const Problem& problem, const float* from,
                     const TokenRows& queries, const TokenRows& keys,
                     int threads, const TensorView& to) {
  const std::int64_t heads = problem.num_heads;
  const int team =
      threads_for(queries.streams * heads * queries.rows * keys.rows, threads);
#pragma omp parallel num_threads(team)
  {
    std::vector<double> values(static_cast<std::size_t>(problem.max_len_kv()));
#pragma omp for schedule(static)
    for (std::int64_t slot = 0; slot < problem.batch * heads; ++slot) {
      const std::int64_t b = slot / heads, h = slot % heads;
      const float* row = from + queries.row(b, h, heads) * keys.rows +
                         keys.first[static_cast<std::size_t>(b)];
      std::fill(values.begin(), values.end(), 0.0);
      for (std::int64_t q = 0; q < problem.len_q(b); ++q, row += keys.rows) {
        std::copy(row, row + problem.len_kv(b), values.begin());
        to.store_row(b, h, q, 0, problem.max_len_kv(), values.data());
      }
    }
  }
}

}  // namespace attnguard::ggml
