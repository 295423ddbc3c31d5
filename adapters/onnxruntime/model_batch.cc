#include "adapters/onnxruntime/model_batch.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace attnguard::onnxruntime {
namespace {

// A cache tensor in memory: `outer` blocks, in each of them the batch's rows of
// `per_row` bytes, in each of those `lines` in which the length varies first.
struct CacheLayout {
  std::size_t outer = 1, per_row = 1, lines = 1;

  CacheLayout(const CacheTensor& tensor, std::int64_t length) {
    for (std::size_t axis = 0; axis < tensor.dims.size(); ++axis) {
      const auto dim = static_cast<std::size_t>(
          axis == tensor.length_axis ? length : tensor.dims[axis]);
      if (axis < tensor.batch_axis) outer *= dim;
      if (axis > tensor.batch_axis) per_row *= dim;
      if (axis > tensor.batch_axis && axis < tensor.length_axis) lines *= dim;
    }
    per_row *= element_size(tensor.past.type);
  }
};

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

const ModelStep& Batch::step(std::int64_t row) const {
  const auto index = static_cast<std::size_t>(row);
  return steps[index < steps.size() ? index : 0];
}

NodeTensor token_input(const Port& tokens, const Batch& batch) {
  std::vector<std::int64_t> ids;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const std::span<const std::int32_t> own = batch.step(row).tokens;
    ids.insert(ids.end(), own.begin(), own.end());
    ids.resize(static_cast<std::size_t>((row + 1) * batch.length), 0);
  }
  std::vector<std::int64_t> dims = {batch.rows, batch.length};
  if (tokens.dims.size() == 1) dims = {batch.length};
  return numbers_tensor(tokens.name, tokens.type, dims, ids);
}

NodeTensor side_input(const SideInput& side, const Batch& batch) {
  const std::int64_t total = batch.past + batch.length;
  std::vector<std::int64_t> dims, values;
  const auto positions = [&](std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = batch.past; i < total; ++i) values.push_back(i);
  };
  // One number, as a scalar or as an axis of 1.
  const auto number = [&](std::int64_t value) {
    values = {value};
    dims.assign(side.port.dims.size(), 1);
  };
  switch (side.role) {
    case Role::kAttentionMask:
      dims = {batch.rows, total};
      for (std::int64_t row = 0; row < batch.rows; ++row) {
        const std::int64_t end = batch.past + batch.own_length(row);
        for (std::int64_t i = 0; i < total; ++i)
          values.push_back(i < end ? 1 : 0);
      }
      break;
    case Role::kPositionIds:
      dims = {batch.rows, batch.length};
      if (side.port.dims.size() == 1) dims = {batch.length};
      if (side.port.dims.size() == 3)
        dims.insert(dims.begin(), std::max<std::int64_t>(side.port.dims[0], 3));
      positions(side.port.dims.size() == 1   ? 1
                : side.port.dims.size() == 3 ? dims[0] * batch.rows
                                             : batch.rows);
      break;
    case Role::kCachePosition:
      dims = {batch.length};
      positions(1);
      break;
    case Role::kTokenTypes:
      dims = {batch.rows, batch.length};
      values.assign(static_cast<std::size_t>(batch.rows * batch.length), 0);
      break;
    case Role::kPastLength:
      number(batch.past);
      break;
    case Role::kTotalLength:
      number(total);
      break;
    case Role::kLastKey:
      dims = {batch.rows};
      for (std::int64_t row = 0; row < batch.rows; ++row)
        values.push_back(batch.past + batch.own_length(row) - 1);
      break;
    case Role::kUseCacheBranch:
      number(batch.past > 0 ? 1 : 0);
      break;
  }
  return numbers_tensor(side.port.name, side.port.type, dims, values);
}

NodeTensor cache_input(const CacheTensor& tensor, std::size_t index,
                       const Batch& batch,
                       const std::vector<ModelSequence>& sequences) {
  NodeTensor input{tensor.past.name, tensor.past.type, tensor.dims, {}};
  input.dims[tensor.batch_axis] = batch.rows;
  input.dims[tensor.length_axis] = batch.past;
  const CacheLayout layout(tensor, batch.past);
  input.bytes.resize(layout.outer * layout.per_row *
                     static_cast<std::size_t>(batch.rows));
  std::byte* to = input.bytes.data();
  if (layout.per_row == 0) return input;
  for (std::size_t block = 0; block < layout.outer; ++block)
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      const auto sequence = static_cast<std::size_t>(batch.step(row).sequence);
      std::memcpy(
          to, sequences[sequence].cache[index].data() + block * layout.per_row,
          layout.per_row);
      to += layout.per_row;
    }
  return input;
}

Status keep_cache(const CacheTensor& tensor, std::size_t index,
                  const OutputTensor& output, const Batch& batch,
                  std::vector<ModelSequence>& sequences) {
  std::vector<std::int64_t> expected = tensor.dims;
  expected[tensor.batch_axis] = batch.rows;
  expected[tensor.length_axis] = batch.past + batch.length;
  if (output.dims != expected || output.type != tensor.past.type)
    return {StatusCode::kEngineFailure,
            "the cache output '" + tensor.present.name + "' is " +
                type_name(output.type) + " " + shape_text(output.dims) +
                " instead of " + type_name(tensor.past.type) + " " +
                shape_text(expected)};
  const CacheLayout all(tensor, batch.past + batch.length);
  for (std::size_t row = 0; row < batch.steps.size(); ++row) {
    const ModelStep& step = batch.steps[row];
    const CacheLayout own(
        tensor, batch.past + static_cast<std::int64_t>(step.tokens.size()));
    std::vector<std::byte>& kept =
        sequences[static_cast<std::size_t>(step.sequence)].cache[index];
    kept.resize(own.outer * own.per_row);
    const std::size_t from_line = all.per_row / all.lines;
    const std::size_t to_line = own.per_row / own.lines;
    for (std::size_t block = 0; block < own.outer; ++block)
      for (std::size_t line = 0; line < own.lines; ++line) {
        const std::size_t from =
            (block * static_cast<std::size_t>(batch.rows) + row) * all.per_row +
            line * from_line;
        std::memcpy(kept.data() + block * own.per_row + line * to_line,
                    output.data + from, to_line);
      }
  }
  return ok_status();
}

}  // namespace attnguard::onnxruntime
