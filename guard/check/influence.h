// What future-influence and amplitude share: later tokens get fresh values,
// and rows that may see none of them must hold, bit for bit.
#ifndef ATTNGUARD_GUARD_CHECK_INFLUENCE_H_
#define ATTNGUARD_GUARD_CHECK_INFLUENCE_H_

#include <memory>
#include <string>

#include "guard/check/check.h"

namespace attnguard {

enum class Amplitude {
  kModerate,  // Fresh values of the usual size.
  kExtreme,   // Values 2^10 and scores up to 64 * 64 times as large.
};

std::unique_ptr<Check> make_influence(const CheckContext& context,
                                      Amplitude amplitude);

// Why no cut leaves a row that must hold, or empty.
std::string no_cut(const CheckContext& context);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_INFLUENCE_H_
