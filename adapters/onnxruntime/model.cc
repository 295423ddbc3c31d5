#include "adapters/onnxruntime/model.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "adapters/onnxruntime/model_precision.h"
#include "adapters/onnxruntime/model_session.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

using onnxruntime::Library;
using onnxruntime::ModelSession;
using onnxruntime::OrtSession;
using onnxruntime::OrtSessionOptions;
using onnxruntime::Ports;
using onnxruntime::Roles;
using Options = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 15> kModelOptions = {
    "input",    "logits",       "attention_mask", "position_ids", "past",
    "present",  "kv_heads",     "head_dim",       "sequences",    "context",
    "roundoff", "optimization", "threads",        "path",         "version"};

struct Named {
  std::string_view name;
  double value;
};
constexpr std::array<Named, 4> kRoundoffs = {
    {{"fp32", 0x1p-24}, {"fp16", 0x1p-11}, {"bf16", 0x1p-8}, {"int8", 0x1p-8}}};
// GraphOptimizationLevel
constexpr std::array<Named, 4> kLevels = {
    {{"all", 99}, {"none", 0}, {"basic", 1}, {"extended", 2}}};

std::string option(const Options& options, const std::string& name) {
  const auto given = options.find(name);
  return given == options.end() ? std::string() : given->second;
}

Status check_names(const Options& options) {
  for (const auto& [name, value] : options)
    if (std::find(kModelOptions.begin(), kModelOptions.end(), name) ==
        kModelOptions.end())
      return invalid_argument("unknown option '" + name + "'" +
                              suggestion(name, kModelOptions));
  return ok_status();
}

// `otherwise` where the option is not given.
Result<std::int64_t> number(const Options& options, const std::string& name,
                            std::int64_t lowest, std::int64_t highest,
                            std::int64_t otherwise) {
  const std::string text = option(options, name);
  if (text.empty()) return otherwise;
  const std::optional<std::int64_t> value = parse_int(text);
  if (value && *value >= lowest && *value <= highest) return *value;
  return invalid_argument(name + "= expects " + std::to_string(lowest) +
                          " to " + std::to_string(highest) + ", not '" + text +
                          "'");
}

Result<double> choice(const Options& options, const std::string& name,
                      const std::array<Named, 4>& known, double otherwise) {
  const std::string text = option(options, name);
  if (text.empty()) return otherwise;
  std::vector<std::string_view> names;
  for (const Named& one : known) {
    if (one.name == text) return one.value;
    names.push_back(one.name);
  }
  return invalid_argument(name + "=" + text + " is not known" +
                          suggestion(text, names));
}

Status check_file(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    return {StatusCode::kIo, "there is no such file"};
  if (!std::filesystem::is_regular_file(file, error) ||
      !std::ifstream(file, std::ios::binary).good())
    return {StatusCode::kIo, "the file cannot be read"};
  return ok_status();
}

struct Settings {
  int threads = 1;
  int level = 99;
};

Result<OrtSession*> create_session(const Library& library,
                                   const std::string& file,
                                   const Settings& settings) {
  OrtSessionOptions* options = nullptr;
  Status status = library.status(library.call.CreateSessionOptions(&options),
                                 "CreateSessionOptions");
  if (!status.ok()) return status;
  OrtSession* session = nullptr;
  status = library.status(
      library.call.SetIntraOpNumThreads(options, settings.threads),
      "SetIntraOpNumThreads");
  if (status.ok())
    status = library.status(
        library.call.SetSessionGraphOptimizationLevel(options, settings.level),
        "SetSessionGraphOptimizationLevel");
  if (status.ok()) {
    status = library.status(library.call.CreateSession(
                                library.env, file.c_str(), options, &session),
                            "CreateSession");
    if (!status.ok()) status = invalid_argument(status.message());
  }
  library.call.ReleaseSessionOptions(options);
  if (!status.ok()) return status;
  return session;
}

Status check_lengths(const Roles& roles, const ModelSession& session) {
  if (session.fixed_length() > 1 && !roles.cache.empty())
    return unsupported("the model has a cache and takes " +
                       std::to_string(session.fixed_length()) +
                       " tokens at a time, which is neither 1 nor open");
  return ok_status();
}

bool takes_single_tokens(const ModelSession& session) {
  return session.fixed_length() == 1 && !session.roles().cache.empty();
}

std::string description(const Library& library, const Roles& roles,
                        const Settings& settings) {
  std::string text = "ONNX Runtime " + library.version + ", " +
                     std::to_string(settings.threads) + " threads; " +
                     onnxruntime::describe(roles.tokens) + " to " +
                     onnxruntime::describe(roles.logits);
  if (roles.cache.empty()) return text + ", no cache";
  return text + ", " + std::to_string(roles.cache.size()) +
         " cache tensors such as " +
         onnxruntime::describe(roles.cache.front().past);
}

Model make_model(const std::shared_ptr<ModelSession>& session) {
  Model model;
  model.incremental = !session->roles().cache.empty();
  if (takes_single_tokens(*session)) model.most_tokens_per_call = 1;
  if (model.incremental)
    model.clear = [session](std::int64_t sequence) {
      return session->clear(sequence);
    };
  model.decode = [session](std::span<const ModelStep> steps) {
    return session->decode(steps);
  };
  return model;
}

// With messages that do not name the file.
Result<Model> open(const std::string& file, const Options& options) {
  if (Status status = check_names(options); !status.ok()) return status;
  const Result<std::int64_t> threads =
      number(options, "threads", 1, 512, omp_get_max_threads());
  if (!threads.ok()) return threads.status();
  const Result<std::int64_t> sequences =
      number(options, "sequences", 1, 4096, 0);
  if (!sequences.ok()) return sequences.status();
  const Result<std::int64_t> context = number(
      options, "context", 1, std::numeric_limits<std::int32_t>::max(), 0);
  if (!context.ok()) return context.status();
  const Result<double> level = choice(options, "optimization", kLevels, 99);
  if (!level.ok()) return level.status();
  const Result<double> roundoff = choice(options, "roundoff", kRoundoffs, 0);
  if (!roundoff.ok()) return roundoff.status();
  if (Status status = check_file(file); !status.ok()) return status;

  const Result<std::shared_ptr<const Library>> library =
      onnxruntime::load_library(option(options, "path"),
                                option(options, "version"));
  if (!library.ok()) return library.status();
  const Settings settings{static_cast<int>(threads.value()),
                          static_cast<int>(level.value())};
  const Result<OrtSession*> created =
      create_session(*library.value(), file, settings);
  if (!created.ok()) return created.status();
  // Released on every way out, from here on by this pointer.
  std::unique_ptr<OrtSession, void (*)(OrtSession*)> owned(
      created.value(), library.value()->call.ReleaseSession);
  const Result<Ports> ports =
      onnxruntime::read_ports(*library.value(), owned.get());
  if (!ports.ok()) return ports.status();
  const Result<Roles> roles = onnxruntime::find_roles(ports.value(), options);
  if (!roles.ok()) return roles.status();

  const std::int64_t rows =
      roles.value().tokens.dims.size() < 2 ? 1 : roles.value().tokens.dims[0];
  constexpr std::int64_t kSequences = 4;
  const std::int64_t most = sequences.value() > 0 ? sequences.value()
                            : rows > 0            ? rows
                                                  : kSequences;
  const auto session = std::make_shared<ModelSession>(
      library.value(), owned.release(), roles.value(), most);
  if (Status status = check_lengths(roles.value(), *session); !status.ok())
    return status;
  const Result<std::int32_t> vocabulary = session->measure_vocabulary();
  if (!vocabulary.ok()) return vocabulary.status();

  Model model = make_model(session);
  model.name = std::filesystem::path(file).filename().string();
  model.description = description(*library.value(), roles.value(), settings);
  if (model.most_tokens_per_call == 1)
    model.description += ", one token at a time";
  model.vocab_size = vocabulary.value();
  model.max_sequences = most;
  model.context_length = context.value();
  if (!model.incremental && session->fixed_length() > 0)
    model.context_length = session->fixed_length();
  model.roundoff = roundoff.value() > 0 ? roundoff.value()
                                        : onnxruntime::model_roundoff(file);
  return model;
}

}  // namespace

Result<Model> open_onnx_model(const std::string& file, const Options& options) {
  Result<Model> model = open(file, options);
  if (model.ok()) return model;
  return Status{model.status().code(), file + ": " + model.status().message()};
}

}  // namespace attnguard
