#include "adapters/plain/plain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "adapters/plain/repack.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr std::array kRoles = {TensorRole::kQuery, TensorRole::kKey,
                               TensorRole::kValue, TensorRole::kOutput};

// True when both masks allow the same keys in every row of the problem.
bool allows_the_same(const Problem& problem, const Mask& mask) {
  if (mask == problem.mask) return true;
  KeyRanges wanted, offered;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), wanted);
      mask.allowed(problem.row(b, i), offered);
      if (wanted != offered) return false;
    }
  return true;
}

// True when `text` is the problem's mask with all parameters left out.
bool names_the_kinds(const Problem& problem, std::string_view text) {
  const auto names = split(text, '+');
  const auto& terms = problem.mask.terms();
  return names.size() == terms.size() &&
         std::all_of(terms.begin(), terms.end(), [&](const MaskTerm& term) {
           return std::find(names.begin(), names.end(), term.kind->name) !=
                  names.end();
         });
}

// Why a text among PlainOptions::masks means nothing, or empty.
std::string mask_text_fault(std::string_view text) {
  if (text == "*") return {};
  const auto names = split(text, '+');
  if (std::all_of(names.begin(), names.end(), find_mask_kind)) return {};
  const Result<Mask> mask = Mask::parse(text);
  return mask.ok() ? "" : "PlainOptions::masks: " + mask.status().message();
}

std::string mask_reason(const PlainOptions& options, const Problem& problem) {
  std::string known;
  for (const std::string& text : options.masks) {
    if (std::string fault = mask_text_fault(text); !fault.empty()) return fault;
    if (text == "*" || names_the_kinds(problem, text)) return {};
    const Result<Mask> mask = Mask::parse(text);
    if (mask.ok() && allows_the_same(problem, mask.value())) return {};
    if (!known.empty()) known += ", ";
    known += text;
  }
  return "mask " + problem.mask.text() + " is not one it implements (" + known +
         ")";
}

bool all_equal(const std::vector<std::int64_t>& lengths) {
  return std::all_of(lengths.begin(), lengths.end(), [&](std::int64_t length) {
    return length == lengths.front();
  });
}

std::string shape_reason(const PlainOptions& options, const Problem& problem) {
  if (!options.any_out_dtype && problem.output_dtype() != problem.dtype)
    return "out_dtype differs from dtype";
  if (!options.grouped_heads && problem.num_kv_heads != problem.num_heads)
    return "num_kv_heads differs from num_heads";
  if (!options.unequal_head_dims && problem.head_dim_qk != problem.head_dim_v)
    return "head_dim_v differs from head_dim_qk";
  if (!options.own_lengths &&
      !(all_equal(problem.seq_len_q) && all_equal(problem.seq_len_kv)))
    return "batch entries have unlike lengths";
  if (!options.free_scale) {
    Problem fixed = problem;
    fixed.softmax_scale = std::nullopt;
    if (fixed.scale() != problem.scale())
      return "softmax_scale is not 1/sqrt(head_dim_qk)";
  }
  return {};
}

// The first tensor that does not lie in the layout, or nullopt.
std::optional<TensorRole> misplaced(const Problem& problem, Layout layout) {
  for (TensorRole role : kRoles)
    if (!has_layout(problem, role, layout)) return role;
  return std::nullopt;
}

std::string layout_reason(const PlainOptions& options, const Problem& problem) {
  if (!options.layout || options.repack) return {};
  const auto role = misplaced(problem, *options.layout);
  if (!role) return {};
  std::string strides;
  for (std::int64_t stride : problem.strides(*role)) {
    if (!strides.empty()) strides += ',';
    strides += std::to_string(stride);
  }
  return "it expects dense " + std::string(layout_name(*options.layout)) +
         " tensors and the " + std::string(tensor_role_name(*role)) +
         " has strides " + strides +
         " (PlainOptions::repack copies tensors into place)";
}

std::string reason_against(const PlainOptions& options,
                           const Problem& problem) {
  for (const auto& reason_of : {shape_reason, mask_reason, layout_reason})
    if (std::string reason = reason_of(options, problem); !reason.empty())
      return reason;
  return options.unsupported ? options.unsupported(problem) : "";
}

PlainArrays arrays_of(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  return {call.query.data,
          call.key.data,
          call.value.data,
          call.output.data,
          problem.dtype,
          problem.output_dtype(),
          problem.batch,
          problem.num_heads,
          problem.num_kv_heads,
          problem.max_len_q(),
          problem.max_len_kv(),
          problem.head_dim_qk,
          problem.head_dim_v,
          problem.scale(),
          call.query.strides,
          call.key.strides,
          call.value.strides,
          call.output.strides,
          &problem};
}

Status run_plain(const PlainOptions& options, const PlainFunction& function,
                 const AttentionCall& call) {
  const bool in_place =
      !options.layout || !misplaced(*call.problem, *options.layout);
  if (in_place) {
    function(arrays_of(call));
    return ok_status();
  }
  const RepackedCall repacked(call, *options.layout);
  function(arrays_of(repacked.call()));
  repacked.copy_output_back();
  return ok_status();
}

}  // namespace

Engine plain_engine(std::string name, PlainOptions options,
                    PlainFunction function) {
  Engine engine;
  engine.name = std::move(name);
  engine.description = "a function on plain arrays";
  engine.capabilities.dtypes = options.dtypes;
  engine.capabilities.deterministic = options.deterministic;
  engine.capabilities.numerics = options.numerics;
  engine.capabilities.unsupported = [options](const Problem& problem) {
    return reason_against(options, problem);
  };
  engine.run = [options = std::move(options),
                function = std::move(function)](const AttentionCall& call) {
    return run_plain(options, function, call);
  };
  return engine;
}

Engine plain_fp32_engine(std::string name, PlainOptions options,
                         PlainFp32Function function) {
  options.dtypes = {Dtype::kFp32};
  const bool sayable =
      options.layout && !options.own_lengths && !options.any_out_dtype;
  if (!sayable)
    options.unsupported = [](const Problem&) -> std::string {
      return "a plain_fp32_engine function is told neither strides nor "
             "lengths of single entries nor an output type: set "
             "PlainOptions::layout, not own_lengths or any_out_dtype, or use "
             "plain_engine";
    };
  return plain_engine(std::move(name), std::move(options),
                      [function = std::move(function)](const PlainArrays& a) {
                        function(static_cast<const float*>(a.query),
                                 static_cast<const float*>(a.key),
                                 static_cast<const float*>(a.value),
                                 static_cast<float*>(a.output), a.batch,
                                 a.num_heads, a.num_kv_heads, a.seq_len_q,
                                 a.seq_len_kv, a.head_dim_qk, a.head_dim_v,
                                 static_cast<float>(a.softmax_scale));
                      });
}

}  // namespace attnguard
