// How elements of ONNX tensors lie in memory: little endian, as this machine.
#ifndef ATTNGUARD_CI_LINT_ELEMENT_H_
#define ATTNGUARD_CI_LINT_ELEMENT_H_

#include <cstddef>
#include <cstdint>

namespace attnguard::lint {

double from_half(std::uint16_t bits);
double from_bfloat(std::uint16_t bits);

struct ElementFormat {
  std::size_t size = 0;  // Bytes; 0: a type that we do not read.
  double (*read)(const char* bytes, std::int64_t index) = nullptr;
};

ElementFormat element_format(int type);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_ELEMENT_H_
