// Under the address sanitizer everything runs several times slower; what only
// repeats itself on more problems is repeated less there.
#ifndef ATTNGUARD_TESTS_SUPPORT_SANITIZER_H_
#define ATTNGUARD_TESTS_SUPPORT_SANITIZER_H_

namespace attnguard {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_SANITIZER_H_
