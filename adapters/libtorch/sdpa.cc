#include "adapters/libtorch/sdpa.h"

#include <cmath>
#include <vector>

#include "adapters/libtorch/dense.h"
#include "guard/problem/empty_rows.h"

namespace attnguard::libtorch {
namespace {

constexpr std::size_t kMessageBytes = 512;
constexpr double kRoundingsOfAKey = 8;

bool mask_is(const Problem& problem, std::string_view kind) {
  const std::vector<MaskTerm>& terms = problem.mask.terms();
  if (kind == "full" && terms.empty()) return true;
  return terms.size() == 1 && terms.front().kind->name == kind;
}

enum class MaskBy { kNothing, kFlag, kTensor };

// is_causal shows key j to query i where j <= i, keys of padding too.
bool flag_means_mask(const Problem& problem) {
  const bool top_left = mask_is(problem, "causal_top_left");
  if (!top_left && !mask_is(problem, "causal_bottom_right")) return false;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t queries = problem.len_q(b), keys = problem.len_kv(b);
    if (!top_left && queries != keys) return false;
    if (keys < queries && keys < problem.max_len_kv()) return false;
  }
  return true;
}

bool every_key_is_used(const Problem& problem) {
  for (std::int64_t b = 0; b < problem.batch; ++b)
    if (problem.len_kv(b) != problem.max_len_kv()) return false;
  return true;
}

MaskBy choose_mask(const Problem& problem, CausalFlag causal) {
  if (problem.mask_form != MaskForm::kImplied) return MaskBy::kTensor;
  if (causal == CausalFlag::kNever) return MaskBy::kTensor;
  if (mask_is(problem, "full") && every_key_is_used(problem))
    return MaskBy::kNothing;
  if (causal == CausalFlag::kAlways &&
      (mask_is(problem, "causal_top_left") ||
       mask_is(problem, "causal_bottom_right")))
    return MaskBy::kFlag;
  return flag_means_mask(problem) ? MaskBy::kFlag : MaskBy::kTensor;
}

// What the problem's scale is beside 1 / sqrt(head_dim_qk); 1 unless it says.
double factor_of(const Problem& problem) {
  if (!problem.softmax_scale) return 1;
  return *problem.softmax_scale *
         std::sqrt(static_cast<double>(problem.head_dim_qk));
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

Status run_kernel(const Kernel& kernel, const SdpaCall& call) {
  char message[kMessageBytes] = "";
  if (kernel.run(&call, message, sizeof message)) return ok_status();
  return {StatusCode::kEngineFailure, std::string(message)};
}

// The first output of one query against `keys` equal keys whose values are 1.
Result<double> try_ones(const Kernel& kernel, Dtype dtype, std::int64_t keys,
                        bool masked) {
  constexpr std::int64_t kChannels = 4;
  const std::size_t size = dtype_size(dtype);
  const std::vector<double> ones(static_cast<std::size_t>(keys * kChannels),
                                 1.0);
  std::vector<std::byte> inputs(ones.size() * size), output(kChannels * size);
  encode(dtype, ones.data(), keys * kChannels, inputs.data(), 1);
  const std::vector<std::byte> mask(static_cast<std::size_t>(keys),
                                    std::byte{!masked});
  SdpaCall call{};
  const Element element = element_of(dtype);
  call.query = dense_tensor(inputs.data(), element, {1, 1, 1, kChannels});
  call.key = call.value =
      dense_tensor(inputs.data(), element, {1, 1, keys, kChannels});
  call.mask = dense_tensor(mask.data(), Element::kBool, {1, 1, 1, keys});
  call.factor = 1;
  call.threads = 1;
  call.output = output.data();
  if (Status status = run_kernel(kernel, call); !status.ok()) return status;
  double first = 0;
  decode(dtype, output.data(), 1, 1, &first);
  return first;
}

DtypeBehaviour try_dtype(const Kernel& kernel, Dtype dtype) {
  DtypeBehaviour found;
  const Result<double> empty = try_ones(kernel, dtype, 1, true);
  if (!empty.ok()) {
    found.failure = empty.status().message();
    return found;
  }
  if (!std::isnan(empty.value()))
    found.empty_row = empty.value() == 0 ? EmptyRow::kZero : EmptyRow::kMean;
  // A sum of so many equal weights stops at a half where it is kept in bf16.
  constexpr std::int64_t kKeys = 512;
  const Result<double> sum = try_ones(kernel, dtype, kKeys, false);
  found.narrow_sums = sum.ok() && sum.value() < 0.9;
  return found;
}

}  // namespace

void Sdpa::find_behaviour() {
  for (const DtypeInfo& info : all_dtypes())
    behaviour[static_cast<std::size_t>(info.dtype)] =
        try_dtype(*kernel, info.dtype);
}

std::string Sdpa::unsupported(const Problem& problem) const {
  const std::string release = std::string("LibTorch ") + kernel->version;
  const DtypeBehaviour& found =
      behaviour[static_cast<std::size_t>(problem.dtype)];
  if (!found.failure.empty()) return release + ": " + found.failure;
  if (problem.out_dtype && *problem.out_dtype != problem.dtype)
    return "the output has the inputs' type";
  if (problem.mask_form == MaskForm::kInverted)
    return "attn_mask is boolean (true: may attend) or additive";
  if (!kernel->has_scale && !is_power_of_two(factor_of(problem)))
    return release +
           " has no scale argument: 1/sqrt(head_dim), or that times a power "
           "of two, which is exact in the query";
  // A tensor without keys is no softmax at all: its sums are 0.
  const EmptyRow rule =
      problem.max_len_kv() == 0 ? EmptyRow::kZero : found.empty_row;
  if (problem.empty_row != EmptyRow::kAny && problem.empty_row != rule &&
      has_empty_row(problem))
    return release + " gives " + std::string(empty_row_name(rule)) +
           " for a row with no allowed key: empty_row=" +
           std::string(empty_row_name(rule)) + " or any";
  return {};
}

Numerics Sdpa::numerics(const Problem& problem) const {
  Numerics numerics = default_numerics(problem);
  if (problem.dtype == Dtype::kBf16 || problem.dtype == Dtype::kFp16)
    numerics.score = numerics.probability = problem.dtype;
  // A plain BLAS adds one key after another, and equal weights are rounded
  // alike each time: half of `keys` roundings of the whole sum.
  const auto keys = static_cast<double>(problem.max_len_kv());
  numerics.value_error = keys / 2 * unit_roundoff(numerics.accumulator);
  if (behaviour[static_cast<std::size_t>(problem.dtype)].narrow_sums) {
    numerics.accumulator = problem.dtype;
    // Weights are normalised before the product, so that no partial sum is
    // exact: as if each value were stored with the error of a few roundings.
    numerics.value_error = kRoundingsOfAKey * unit_roundoff(problem.dtype);
  }
  const double factor = factor_of(problem);
  if (!kernel->has_scale && factor > 1)
    numerics.max_input = dtype_info(problem.dtype).max_finite / factor;
  return numerics;
}

Status Sdpa::run(const AttentionCall& call) const {
  const Problem& problem = *call.problem;
  if (problem.max_len_q() == 0) return ok_status();
  const std::int64_t queries = problem.max_len_q();
  const std::int64_t keys = problem.max_len_kv();
  const std::int64_t rows = problem.batch * problem.num_heads * queries;
  const std::size_t size = dtype_size(problem.dtype);
  std::vector<std::byte> copies[3], mask;

  SdpaCall sdpa{};
  sdpa.query = padded(call.query, problem, TensorRole::kQuery, copies[0]);
  sdpa.key = padded(call.key, problem, TensorRole::kKey, copies[1]);
  sdpa.value = padded(call.value, problem, TensorRole::kValue, copies[2]);
  const MaskBy by = choose_mask(problem, causal);
  sdpa.is_causal = by == MaskBy::kFlag;
  if (by == MaskBy::kTensor) {
    const void* data = call.mask.data;
    if (data == nullptr) data = (mask = boolean_mask(call)).data();
    const bool additive = problem.mask_form == MaskForm::kAdditive;
    sdpa.mask = dense_tensor(
        data, additive ? element_of(problem.dtype) : Element::kBool,
        {problem.batch, 1, queries, keys});
  }
  sdpa.factor = factor_of(problem);
  sdpa.threads = threads;
  sdpa.need_weights = weights;

  std::vector<std::byte> output(
      static_cast<std::size_t>(rows * problem.head_dim_v) * size);
  fill_poison(problem.dtype, output.data(), rows * problem.head_dim_v);
  sdpa.output = output.data();
  std::vector<std::byte> all_weights;
  if (call.weights.data != nullptr) {
    all_weights.resize(static_cast<std::size_t>(rows * keys) * size);
    sdpa.weights = all_weights.data();
  }
  if (Status status = run_kernel(*kernel, sdpa); !status.ok()) return status;
  scatter(output, problem, problem.head_dim_v, call.output);
  if (call.weights.data != nullptr)
    scatter(all_weights, problem, keys, call.weights);
  return ok_status();
}

}  // namespace attnguard::libtorch
