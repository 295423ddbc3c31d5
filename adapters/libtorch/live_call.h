// From an attention call of LibTorch to the call that the guard judges.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_LIVE_CALL_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_LIVE_CALL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/libtorch/recorder.h"
#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/runtime/observe_context.h"

namespace attnguard::libtorch {

// What the host says of its calls, against what the calls themselves say.
struct LiveRule {
  std::optional<Mask> mask;             // Absent: the call's mask or flag.
  std::optional<double> softmax_scale;  // Absent: the call's.
};

class LiveCall : public RowMask {
 public:
  // Empty, or why the guard cannot judge the call. Refers to it.
  std::string_view build(const SeenCall& seen, const LiveRule& rule);

  const AttentionCall& call() const { return call_; }
  ObserveContext context() const;

  // The call's mask tensor.
  void allowed(const RowPlace& row, KeyRanges& out) const override;

  // Where a mask tensor is given and the host says what it owes: the first
  // element that differs; nullopt: none does. `judged` counts elements.
  std::optional<Finding> wrong_mask(std::uint64_t& judged) const;

  // The first row of weights that does not sum to 1, or has a weight where the
  // mask tensor hides the key; nullopt: none.
  std::optional<Finding> wrong_weights(std::uint64_t& judged) const;

 private:
  std::string_view describe_mask();
  bool shows(std::int64_t batch, std::int64_t row, std::int64_t key) const;

  SeenCall seen_;
  bool ruled_ = false;  // The host says the mask.
  Problem problem_;
  AttentionCall call_;
};

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_LIVE_CALL_H_
