// The numbers of the C interface and what they mean to the guard.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_CODES_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_CODES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/engine/engine.h"

namespace attnguard::plugin {

std::uint32_t dtype_code(Dtype dtype);
std::optional<Dtype> dtype_of_code(std::uint32_t code);

// Bits 1u << code. Empty text: nothing is wrong; otherwise it names the bits
// that stand for nothing.
std::vector<Dtype> dtypes_of_bits(std::uint32_t bits, std::string& unknown);
std::vector<Feature> features_of_bits(std::uint64_t bits, std::string& unknown);

std::uint32_t layout_code(Layout layout);
std::uint32_t empty_row_code(EmptyRow rule);
std::uint32_t mask_form_code(MaskForm form);

// ATTNGUARD_MASK_OTHER for kinds that have no number yet.
std::uint32_t mask_kind_code(std::string_view name);

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_CODES_H_
