// Runs one-node models on an ONNX Runtime library, and keeps those that were
// used last.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_SESSION_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_SESSION_H_

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "adapters/onnxruntime/library.h"
#include "adapters/onnxruntime/node.h"

namespace attnguard::onnxruntime {

class Sessions {
 public:
  // `threads`: of one operator.
  Sessions(std::shared_ptr<const Library> library, int threads)
      : library_(std::move(library)), threads_(threads) {}
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  const Library& library() const { return *library_; }

  // Reads the inputs' bytes and writes the outputs'. Thread-safe, one run at a
  // time. Fails with ONNX Runtime's own message.
  Status run(NodeCall& node);

 private:
  struct Kept {
    std::string model;
    OrtSession* session = nullptr;
  };

  Result<OrtSession*> session_for(const std::string& model);
  Status run_on(OrtSession* session, NodeCall& node) const;

  std::shared_ptr<const Library> library_;
  int threads_ = 1;
  std::mutex mutex_;      // Guards what follows.
  std::list<Kept> kept_;  // The last used first.
};

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_SESSION_H_
