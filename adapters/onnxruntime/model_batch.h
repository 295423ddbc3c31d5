// Steps that run as one batch, and the tensors that go in and come out.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_BATCH_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/onnxruntime/model_roles.h"
#include "adapters/onnxruntime/model_values.h"
#include "guard/model/model.h"

namespace attnguard::onnxruntime {

// What a sequence has read so far, as the model gave it.
struct ModelSequence {
  std::int64_t length = 0;
  std::vector<std::vector<std::byte>> cache;  // One of each CacheTensor.
};

// All steps start at `past` and run with `length` tokens, of which a step may
// need fewer: what it is filled up with lies behind its own.
struct Batch {
  std::vector<ModelStep> steps;
  std::int64_t past = 0, length = 0;
  std::int64_t rows = 0;  // At least steps.size(): a fixed batch is filled up
                          // with copies of the first step.

  const ModelStep& step(std::int64_t row) const;

  // Tokens that a row needs.
  std::int64_t own_length(std::int64_t row) const {
    return static_cast<std::int64_t>(step(row).tokens.size());
  }
};

NodeTensor token_input(const Port& tokens, const Batch& batch);

NodeTensor side_input(const SideInput& side, const Batch& batch);

// The `index`-th cache tensor of the batch's sequences.
NodeTensor cache_input(const CacheTensor& tensor, std::size_t index,
                       const Batch& batch,
                       const std::vector<ModelSequence>& sequences);

// Hands each sequence its own tokens of what replaces a cache tensor.
// kEngineFailure: another shape or type than the inputs say.
Status keep_cache(const CacheTensor& tensor, std::size_t index,
                  const OutputTensor& output, const Batch& batch,
                  std::vector<ModelSequence>& sequences);

// "[2, 16, 64]"
std::string shape_text(const std::vector<std::int64_t>& dims);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_BATCH_H_
