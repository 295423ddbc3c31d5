// A place in a file the user wrote. Lines and columns count from 1; 0 = none.
#ifndef ATTNGUARD_GUARD_BASE_SOURCE_LOCATION_H_
#define ATTNGUARD_GUARD_BASE_SOURCE_LOCATION_H_

#include <string>

namespace attnguard {

struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  friend bool operator==(const SourceLocation&,
                         const SourceLocation&) = default;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_SOURCE_LOCATION_H_
