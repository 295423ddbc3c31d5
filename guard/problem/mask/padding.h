// Shared by the mask kinds that know of padding on the left: a parameter `pad`
// that holds one number for every batch entry, or one per entry.
#ifndef ATTNGUARD_GUARD_PROBLEM_MASK_PADDING_H_
#define ATTNGUARD_GUARD_PROBLEM_MASK_PADDING_H_

#include <cstdint>

#include "guard/problem/mask/mask.h"

namespace attnguard {

constexpr MaskParameter kPadParameter = {
    "pad",
    0,
    true,
    0,
    "leading padding tokens: one number, or one per batch entry",
    true};

// The padding of a batch entry; `pad` is the parameter's value.
std::int64_t pad_of(const std::vector<std::int64_t>& pad, std::int64_t batch);

Status validate_pad(const std::vector<std::int64_t>& pad,
                    const Problem& problem);

// Leaves at least one token of each entry that is not padding.
std::vector<std::int64_t> shrunk_pad(const std::vector<std::int64_t>& pad,
                                     const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_MASK_PADDING_H_
