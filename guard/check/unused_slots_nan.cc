// unused-slots-nan: NaN in unused slots stays there.
#include "guard/check/check_table.h"
#include "guard/check/unused_slots.h"

namespace attnguard {

const CheckInfo kCheckUnusedSlotsNan = {
    .id = "unused-slots-nan",
    .summary = "NaN in unused slots and pages stays there",
    .cost = "2 calls",
    .explanation =
        R"(unused-slots-nan: NaN in unused slots and pages stays there

What it sees
  unused-slots with NaN in the places that no row may read. Many kernels load
  such places, give them a weight of exactly 0 and multiply: 0 * NaN is NaN.
  With finite contents they are right, with uninitialised memory they are not.

      weight  0.4  0.6  0        0.4 * v0 + 0.6 * v1 + 0 * NaN = NaN
      V        v0   v1  NaN

  It is a check of its own because not every engine promises this: set it to
  `warning` or `off` in the policy where padding is always initialised.

Real reports
  The classes padding_or_unused_slot_leak and nan_inf of the survey: freshly
  allocated pages whose bits happen to be NaN break one request in thousands.

What to look at in the kernel
  Skip keys past the length, or zero V where the weight is zero; multiplying
  by 0 is no mask.

Tolerance
  As unused-slots.
)",
    .not_applicable = no_unused_slot,
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_unused_slots(context, UnusedFill::kNan);
    },
};

}  // namespace attnguard
