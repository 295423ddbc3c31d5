#include "adapters/llama_cpp/examples/server.h"

#include <ggml-backend.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "guard/base/rng.h"

namespace attnguard::examples {
namespace {

constexpr int kContext = 256, kMostSequences = 4;

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};

// What llama.cpp calls for each node: the fault first, then the guard.
struct Stages {
  Corruption* corruption = nullptr;
  llama_cpp::LiveHook* hook = nullptr;

  static bool evaluate(ggml_tensor* node, bool ask, void* data) {
    auto& self = *static_cast<Stages*>(data);
    if (ask) {
      const bool fault = self.corruption->ask(node);
      const bool guard = self.hook != nullptr &&
                         llama_cpp::LiveHook::evaluate(node, true, self.hook);
      self.asked_by_guard = guard;
      return fault || guard;
    }
    self.corruption->computed(node);
    return !self.asked_by_guard ||
           llama_cpp::LiveHook::evaluate(node, false, self.hook);
  }
  bool asked_by_guard = false;  // The node that is computed last.
};

ggml_type cache_type(const std::string& name) {
  if (name == "f32") return GGML_TYPE_F32;
  if (name == "bf16") return GGML_TYPE_BF16;
  if (name == "q8_0") return GGML_TYPE_Q8_0;
  return GGML_TYPE_F16;
}

class Server {
 public:
  Server(const ServerOptions& options, llama_model* model,
         llama_context* context, llama_cpp::LiveHook* hook)
      : options_(options),
        context_(context),
        hook_(options.tell ? hook : nullptr),
        vocabulary_(llama_vocab_n_tokens(llama_model_get_vocab(model))) {}

  Status run() {
    for (const auto& [sequence, length] : {std::pair(0, 24), {1, 17}, {2, 9}})
      add_prompt(sequence, length);
    if (Status status = decode(); !status.ok()) return status;
    if (Status status = generate(options_.steps); !status.ok()) return status;
    end(1);
    fork(0, 3);
    add_prompt(1, 13);  // In the cells that were given back.
    if (Status status = decode(); !status.ok()) return status;
    return generate(options_.steps);
  }

  ServerResult result;

 private:
  struct Sequence {
    llama_pos next = 0;
    llama_token token = 0;  // To be decoded.
    int output = -1;        // Its row among the last batch's outputs.
  };

  llama_token random_token() {
    return static_cast<llama_token>(
        uniform_below(derive_seed(options_.seed, draws_++), vocabulary_));
  }

  void add(int sequence, llama_token token, bool wants_output) {
    Sequence& its = sequences_[sequence];
    tokens_.push_back(token);
    positions_.push_back(its.next++);
    ids_.push_back(sequence);
    outputs_.push_back(wants_output);
    if (wants_output) its.output = static_cast<int>(tokens_.size()) - 1;
  }

  void add_prompt(int sequence, int length) {
    sequences_[sequence] = {};
    for (int i = 0; i < length; ++i)
      add(sequence, random_token(), i + 1 == length);
  }

  Status generate(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (auto& [sequence, its] : sequences_) add(sequence, its.token, true);
      if (Status status = decode(); !status.ok()) return status;
    }
    return ok_status();
  }

  // Everything that was added, and the next token of each sequence.
  Status decode() {
    std::vector<std::int32_t> counts(tokens_.size(), 1);
    std::vector<llama_seq_id*> ids;
    for (llama_seq_id& id : ids_) ids.push_back(&id);
    const llama_batch batch = {static_cast<std::int32_t>(tokens_.size()),
                               tokens_.data(),
                               nullptr,
                               positions_.data(),
                               counts.data(),
                               ids.data(),
                               outputs_.data()};
    if (hook_ != nullptr) hook_->begin_batch(batch);
    const auto start = std::chrono::steady_clock::now();
    const std::int32_t code = llama_decode(context_, batch);
    result.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (code != 0) {
      if (hook_ != nullptr) hook_->batch_failed();
      return {StatusCode::kEngineFailure,
              "llama_decode returned " + std::to_string(code)};
    }
    result.tokens += batch.n_tokens;
    ++result.batches;
    for (auto& [sequence, its] : sequences_) {
      if (its.output >= 0) its.token = best(its.output);
      its.output = -1;
    }
    tokens_.clear();
    positions_.clear();
    ids_.clear();
    outputs_.clear();
    return ok_status();
  }

  llama_token best(int output) const {
    const float* logits = llama_get_logits_ith(context_, output);
    return static_cast<llama_token>(
        std::max_element(
            logits, logits + vocabulary_,
            [](float a, float b) { return std::isnan(b) ? false : a < b; }) -
        logits);
  }

  void end(int sequence) {
    llama_memory_seq_rm(llama_get_memory(context_), sequence, -1, -1);
    if (hook_ != nullptr) hook_->removed(sequence, -1, -1);
    sequences_.erase(sequence);
  }

  void fork(int from, int to) {
    llama_memory_seq_cp(llama_get_memory(context_), from, to, -1, -1);
    if (hook_ != nullptr) hook_->copied(from, to, -1, -1);
    sequences_[to] = sequences_[from];
    sequences_[to].output = -1;
    sequences_[to].token = random_token();
  }

  const ServerOptions& options_;
  llama_context* context_;
  llama_cpp::LiveHook* hook_;
  std::int32_t vocabulary_;
  std::uint64_t draws_ = 0;
  std::map<int, Sequence> sequences_;

  // The next batch.
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<llama_seq_id> ids_;
  std::vector<std::int8_t> outputs_;
};

void stay_silent(ggml_log_level, const char*, void*) {}

std::unique_ptr<llama_model, FreeModel> load(const ServerOptions& options) {
  llama_log_set(stay_silent, nullptr);
  if (ggml_backend_reg_count() == 0)
    ggml_backend_load_all_from_path(options.libraries.c_str());
  return std::unique_ptr<llama_model, FreeModel>(llama_model_load_from_file(
      options.model.c_str(), llama_model_default_params()));
}

llama_context_params context_params(const ServerOptions& options) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = kContext;
  params.n_batch = kContext;
  params.n_ubatch = static_cast<std::uint32_t>(options.ubatch);
  params.n_seq_max = kMostSequences;
  params.n_threads = params.n_threads_batch = 1;
  params.flash_attn_type = options.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                                         : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.kv_unified = options.unified;
  params.type_k = params.type_v = cache_type(options.cache);
  params.no_perf = true;
  return params;
}

}  // namespace

Result<ServerResult> serve(const ServerOptions& options,
                           llama_cpp::LiveHook* hook, Corruption& corruption) {
  const auto model = load(options);
  if (model == nullptr)
    return Status{StatusCode::kNotFound,
                  "llama.cpp cannot load '" + options.model + "'"};
  Stages stages{&corruption, hook};
  llama_context_params params = context_params(options);
  if (hook != nullptr || corruption.fault() != Fault::kNone) {
    params.cb_eval = Stages::evaluate;
    params.cb_eval_user_data = &stages;
  }
  const std::unique_ptr<llama_context, FreeContext> context(
      llama_init_from_model(model.get(), params));
  if (context == nullptr)
    return Status{StatusCode::kEngineFailure,
                  "llama.cpp cannot make a context for '" + options.model +
                      "' with a cache of " + options.cache};
  if (hook != nullptr && options.tell) hook->cleared();
  Server server(options, model.get(), context.get(), hook);
  if (Status status = server.run(); !status.ok()) return status;
  return server.result;
}

}  // namespace attnguard::examples
