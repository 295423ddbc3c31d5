#include "adapters/llama_cpp/model.h"

#include <dlfcn.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/llama_cpp/model_library.h"
#include "adapters/llama_cpp/model_options.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSmallModel = 64u << 20;  // bytes

// Each member is the function of the same name behind "llama_".
struct Functions {
  decltype(&llama_log_set) log_set;
  decltype(&llama_backend_init) backend_init;
  decltype(&llama_model_default_params) model_default_params;
  decltype(&llama_context_default_params) context_default_params;
  decltype(&llama_model_load_from_file) model_load_from_file;
  decltype(&llama_model_free) model_free;
  decltype(&llama_init_from_model) init_from_model;
  decltype(&llama_free) free;
  decltype(&llama_n_ctx_seq) n_ctx_seq;
  decltype(&llama_n_ubatch) n_ubatch;
  decltype(&llama_get_memory) get_memory;
  decltype(&llama_model_get_vocab) model_get_vocab;
  decltype(&llama_vocab_n_tokens) vocab_n_tokens;
  decltype(&llama_model_n_ctx_train) model_n_ctx_train;
  decltype(&llama_model_desc) model_desc;
  decltype(&llama_model_has_encoder) model_has_encoder;
  decltype(&llama_model_has_decoder) model_has_decoder;
  decltype(&llama_model_is_diffusion) model_is_diffusion;
  decltype(&llama_model_ftype) model_ftype;
  decltype(&llama_model_size) model_size;
  decltype(&llama_memory_seq_rm) memory_seq_rm;
  decltype(&llama_memory_clear) memory_clear;
  decltype(&llama_memory_seq_pos_max) memory_seq_pos_max;
  decltype(&llama_set_causal_attn) set_causal_attn;
  decltype(&llama_decode) decode;
  decltype(&llama_get_logits_ith) get_logits_ith;
  const char* (*version)();  // Younger than the rest: may be nullptr.
};

template <typename Function>
void find(const llama::Library& library, const char* name, Function*& function,
          std::string& missing) {
  function = reinterpret_cast<Function*>(dlsym(library.handle, name));
  if (!function && missing.empty()) missing = name;
}

Status resolve(const llama::Library& library, Functions& call) {
  std::string missing, ignored;
  find(library, "llama_log_set", call.log_set, missing);
  find(library, "llama_backend_init", call.backend_init, missing);
  find(library, "llama_model_default_params", call.model_default_params,
       missing);
  find(library, "llama_context_default_params", call.context_default_params,
       missing);
  find(library, "llama_model_load_from_file", call.model_load_from_file,
       missing);
  find(library, "llama_model_free", call.model_free, missing);
  find(library, "llama_init_from_model", call.init_from_model, missing);
  find(library, "llama_free", call.free, missing);
  find(library, "llama_n_ctx_seq", call.n_ctx_seq, missing);
  find(library, "llama_n_ubatch", call.n_ubatch, missing);
  find(library, "llama_get_memory", call.get_memory, missing);
  find(library, "llama_model_get_vocab", call.model_get_vocab, missing);
  find(library, "llama_vocab_n_tokens", call.vocab_n_tokens, missing);
  find(library, "llama_model_n_ctx_train", call.model_n_ctx_train, missing);
  find(library, "llama_model_desc", call.model_desc, missing);
  find(library, "llama_model_has_encoder", call.model_has_encoder, missing);
  find(library, "llama_model_has_decoder", call.model_has_decoder, missing);
  find(library, "llama_model_is_diffusion", call.model_is_diffusion, missing);
  find(library, "llama_model_ftype", call.model_ftype, missing);
  find(library, "llama_model_size", call.model_size, missing);
  find(library, "llama_memory_seq_rm", call.memory_seq_rm, missing);
  find(library, "llama_memory_clear", call.memory_clear, missing);
  find(library, "llama_memory_seq_pos_max", call.memory_seq_pos_max, missing);
  find(library, "llama_set_causal_attn", call.set_causal_attn, missing);
  find(library, "llama_decode", call.decode, missing);
  find(library, "llama_get_logits_ith", call.get_logits_ith, missing);
  find(library, "llama_version", call.version, ignored);
  if (missing.empty()) return ok_status();
  return {StatusCode::kUnsupported, "llama.cpp: " + library.file +
                                        " has no symbol " + missing +
                                        ": it is older than the llama.h that "
                                        "attnguard was built with"};
}

// A struct that a library returns, with room behind it: a younger library may
// have a larger one. Returned through memory either way, so that the calls look
// alike to it.
constexpr std::size_t kRoom = 1024;
constexpr unsigned char kUntouched = 0xa5;

template <typename Params>
struct Roomy {
  Params params;
  std::array<unsigned char, kRoom> behind;
};

// Calls `defaults` into memory of a known pattern. False: it wrote more than
// the header's struct.
template <typename Params>
bool read_defaults(Params (*defaults)(), Params& params) {
  using Defaults = Roomy<Params> (*)();
  alignas(Roomy<Params>) std::array<unsigned char, sizeof(Roomy<Params>)> raw;
  raw.fill(kUntouched);
  unsigned char* address = raw.data();
  // Hides from the compiler that an object begins here, whose memory it would
  // not need to fill before.
  asm volatile("" : "+r"(address) : : "memory");
  new (address) Roomy<Params>(
      reinterpret_cast<Defaults>(reinterpret_cast<void*>(defaults))());
  asm volatile("" : "+r"(address) : : "memory");
  std::memcpy(&params, address, sizeof params);
  const unsigned char* behind = address + offsetof(Roomy<Params>, behind);
  return std::all_of(behind, behind + kRoom,
                     [](unsigned char byte) { return byte == kUntouched; });
}

// The values that llama.cpp has had in these places for years; a field more or
// less in front moves them.
bool looks_right(const llama_context_params& p) {
  return p.n_ctx == 512 && p.n_batch == 2048 && p.n_ubatch == 512 &&
         p.n_seq_max == 1 && p.n_threads > 0 && p.n_threads < 4096 &&
         p.yarn_ext_factor == -1.0f && p.cb_eval == nullptr &&
         p.type_k == GGML_TYPE_F16 && p.type_v == GGML_TYPE_F16 &&
         p.abort_callback == nullptr && !p.embeddings && p.offload_kqv &&
         p.samplers == nullptr && p.n_samplers == 0 && p.ctx_other == nullptr;
}

bool looks_right(const llama_model_params& p) {
  return p.devices == nullptr && p.tensor_buft_overrides == nullptr &&
         p.tensor_split == nullptr && p.progress_callback == nullptr &&
         p.kv_overrides == nullptr && !p.vocab_only && !p.check_tensors;
}

struct Llama {
  Functions call;
  llama_model_params model;
  llama_context_params context;
};

Result<std::shared_ptr<const Llama>> load(const std::string& path) {
  static std::mutex mutex;
  static std::shared_ptr<const Llama> loaded;
  static std::string loaded_file;

  Result<llama::Library> library = llama::load_library(path);
  if (!library.ok()) return library.status();
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded && loaded_file == library.value().file) return loaded;
  auto made = std::make_shared<Llama>();
  Status status = resolve(library.value(), made->call);
  if (!status.ok()) return status;
  made->call.log_set([](ggml_log_level level, const char* text,
                        void* data) { llama::keep_message(level, text, data); },
                     nullptr);
  const bool same =
      read_defaults(made->call.model_default_params, made->model) &&
      read_defaults(made->call.context_default_params, made->context);
  if (!same || !looks_right(made->model) || !looks_right(made->context))
    return unsupported(
        "llama.cpp: the parameters of " + library.value().file +
        " are not those of the llama.h that attnguard was built with; build "
        "attnguard with -DATTNGUARD_LLAMA_CPP=DIR of that release");
  made->call.backend_init();
  loaded_file = library.value().file;
  loaded = std::move(made);
  return loaded;
}

ggml_type cache_type(const std::string& kv) {
  if (kv == "f32") return GGML_TYPE_F32;
  if (kv == "bf16") return GGML_TYPE_BF16;
  return kv == "q8_0" ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
}

// Of the cache, and of the activations that meet the weights: as fp16 where
// these are fp16, in blocks of 8 bits where they are quantised. The fused
// attention kernel computes in fp16 in some shapes, whatever the cache holds.
double roundoff_of(llama_ftype type, const llama::Options& options) {
  double roundoff = 0x1p-8;
  if (options.kv == "f16") roundoff = 0x1p-11;
  if (options.kv == "f32")
    roundoff = options.flash == "off" ? 0x1p-24 : 0x1p-11;
  const int plain = type & ~LLAMA_FTYPE_GUESSED;
  if (plain == LLAMA_FTYPE_ALL_F32) return roundoff;
  return std::max(roundoff, plain == LLAMA_FTYPE_MOSTLY_F16 ? 0x1p-11 : 0x1p-8);
}

class Session {
 public:
  explicit Session(std::shared_ptr<const Llama> llama)
      : llama_(std::move(llama)) {}
  ~Session() {
    if (context_) llama_->call.free(context_);
    if (model_) llama_->call.model_free(model_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status open(const std::string& file, const llama::Options& options);
  Status clear(std::int64_t sequence);
  Status decode(std::span<const ModelStep> steps);
  Model describe(const std::string& file, const llama::Options& options) const;

 private:
  Status load_model(const std::string& file, const llama::Options& options);
  Status make_context(const llama::Options& options);
  std::int32_t threads(const llama::Options& options) const;
  std::int32_t vocab_size() const {
    return llama_->call.vocab_n_tokens(llama_->call.model_get_vocab(model_));
  }

  std::shared_ptr<const Llama> llama_;
  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  std::int64_t sequences_ = 1;
  bool causal_ = true;
};

Status Session::load_model(const std::string& file,
                           const llama::Options& options) {
  llama_model_params params = llama_->model;
  params.n_gpu_layers = static_cast<std::int32_t>(options.gpu_layers);
  params.progress_callback = [](float, void*) { return true; };
  params.check_tensors = true;
  llama::forget_messages();
  model_ = llama_->call.model_load_from_file(file.c_str(), params);
  if (!model_)
    return invalid_argument(file + " is not a model that this llama.cpp reads" +
                            llama::messages());
  if (llama_->call.model_has_encoder(model_) ||
      !llama_->call.model_has_decoder(model_) ||
      llama_->call.model_is_diffusion(model_))
    return unsupported(file +
                       " is not a decoder that writes one token after the "
                       "other: its logits may depend on later tokens");
  return ok_status();
}

// Threads that wait for each other cost more than a small model has to do.
std::int32_t Session::threads(const llama::Options& options) const {
  if (options.threads > 0) return static_cast<std::int32_t>(options.threads);
  if (llama_->call.model_size(model_) < kSmallModel) return 1;
  return static_cast<std::int32_t>(
      std::max(1u, std::thread::hardware_concurrency()));
}

Status Session::make_context(const llama::Options& options) {
  llama_context_params params = llama_->context;
  std::int64_t context = options.context;
  const std::int64_t trained = llama_->call.model_n_ctx_train(model_);
  if (trained > 0) context = std::min(context, trained);
  sequences_ = options.sequences;
  causal_ = options.causal;
  params.n_ctx = static_cast<std::uint32_t>(context * sequences_);
  params.n_batch = params.n_ctx;
  params.n_ubatch = static_cast<std::uint32_t>(
      std::min<std::int64_t>(options.ubatch, params.n_batch));
  params.n_seq_max = static_cast<std::uint32_t>(sequences_);
  params.n_threads = threads(options);
  params.n_threads_batch = params.n_threads;
  params.flash_attn_type = options.flash == "on" ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                           : options.flash == "off"
                               ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                               : LLAMA_FLASH_ATTN_TYPE_AUTO;
  params.type_k = params.type_v = cache_type(options.kv);
  params.offload_kqv = options.gpu_layers > 0;
  params.op_offload = options.gpu_layers > 0;
  params.swa_full = options.swa_full;
  params.kv_unified = options.unified;
  llama::forget_messages();
  context_ = llama_->call.init_from_model(model_, params);
  if (!context_)
    return invalid_argument("llama.cpp cannot make a context of " +
                            std::to_string(sequences_) + " sequences of " +
                            std::to_string(context) + " tokens" +
                            llama::messages());
  llama_->call.set_causal_attn(context_, causal_);
  return ok_status();
}

Status Session::open(const std::string& file, const llama::Options& options) {
  Status status = load_model(file, options);
  if (status.ok()) status = make_context(options);
  if (status.ok() && vocab_size() < 2)
    status = invalid_argument(file + " has no vocabulary");
  return status;
}

Status Session::clear(std::int64_t sequence) {
  llama_memory_t memory = llama_->call.get_memory(context_);
  if (!memory) return unsupported("the model has no memory");
  const auto id = static_cast<llama_seq_id>(sequence);
  if (!llama_->call.memory_seq_rm(memory, id, -1, -1))
    return {StatusCode::kEngineFailure, "llama_memory_seq_rm failed"};
  // An empty cache begins at its first cell again, so that equal calls get
  // equal cells. What lies in them stays.
  for (std::int64_t s = 0; s < sequences_; ++s)
    if (llama_->call.memory_seq_pos_max(memory, static_cast<llama_seq_id>(s)) >=
        0)
      return ok_status();
  llama_->call.memory_clear(memory, false);
  return ok_status();
}

Status Session::decode(std::span<const ModelStep> steps) {
  std::vector<llama_token> tokens;
  std::vector<llama_pos> positions;
  std::vector<llama_seq_id> ids;
  for (const ModelStep& step : steps)
    for (std::size_t i = 0; i < step.tokens.size(); ++i) {
      tokens.push_back(step.tokens[i]);
      positions.push_back(static_cast<llama_pos>(step.position) +
                          static_cast<llama_pos>(i));
      ids.push_back(static_cast<llama_seq_id>(step.sequence));
    }
  if (!causal_ && tokens.size() > llama_->call.n_ubatch(context_))
    return invalid_argument(
        "causal=0 needs ubatch to hold all tokens of a batch: set ubatch=" +
        std::to_string(tokens.size()));
  std::vector<llama_seq_id*> id_lists;
  for (llama_seq_id& id : ids) id_lists.push_back(&id);
  std::vector<std::int32_t> counts(tokens.size(), 1);
  std::vector<std::int8_t> wanted(tokens.size(), 1);
  llama_batch batch{};
  batch.n_tokens = static_cast<std::int32_t>(tokens.size());
  batch.token = tokens.data();
  batch.pos = positions.data();
  batch.n_seq_id = counts.data();
  batch.seq_id = id_lists.data();
  batch.logits = wanted.data();
  llama::forget_messages();
  const int code = llama_->call.decode(context_, batch);
  if (code != 0)
    return {StatusCode::kEngineFailure,
            (code == 1 ? std::string("the cache has no room for ") +
                             std::to_string(tokens.size()) + " more tokens"
                       : "llama_decode returned " + std::to_string(code)) +
                llama::messages()};
  const auto vocab = static_cast<std::size_t>(vocab_size());
  std::int32_t row = 0;
  for (const ModelStep& step : steps)
    for (std::size_t i = 0; i < step.tokens.size(); ++i) {
      const float* logits = llama_->call.get_logits_ith(context_, row++);
      if (!logits)
        return {StatusCode::kEngineFailure,
                "llama.cpp has no logits for this model" + llama::messages()};
      std::copy_n(logits, vocab,
                  step.logits.begin() + static_cast<std::ptrdiff_t>(i * vocab));
    }
  return ok_status();
}

Model Session::describe(const std::string& file,
                        const llama::Options& options) const {
  std::array<char, 128> text{};
  llama_->call.model_desc(model_, text.data(), text.size());
  Model model;
  model.name = fs::path(file).filename().string();
  model.description =
      std::string(text.data()) + "; llama.cpp " +
      (llama_->call.version ? llama_->call.version() : "of unknown version") +
      ", flash=" + options.flash + ", kv=" + options.kv +
      (options.causal ? "" : ", causal=0");
  model.vocab_size = vocab_size();
  model.context_length =
      static_cast<std::int64_t>(llama_->call.n_ctx_seq(context_));
  const std::int64_t trained = llama_->call.model_n_ctx_train(model_);
  model.context_length = std::min(
      model.context_length,
      trained > 0 ? std::min(options.context, trained) : options.context);
  model.max_sequences = sequences_;
  model.roundoff = roundoff_of(llama_->call.model_ftype(model_), options);
  return model;
}

}  // namespace

bool has_llama_models() { return true; }

Result<Model> open_llama_model(
    const std::string& file,
    const std::map<std::string, std::string>& options) {
  const Result<llama::Options> read = llama::read_options(options);
  if (!read.ok()) return read.status();
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return Status(StatusCode::kIo, fs::exists(file, error)
                                       ? file + " is not a regular file"
                                       : file + ": no such file");
  const Result<std::shared_ptr<const Llama>> llama = load(read.value().path);
  if (!llama.ok()) return llama.status();
  const auto session = std::make_shared<Session>(llama.value());
  Status status = session->open(file, read.value());
  if (!status.ok()) return status;
  Model model = session->describe(file, read.value());
  model.clear = [session](std::int64_t s) { return session->clear(s); };
  model.decode = [session](std::span<const ModelStep> steps) {
    return session->decode(steps);
  };
  return model;
}

}  // namespace attnguard
