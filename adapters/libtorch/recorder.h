// What crosses between the live hook and recorder.cc, which includes ATen: as
// kernel.h, plain data only.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_RECORDER_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_RECORDER_H_

#include <cstddef>
#include <cstdint>

#include "adapters/libtorch/kernel.h"

namespace attnguard::libtorch {

// A finished attention call of the process. Axes [batch, heads, positions,
// channels]; a mask's axes may be 1, which stands for any. A mask's shape is
// as the call gave it: it need not fit. Valid during Listener::seen only.
struct SeenCall {
  const char* problem;  // Why it cannot be described, or nullptr.
  Tensor query, key, value;
  Tensor mask;     // data is nullptr for none
  Tensor weights;  // data is nullptr where the kernel returns none
  Tensor output;
  bool is_causal;
  double dropout;
  double scale;  // 0: the kernel's own, 1 / sqrt(channels)
};

// Called from the threads that call attention.
struct Listener {
  void* user;
  // Before the call: is it to be seen? No tensor has been touched.
  bool (*wants)(void* user);
  void (*seen)(void* user, const SeenCall* call);
};

struct Recorder {
  std::size_t call_size;  // sizeof(SeenCall) where the module was built.
  const char* version;    // "1.13.0"

  // Registers the process's one listener; the struct is copied. `probability`
  // is that with which LibTorch calls back at all. False: there is one already.
  bool (*start)(const Listener* listener, double probability);

  // No attention may run meanwhile, as at::removeCallback demands.
  void (*stop)();
};

using GetRecorder = const Recorder* (*)();
inline constexpr const char* kRecorderSymbol = "attnguard_libtorch_recorder";

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_RECORDER_H_
