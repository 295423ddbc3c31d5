#include "guard/model/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>

namespace attnguard {
namespace {

// A NaN that no computation gives.
constexpr std::uint32_t kPoison = 0x7fdead5a;

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point begin_ = Clock::now();
};

Status failed(std::string_view what, const std::string& message) {
  return {StatusCode::kEngineFailure, std::string(what) + ": " + message};
}

template <typename Call>
Status guarded(std::string_view what, double& seconds, Call&& call) {
  const Stopwatch stopwatch(seconds);
  try {
    Status status = call();
    return status.ok() ? status : failed(what, status.message());
  } catch (const std::exception& error) {
    return failed(what, std::string("it threw ") + error.what());
  } catch (...) {
    return failed(what, "it threw something that is no std::exception");
  }
}

Status all_written(const ModelStep& step, std::int32_t vocab_size) {
  for (std::size_t i = 0; i < step.logits.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(step.logits[i]) != kPoison) continue;
    const auto vocab = static_cast<std::size_t>(vocab_size);
    return {StatusCode::kEngineFailure,
            fmt::format("the model did not write the logits of position {} "
                        "(vocabulary entry {}) in a step of {} tokens",
                        step.position + static_cast<std::int64_t>(i / vocab),
                        i % vocab, step.tokens.size())};
  }
  return ok_status();
}

}  // namespace

ModelRunner::ModelRunner(const Model& model)
    : model_(model),
      lengths_(static_cast<std::size_t>(
          std::max<std::int64_t>(model.max_sequences, 1))) {}

Status ModelRunner::clear(std::int64_t sequence) {
  lengths_[static_cast<std::size_t>(sequence)] = 0;
  if (!model_.clear) return ok_status();
  return guarded("clear", seconds_, [&] { return model_.clear(sequence); });
}

Status ModelRunner::clear_all() {
  for (std::size_t s = 0; s < lengths_.size(); ++s) {
    Status status = clear(static_cast<std::int64_t>(s));
    if (!status.ok()) return status;
  }
  return ok_status();
}

Status ModelRunner::call(std::span<const ModelStep> steps) {
  ++calls_;
  Status status =
      guarded("decode", seconds_, [&] { return model_.decode(steps); });
  for (const ModelStep& step : steps)
    if (status.ok()) status = all_written(step, model_.vocab_size);
  return status;
}

Result<std::vector<Logits>> ModelRunner::decode(
    std::span<const Append> appends) {
  std::vector<Logits> logits;
  for (const Append& append : appends)
    logits.push_back(
        {model_.vocab_size,
         std::vector<float>(
             append.tokens.size() * static_cast<std::size_t>(model_.vocab_size),
             std::bit_cast<float>(kPoison))});
  std::vector<ModelStep> steps;
  for (std::size_t i = 0; i < appends.size(); ++i) {
    std::int64_t& length =
        lengths_[static_cast<std::size_t>(appends[i].sequence)];
    if (!model_.incremental) length = 0;
    steps.push_back({.sequence = appends[i].sequence,
                     .position = length,
                     .tokens = appends[i].tokens,
                     .logits = logits[i].values});
    length += static_cast<std::int64_t>(appends[i].tokens.size());
  }
  Status status = call(steps);
  if (!status.ok()) return status;
  return logits;
}

Result<Logits> ModelRunner::one_pass(std::span<const std::int32_t> tokens) {
  const std::int64_t all[] = {static_cast<std::int64_t>(tokens.size())};
  return in_pieces(tokens, all);
}

Result<Logits> ModelRunner::in_pieces(std::span<const std::int32_t> tokens,
                                      std::span<const std::int64_t> sizes) {
  Status status = clear_all();
  if (!status.ok()) return status;
  Logits out{model_.vocab_size, {}};
  std::size_t piece = 0;
  for (std::size_t begin = 0; begin < tokens.size();) {
    const auto size =
        static_cast<std::size_t>(sizes[std::min(piece++, sizes.size() - 1)]);
    const Append append{
        0, tokens.subspan(begin, std::min(size, tokens.size() - begin))};
    Result<std::vector<Logits>> logits = decode({&append, 1});
    if (!logits.ok()) return logits.status();
    const std::vector<float>& values = logits.value().front().values;
    out.values.insert(out.values.end(), values.begin(), values.end());
    begin += append.tokens.size();
  }
  return out;
}

Result<Logits> ModelRunner::by_prefixes(std::span<const std::int32_t> tokens) {
  Logits out{model_.vocab_size, {}};
  for (std::size_t size = 1; size <= tokens.size(); ++size) {
    Result<Logits> prefix = one_pass(tokens.first(size));
    if (!prefix.ok()) return prefix;
    const std::span<const float> last =
        prefix.value().row(prefix.value().rows() - 1);
    out.values.insert(out.values.end(), last.begin(), last.end());
  }
  return out;
}

}  // namespace attnguard
