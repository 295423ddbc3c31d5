#include "bench/oracles/oracle_table.h"

namespace attnguard {

// Triton's tutorial on fused attention asserts assert_close(atol=1e-2, rtol=0)
// in fp16. Where kernels round their weights, the defaults do not do.
const Oracle kOracleAllcloseLoose = {
    .id = "allclose-loose",
    .summary =
        "random inputs; every element within 1e-2 of fp64 attention, as "
        "Triton's fused attention tutorial",
    .judge = [](const OracleCase& subject) -> Judgement {
      return judge_closeness(subject, {0, 1e-2});
    },
};

}  // namespace attnguard
