#include "adapters/onnxruntime/kernel_table.h"

#include <algorithm>
#include <array>

namespace attnguard::onnxruntime {

std::span<const Kernel* const> all_kernels() {
  static constexpr std::array kKernels = {
      &kAttention,
      &kMultiHeadAttention,
      &kGroupQueryAttention,
  };
  return kKernels;
}

bool mask_is(const Problem& problem, std::string_view kind) {
  const std::vector<MaskTerm>& terms = problem.mask.terms();
  if (kind == "full" && terms.empty()) return true;
  return terms.size() == 1 && terms.front().kind->name == kind;
}

namespace {

bool all_equal(const std::vector<std::int64_t>& lengths) {
  return std::adjacent_find(lengths.begin(), lengths.end(),
                            std::not_equal_to<>()) == lengths.end();
}

}  // namespace

bool equal_lengths_q(const Problem& problem) {
  return all_equal(problem.seq_len_q);
}

bool equal_lengths_kv(const Problem& problem) {
  return all_equal(problem.seq_len_kv);
}

Numerics usual_numerics(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  if (problem.dtype == Dtype::kFp16)
    numerics.score = numerics.probability = Dtype::kFp16;
  return numerics;
}

}  // namespace attnguard::onnxruntime
