#include "adapters/onnxruntime/model_session.h"

#include <algorithm>
#include <utility>

namespace attnguard::onnxruntime {
namespace {

Status failure(std::string message) {
  return {StatusCode::kEngineFailure, std::move(message)};
}

}  // namespace

ModelSession::ModelSession(std::shared_ptr<const Library> library,
                           OrtSession* session, Roles roles,
                           std::int64_t max_sequences)
    : library_(std::move(library)),
      session_(session),
      roles_(std::move(roles)),
      sequences_(static_cast<std::size_t>(max_sequences)) {
  for (ModelSequence& sequence : sequences_)
    sequence.cache.resize(roles_.cache.size());
}

ModelSession::~ModelSession() { library_->call.ReleaseSession(session_); }

std::int64_t ModelSession::fixed_batch() const {
  if (roles_.tokens.dims.size() < 2) return 1;
  return std::max<std::int64_t>(roles_.tokens.dims[0], 0);
}

std::int64_t ModelSession::fixed_length() const {
  return std::max<std::int64_t>(roles_.tokens.dims.back(), 0);
}

Status ModelSession::clear(std::int64_t sequence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sequence < 0 || sequence >= static_cast<std::int64_t>(sequences_.size()))
    return invalid_argument("no sequence " + std::to_string(sequence));
  ModelSequence& cleared = sequences_[static_cast<std::size_t>(sequence)];
  cleared.length = 0;
  for (std::vector<std::byte>& tensor : cleared.cache) tensor.clear();
  return ok_status();
}

Status ModelSession::check(std::span<const ModelStep> steps) const {
  for (const ModelStep& step : steps) {
    if (step.sequence < 0 ||
        step.sequence >= static_cast<std::int64_t>(sequences_.size()))
      return invalid_argument("no sequence " + std::to_string(step.sequence));
    const std::int64_t held =
        roles_.cache.empty()
            ? 0
            : sequences_[static_cast<std::size_t>(step.sequence)].length;
    if (step.position != held)
      return invalid_argument("a step at position " +
                              std::to_string(step.position) + ", where " +
                              std::to_string(held) + " tokens are held");
    if (step.tokens.empty() || step.logits.size() % step.tokens.size() != 0)
      return invalid_argument(
          "a step without tokens, or logits of another "
          "size");
    const auto length = static_cast<std::int64_t>(step.tokens.size());
    if (fixed_length() > 1 && length > fixed_length())
      return invalid_argument(std::to_string(length) +
                              " tokens; the model's length is " +
                              std::to_string(fixed_length()));
  }
  return ok_status();
}

// Sequences that start together may be of unlike lengths: what is filled up
// lies behind them, and is cut off again.
std::vector<Batch> ModelSession::batches(
    std::span<const ModelStep> steps) const {
  std::vector<Batch> made;
  for (const ModelStep& step : steps) {
    const auto length = static_cast<std::int64_t>(step.tokens.size());
    const auto fits = [&](const Batch& batch) {
      const auto count = static_cast<std::int64_t>(batch.steps.size());
      return batch.past == step.position &&
             (batch.past == 0 || batch.length == length) &&
             (fixed_batch() == 0 || count < fixed_batch());
    };
    auto batch = std::find_if(made.begin(), made.end(), fits);
    if (batch == made.end()) {
      made.push_back({{}, step.position, length, 0});
      batch = made.end() - 1;
    }
    batch->steps.push_back(step);
    batch->length = std::max(batch->length, length);
  }
  for (Batch& batch : made) {
    batch.rows = fixed_batch() > 0
                     ? fixed_batch()
                     : static_cast<std::int64_t>(batch.steps.size());
    if (fixed_length() > 0) batch.length = fixed_length();
  }
  return made;
}

Status ModelSession::write_logits(const OutputTensor& output,
                                  const Batch& batch) const {
  const ModelStep& first = batch.steps.front();
  const std::size_t vocabulary = first.logits.size() / first.tokens.size();
  std::vector<std::int64_t> expected = {batch.rows, batch.length,
                                        static_cast<std::int64_t>(vocabulary)};
  if (output.dims.size() == 2) expected.erase(expected.begin());
  if (output.dims != expected || (output.dims.size() == 2 && batch.rows > 1))
    return failure("the logits '" + roles_.logits.name + "' have shape " +
                   shape_text(output.dims) + " instead of " +
                   shape_text(expected) + "; logits of every token are needed");
  const std::size_t size = element_size(output.type);
  for (std::size_t row = 0; row < batch.steps.size(); ++row) {
    const ModelStep& step = batch.steps[row];
    const std::size_t at =
        row * static_cast<std::size_t>(batch.length) * vocabulary * size;
    read_floats(output.type, output.data + at, step.logits.size(),
                step.logits.data());
  }
  return ok_status();
}

Status ModelSession::start(const Batch& batch, Run& run) const {
  Status status = run.add_input(token_input(roles_.tokens, batch));
  for (const SideInput& side : roles_.sides)
    if (status.ok()) status = run.add_input(side_input(side, batch));
  for (std::size_t i = 0; i < roles_.cache.size() && status.ok(); ++i)
    status = run.add_input(cache_input(roles_.cache[i], i, batch, sequences_));
  run.add_output(roles_.logits.name);
  for (const CacheTensor& tensor : roles_.cache)
    run.add_output(tensor.present.name);
  return status.ok() ? run.run(session_) : status;
}

Status ModelSession::run(const Batch& batch) {
  Run run(*library_);
  Status status = start(batch, run);
  if (!status.ok()) return status;
  Result<OutputTensor> output = run.output(0);
  if (!output.ok()) return output.status();
  status = write_logits(output.value(), batch);
  for (std::size_t i = 0; i < roles_.cache.size() && status.ok(); ++i) {
    output = run.output(i + 1);
    status = output.ok() ? keep_cache(roles_.cache[i], i, output.value(), batch,
                                      sequences_)
                         : output.status();
  }
  if (status.ok() && !roles_.cache.empty())
    for (const ModelStep& step : batch.steps)
      sequences_[static_cast<std::size_t>(step.sequence)].length +=
          static_cast<std::int64_t>(step.tokens.size());
  return status;
}

Status ModelSession::run_tokens_singly(const ModelStep& step) {
  const std::size_t vocabulary = step.logits.size() / step.tokens.size();
  for (std::size_t i = 0; i < step.tokens.size(); ++i) {
    ModelStep one = step;
    one.position += static_cast<std::int64_t>(i);
    one.tokens = step.tokens.subspan(i, 1);
    one.logits = step.logits.subspan(i * vocabulary, vocabulary);
    const Batch batch{
        {one}, one.position, 1, std::max<std::int64_t>(fixed_batch(), 1)};
    if (Status status = run(batch); !status.ok()) return status;
  }
  return ok_status();
}

Status ModelSession::decode(std::span<const ModelStep> steps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Status status = check(steps); !status.ok()) return status;
  if (fixed_length() == 1 && !roles_.cache.empty()) {
    for (const ModelStep& step : steps)
      if (Status status = run_tokens_singly(step); !status.ok()) return status;
    return ok_status();
  }
  for (const Batch& batch : batches(steps))
    if (Status status = run(batch); !status.ok()) return status;
  return ok_status();
}

Result<std::int32_t> ModelSession::measure_vocabulary() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::int32_t token = 0;
  Batch batch;
  batch.steps = {
      {.sequence = 0, .position = 0, .tokens = {&token, 1}, .logits = {}}};
  batch.rows = std::max<std::int64_t>(fixed_batch(), 1);
  batch.length = std::max<std::int64_t>(fixed_length(), 1);
  Run run(*library_);
  if (Status status = start(batch, run); !status.ok()) return status;
  const Result<OutputTensor> output = run.output(0);
  if (!output.ok()) return output.status();
  const std::vector<std::int64_t>& dims = output.value().dims;
  if ((dims.size() != 2 && dims.size() != 3) || dims.back() < 2 ||
      dims.back() > INT32_MAX)
    return invalid_argument("the logits '" + roles_.logits.name +
                            "' have shape " + shape_text(dims) +
                            " for one token");
  return static_cast<std::int32_t>(dims.back());
}

}  // namespace attnguard::onnxruntime
