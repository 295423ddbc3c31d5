#include "ci/isolate/messages.h"

#include <algorithm>

#include "ci/isolate/wire.h"

namespace attnguard {

// Not in the unnamed namespace: the archives find them by their argument.
template <typename Archive>
void fields(Archive& archive, Hello& m) {
  archive(m.code, m.message, m.name, m.description, m.dtypes, m.features,
          m.deterministic, m.has_numerics, m.has_unsupported, m.has_append);
}

template <typename Archive>
void fields(Archive& archive, SharedBlock& m) {
  archive(m.begin, m.end, m.tensor, m.size, m.margin);
}

template <typename Archive>
void fields(Archive& archive, SharedView& m) {
  archive(m.offset, m.dtype, m.shape, m.strides, m.has_tokens);
}

template <typename Archive>
void fields(Archive& archive, Request& m) {
  archive(m.ask, m.threads, m.problem, m.problem_text, m.ranges, m.query, m.key,
          m.value, m.output, m.new_key, m.new_value, m.softmax_lse, m.weights,
          m.num_new, m.mask_form, m.mask, m.cu_seqlens_q, m.cu_seqlens_kv,
          m.block_table, m.block_table_width);
}

template <typename Archive>
void fields(Archive& archive, Numerics& m) {
  archive(m.score, m.probability, m.accumulator, m.max_input, m.key_error,
          m.value_error);
}

template <typename Archive>
void fields(Archive& archive, Reply& m) {
  archive(m.outcome, m.code, m.text, m.numerics);
}

namespace {

template <typename Message>
std::string encoded(const Message& message) {
  Encoder encoder;
  encoder(message);
  return encoder.bytes();
}

template <typename Message>
bool decoded(const std::string& bytes, Message& message) {
  message = {};
  Decoder decoder(bytes);
  decoder(message);
  return decoder.finished();
}

bool is_valid(Dtype dtype) {
  return static_cast<std::size_t>(dtype) < all_dtypes().size();
}

bool is_valid(StatusCode code) {
  return code >= StatusCode::kOk && code <= StatusCode::kOutOfMemory;
}

bool is_valid(Feature feature) {
  return feature >= Feature::kSoftcap && feature <= Feature::kWeights;
}

constexpr auto kIsValid = [](auto value) { return is_valid(value); };

}  // namespace

std::string encode(const Hello& hello) { return encoded(hello); }
std::string encode(const Request& request) { return encoded(request); }
std::string encode(const Reply& reply) { return encoded(reply); }

bool decode(const std::string& bytes, Hello& hello) {
  return decoded(bytes, hello) && is_valid(hello.code) &&
         std::all_of(hello.dtypes.begin(), hello.dtypes.end(), kIsValid) &&
         std::all_of(hello.features.begin(), hello.features.end(), kIsValid);
}

bool decode(const std::string& bytes, Request& request) {
  return decoded(bytes, request);
}

bool decode(const std::string& bytes, Reply& reply) {
  const Numerics& numerics = reply.numerics;
  return decoded(bytes, reply) && is_valid(reply.code) &&
         reply.outcome >= Reply::Outcome::kStatus &&
         reply.outcome <= Reply::Outcome::kOtherException &&
         is_valid(numerics.score) && is_valid(numerics.probability) &&
         is_valid(numerics.accumulator);
}

}  // namespace attnguard
