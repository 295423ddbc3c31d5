#include "guard/model/model.h"

#include <utility>

namespace attnguard {

Model model_from_callback(
    std::string name, std::int32_t vocab_size,
    std::function<Status(std::span<const std::int32_t> tokens,
                         std::span<float> logits)>
        callback) {
  Model model{.name = std::move(name), .description = "a callback, no cache"};
  model.vocab_size = vocab_size;
  model.incremental = false;
  model.decode =
      [call = std::move(callback)](std::span<const ModelStep> steps) -> Status {
    for (const ModelStep& step : steps) {
      Status status = call(step.tokens, step.logits);
      if (!status.ok()) return status;
    }
    return ok_status();
  };
  return model;
}

}  // namespace attnguard
