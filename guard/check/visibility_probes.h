// The probes that `visibility` is made of: each plans its calls and turns
// what the rows show into leaks and misses.
#ifndef ATTNGUARD_GUARD_CHECK_VISIBILITY_PROBES_H_
#define ATTNGUARD_GUARD_CHECK_VISIBILITY_PROBES_H_

#include <memory>
#include <string>
#include <vector>

#include "guard/check/check.h"

namespace attnguard {

class VisibilityProbe {
 public:
  virtual ~VisibilityProbe() = default;
  virtual std::string name() const = 0;
  virtual void plan(Plan& plan) = 0;
  virtual void judge(const Observation& seen, FindingSink& sink) = 0;

  // Rows in which this probe could tell right from wrong.
  std::int64_t rows_judged() const { return rows_judged_; }

 protected:
  std::int64_t rows_judged_ = 0;
};

// Columns of a probe's values: one is left for the row sum where there is
// more than one.
inline std::int64_t code_columns(const Problem& problem) {
  return problem.head_dim_v > 1 ? problem.head_dim_v - 1 : 1;
}

using VisibilityProbePtr = std::unique_ptr<VisibilityProbe>;

// Each returns nullptr when the probe cannot work on this problem and engine,
// and then says why in `why_not`.
VisibilityProbePtr make_ladder_up_probe(const CheckContext& context,
                                        std::string& why_not);
VisibilityProbePtr make_ladder_down_probe(const CheckContext& context,
                                          std::string& why_not);
VisibilityProbePtr make_needle_probe(const CheckContext& context,
                                     std::string& why_not);
VisibilityProbePtr make_census_probe(const CheckContext& context,
                                     std::string& why_not);
VisibilityProbePtr make_step_probe(const CheckContext& context,
                                   std::string& why_not);
VisibilityProbePtr make_one_hot_probe(const CheckContext& context,
                                      std::string& why_not);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_VISIBILITY_PROBES_H_
