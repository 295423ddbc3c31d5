// A problem and the tensors of its calls as C structs.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_C_PROBLEM_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_C_PROBLEM_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/plugin/attnguard_plugin.h"
#include "guard/engine/engine.h"

namespace attnguard::plugin {

// Owns all that its struct points to.
class CProblem {
 public:
  explicit CProblem(const Problem& problem);
  CProblem(const CProblem&) = delete;
  CProblem& operator=(const CProblem&) = delete;

  const Problem& problem() const { return problem_; }
  const attnguard_problem* get() const { return &c_; }

 private:
  static int row_ranges(const attnguard_problem* problem, std::int64_t batch,
                        std::int64_t q_index,
                        const attnguard_key_range** ranges,
                        std::int64_t* count);
  void set_arrays();
  void set_mask();
  void find_ranges() const;
  std::size_t row_index(std::int64_t batch, std::int64_t q_index) const;

  const Problem problem_;
  const std::string text_;
  std::vector<std::int64_t> seq_len_q_, seq_len_kv_;
  std::vector<double> alibi_slopes_, sinks_;
  std::vector<attnguard_mask_term> terms_;
  std::vector<attnguard_mask_parameter> parameters_;
  attnguard_problem c_ = {};

  // Of all rows, made when the first is asked for: plugins hold on to them.
  mutable std::once_flag ranges_made_;
  mutable std::vector<attnguard_key_range> ranges_;
  mutable std::vector<std::size_t>
      row_begin_;  // in ranges_, one more than rows
};

attnguard_tensor c_tensor(const TensorView& view);
attnguard_tensor c_tensor(const ConstTensorView& view);

// `problem` is that of the call and must outlive the struct.
attnguard_call c_call(const CProblem& problem, const AttentionCall& call);
attnguard_append c_append(const CProblem& problem, const CacheAppend& append);

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_C_PROBLEM_H_
