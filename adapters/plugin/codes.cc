#include "adapters/plugin/codes.h"

#include <utility>

#include "adapters/plugin/attnguard_plugin.h"

namespace attnguard::plugin {
namespace {

constexpr std::pair<std::uint32_t, Dtype> kDtypeCodes[] = {
    {ATTNGUARD_FP64, Dtype::kFp64},
    {ATTNGUARD_FP32, Dtype::kFp32},
    {ATTNGUARD_FP16, Dtype::kFp16},
    {ATTNGUARD_BF16, Dtype::kBf16},
};

constexpr std::pair<std::uint64_t, Feature> kFeatureBits[] = {
    {ATTNGUARD_FEATURE_SOFTCAP, Feature::kSoftcap},
    {ATTNGUARD_FEATURE_ALIBI, Feature::kAlibi},
    {ATTNGUARD_FEATURE_SINKS, Feature::kSinks},
    {ATTNGUARD_FEATURE_MASK_TENSOR, Feature::kMaskTensor},
    {ATTNGUARD_FEATURE_VALUE_IN_KEY, Feature::kValueInKey},
    {ATTNGUARD_FEATURE_PACKED, Feature::kPacked},
    {ATTNGUARD_FEATURE_PAGED, Feature::kPaged},
    {ATTNGUARD_FEATURE_LSE, Feature::kLse},
    {ATTNGUARD_FEATURE_WEIGHTS, Feature::kWeights},
};

constexpr std::pair<std::string_view, std::uint32_t> kMaskKinds[] = {
    {"full", ATTNGUARD_MASK_FULL},
    {"causal_top_left", ATTNGUARD_MASK_CAUSAL_TOP_LEFT},
    {"causal_bottom_right", ATTNGUARD_MASK_CAUSAL_BOTTOM_RIGHT},
    {"prefix_lm", ATTNGUARD_MASK_PREFIX_LM},
    {"bidirectional_spans", ATTNGUARD_MASK_BIDIRECTIONAL_SPANS},
    {"tree", ATTNGUARD_MASK_TREE},
    {"sliding_window", ATTNGUARD_MASK_SLIDING_WINDOW},
    {"sliding_window_top_left", ATTNGUARD_MASK_SLIDING_WINDOW_TOP_LEFT},
    {"sliding_window_keys", ATTNGUARD_MASK_SLIDING_WINDOW_KEYS},
    {"sliding_window_two_sided", ATTNGUARD_MASK_SLIDING_WINDOW_TWO_SIDED},
    {"window_symmetric", ATTNGUARD_MASK_WINDOW_SYMMETRIC},
    {"encoder_window", ATTNGUARD_MASK_ENCODER_WINDOW},
    {"chunked_local", ATTNGUARD_MASK_CHUNKED_LOCAL},
    {"chunked_local_from_padding", ATTNGUARD_MASK_CHUNKED_LOCAL_FROM_PADDING},
    {"documents", ATTNGUARD_MASK_DOCUMENTS},
    {"left_padding", ATTNGUARD_MASK_LEFT_PADDING},
    {"left_padding_keys", ATTNGUARD_MASK_LEFT_PADDING_KEYS},
};

void name_bit(int bit, std::string& unknown) {
  unknown += (unknown.empty() ? "" : ", ") + std::to_string(bit);
}

}  // namespace

std::uint32_t dtype_code(Dtype dtype) {
  for (const auto& [code, each] : kDtypeCodes)
    if (each == dtype) return code;
  return UINT32_MAX;
}

std::optional<Dtype> dtype_of_code(std::uint32_t code) {
  for (const auto& [known, dtype] : kDtypeCodes)
    if (known == code) return dtype;
  return std::nullopt;
}

std::vector<Dtype> dtypes_of_bits(std::uint32_t bits, std::string& unknown) {
  std::vector<Dtype> dtypes;
  for (std::uint32_t code = 0; code < 32; ++code) {
    if ((bits >> code & 1) == 0) continue;
    if (const auto dtype = dtype_of_code(code))
      dtypes.push_back(*dtype);
    else
      name_bit(static_cast<int>(code), unknown);
  }
  return dtypes;
}

std::vector<Feature> features_of_bits(std::uint64_t bits,
                                      std::string& unknown) {
  std::vector<Feature> features;
  for (const auto& [bit, feature] : kFeatureBits) {
    if ((bits & bit) != 0) features.push_back(feature);
    bits &= ~bit;
  }
  for (int bit = 0; bit < 64; ++bit)
    if ((bits >> bit & 1) != 0) name_bit(bit, unknown);
  return features;
}

std::uint32_t layout_code(Layout layout) {
  switch (layout) {
    case Layout::kBhsd:
      return ATTNGUARD_LAYOUT_BHSD;
    case Layout::kBshd:
      return ATTNGUARD_LAYOUT_BSHD;
    case Layout::kSbhd:
      return ATTNGUARD_LAYOUT_SBHD;
  }
  return UINT32_MAX;
}

std::uint32_t empty_row_code(EmptyRow rule) {
  switch (rule) {
    case EmptyRow::kZero:
      return ATTNGUARD_EMPTY_ZERO;
    case EmptyRow::kNan:
      return ATTNGUARD_EMPTY_NAN;
    case EmptyRow::kMean:
      return ATTNGUARD_EMPTY_MEAN;
    case EmptyRow::kAny:
      return ATTNGUARD_EMPTY_ANY;
  }
  return UINT32_MAX;
}

std::uint32_t mask_form_code(MaskForm form) {
  switch (form) {
    case MaskForm::kImplied:
      return ATTNGUARD_MASK_IMPLIED;
    case MaskForm::kBoolean:
      return ATTNGUARD_MASK_BOOLEAN;
    case MaskForm::kInverted:
      return ATTNGUARD_MASK_INVERTED;
    case MaskForm::kAdditive:
      return ATTNGUARD_MASK_ADDITIVE;
  }
  return UINT32_MAX;
}

std::uint32_t mask_kind_code(std::string_view name) {
  for (const auto& [known, code] : kMaskKinds)
    if (known == name) return code;
  return ATTNGUARD_MASK_OTHER;
}

}  // namespace attnguard::plugin
