// A decoder on ONNX Runtime: batches of tokens in, logits out, and the caches
// of the sequences in between, which the model takes and gives as tensors.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_SESSION_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_SESSION_H_

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "adapters/onnxruntime/model_batch.h"
#include "adapters/onnxruntime/model_roles.h"
#include "guard/model/model.h"

namespace attnguard::onnxruntime {

class ModelSession {
 public:
  // Takes the session over.
  ModelSession(std::shared_ptr<const Library> library, OrtSession* session,
               Roles roles, std::int64_t max_sequences);
  ~ModelSession();
  ModelSession(const ModelSession&) = delete;
  ModelSession& operator=(const ModelSession&) = delete;

  const Roles& roles() const { return roles_; }

  // Most sequences of one run: fixed by the file, or 0: any number.
  std::int64_t fixed_batch() const;
  // Tokens of each run: fixed by the file, or 0: any number.
  std::int64_t fixed_length() const;

  Status clear(std::int64_t sequence);

  // As Model::decode. Sequences that stand at the same position run as one
  // batch, filled up at the end where they start and their lengths differ;
  // others run one after the other.
  Status decode(std::span<const ModelStep> steps);

  // The vocabulary's size, from one token run alone.
  Result<std::int32_t> measure_vocabulary();

 private:
  Status check(std::span<const ModelStep> steps) const;
  std::vector<Batch> batches(std::span<const ModelStep> steps) const;
  Status start(const Batch& batch, Run& run) const;  // Without its results.
  Status run(const Batch& batch);
  Status run_tokens_singly(const ModelStep& step);
  Status write_logits(const OutputTensor& output, const Batch& batch) const;

  std::shared_ptr<const Library> library_;
  OrtSession* session_ = nullptr;
  Roles roles_;
  std::mutex mutex_;  // Guards what follows.
  std::vector<ModelSequence> sequences_;
};

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_SESSION_H_
