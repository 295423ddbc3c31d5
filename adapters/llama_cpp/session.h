// One opened engine: a CPU backend with its threads, and the graph of the last
// problem, kept so that a repeated call costs the kernel and the copies only.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_SESSION_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "adapters/llama_cpp/graph.h"
#include "adapters/llama_cpp/library.h"
#include "guard/engine/engine.h"

namespace attnguard::ggml {

// Calls from several threads take turns.
class Session {
 public:
  // kEngineFailure when the backend does not start.
  static Result<std::shared_ptr<Session>> create(
      std::shared_ptr<const Library> library, const Settings& settings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status run(const AttentionCall& call);

  // What ggml does on this problem. Whether the flash kernel sums in fp16
  // depends on its release, on the instruction set and on the shape, so it is
  // measured: once per shape, on two keys.
  Numerics numerics(const Problem& problem);

  // What these kernels of this library have.
  std::vector<Feature> features() const;

  // Why ggml cannot run the problem, or empty.
  std::string unsupported(const Problem& problem) const;

 private:
  Session(std::shared_ptr<const Library> library, const Settings& settings);

  std::string empty_row_reason(const Problem& problem) const;
  Status prepare(const Problem& problem);
  void load(const AttentionCall& call);
  bool sums_in_fp16(const Problem& problem);
  std::optional<bool> measure_fp16_sums(const Problem& two_keys);

  std::shared_ptr<const Library> library_;
  Settings settings_;
  Backend* backend_ = nullptr;

  std::mutex mutex_;  // Guards all below.
  std::unique_ptr<AttentionGraph> graph_;

  // By key type, seq_len_q and head_dim_v: what the kernel dispatches on.
  std::map<std::tuple<int, std::int64_t, std::int64_t>, bool> fp16_sums_;
};

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_SESSION_H_
