#include "adapters/llama_cpp/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "adapters/llama_cpp/mask.h"
#include "adapters/llama_cpp/transfer.h"

namespace attnguard::ggml {
namespace {

std::string block_reason(const Storage& storage, std::string_view role,
                         std::string_view field, std::int64_t channels) {
  if (channels % storage.block == 0) return {};
  return std::string(role) + "=" + std::string(storage.name) + " needs " +
         std::string(field) + " to be a multiple of " +
         std::to_string(storage.block) + ", not " + std::to_string(channels);
}

// ggml has no tensors of size 0, and without keys every row is empty.
void write_all(const AttentionCall& call, double value) {
  const Problem& problem = *call.problem;
  const std::vector<double> row(static_cast<std::size_t>(problem.head_dim_v),
                                value);
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t q = 0; q < problem.len_q(b); ++q)
        call.output.store_row(b, h, q, 0, problem.head_dim_v, row.data());
}

// A dense fp32 view of the first `rows` rows.
ConstTensorView matrix(const std::vector<float>& data, std::int64_t rows,
                       std::int64_t channels) {
  const Shape4 shape = {1, 1, rows, channels};
  return {reinterpret_cast<const std::byte*>(data.data()), Dtype::kFp32, shape,
          contiguous_strides(shape)};
}

}  // namespace

Session::Session(std::shared_ptr<const Library> library,
                 const Settings& settings)
    : library_(std::move(library)), settings_(settings) {}

Session::~Session() {
  graph_.reset();
  if (backend_) library_->call.backend_free(backend_);
}

Result<std::shared_ptr<Session>> Session::create(
    std::shared_ptr<const Library> library, const Settings& settings) {
  std::shared_ptr<Session> self(new Session(std::move(library), settings));
  const Library& opened = *self->library_;
  self->backend_ = opened.call.backend_dev_init(opened.cpu, nullptr);
  if (!self->backend_)
    return Status{
        StatusCode::kEngineFailure,
        "ggml: the CPU backend in " + opened.folder + " did not start"};
  opened.set_threads(self->backend_, settings.threads);
  return self;
}

Status Session::prepare(const Problem& problem) {
  if (graph_ && graph_->problem() == problem) return ok_status();
  // ggml ends the process over a graph that it cannot compute.
  if (const std::string reason = unsupported(problem); !reason.empty())
    return attnguard::unsupported(reason);
  graph_.reset();  // Frees its memory before the next one asks for more.
  Result<std::unique_ptr<AttentionGraph>> built =
      AttentionGraph::build(*library_, backend_, settings_, problem);
  if (!built.ok()) return built.status();
  graph_ = std::move(built.value());
  return ok_status();
}

std::vector<Feature> Session::features() const {
  std::vector<Feature> result = {Feature::kSoftcap,    Feature::kAlibi,
                                 Feature::kMaskTensor, Feature::kValueInKey,
                                 Feature::kPacked,     Feature::kPaged};
  const bool flash = settings_.kernel == Kernel::kFlash;
  if (flash ? library_->call.flash_attn_ext_add_sinks != nullptr
            : library_->call.soft_max_add_sinks != nullptr)
    result.push_back(Feature::kSinks);
  if (!flash) result.push_back(Feature::kWeights);
  return result;
}

void Session::load(const AttentionCall& call) {
  const Dtype dtype = call.problem->dtype;
  const int threads = settings_.threads;
  if (call.mask.data != nullptr) graph_->set_mask(call);
  gather(*library_, call.query, graph_->queries(), storage_of(Dtype::kFp32),
         threads, graph_->query());
  gather(*library_, call.key, graph_->keys(), settings_.key_storage(dtype),
         threads, graph_->key());
  if (graph_->value() == nullptr) return;
  const bool exchange = graph_->stores_value_transposed();
  gather(*library_, exchange ? transposed(call.value) : call.value,
         exchange ? channel_rows(*call.problem) : graph_->keys(),
         settings_.value_storage(dtype), threads, graph_->value());
}

Status Session::run(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  if (problem.max_len_q() == 0) return ok_status();
  if (problem.max_len_kv() == 0) {
    write_all(call, problem.empty_row == EmptyRow::kNan
                        ? std::numeric_limits<double>::quiet_NaN()
                        : 0);
    return ok_status();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Status status = prepare(problem); !status.ok()) return status;
  load(call);
  if (Status status = graph_->compute(backend_); !status.ok()) return status;
  const int threads = settings_.threads;
  scatter(problem, graph_->result(), graph_->result_strides(),
          graph_->queries(), threads, call.output);
  if (call.weights.data != nullptr && graph_->weights() != nullptr)
    scatter_weights(problem, graph_->weights(), graph_->queries(),
                    graph_->keys(), threads, call.weights);
  return ok_status();
}

Numerics Session::numerics(const Problem& problem) {
  const Storage& key = settings_.key_storage(problem.dtype);
  const Storage& value = settings_.value_storage(problem.dtype);
  Numerics result;  // Scores, weights and sums in fp32.
  // Before the product ggml rounds the queries to the key's type as well
  // (except in its tiled kernel), and both errors scale the same products.
  result.key_error = 2 * storage_error(key, problem.dtype);
  result.value_error = storage_error(value, problem.dtype);
  // An fp16 cache, and queries rounded to it, end at fp16's largest number.
  for (const Storage* storage : {&key, &value})
    if (storage->dtype == Dtype::kFp16)
      result.max_input = dtype_info(Dtype::kFp16).max_finite;
  if (settings_.kernel == Kernel::kSoftmax) {
    // The second ggml_mul_mat rounds the weights to the value's type.
    result.probability = value.dtype.value_or(Dtype::kFp32);
  } else if (value.dtype == Dtype::kFp16 && sums_in_fp16(problem)) {
    result.accumulator = Dtype::kFp16;
  }
  return result;
}

bool Session::sums_in_fp16(const Problem& problem) {
  const Storage& key = settings_.key_storage(problem.dtype);
  Problem two_keys;
  two_keys.seq_len_q = {
      std::clamp<std::int64_t>(query_rows(problem).rows, 1, 1024)};
  two_keys.seq_len_kv = {2};
  two_keys.head_dim_qk = key.block;
  two_keys.head_dim_v = problem.head_dim_v;
  two_keys.dtype = problem.dtype;

  const std::lock_guard<std::mutex> lock(mutex_);
  const std::tuple shape(key.type, two_keys.max_len_q(), two_keys.head_dim_v);
  if (const auto known = fp16_sums_.find(shape); known != fp16_sums_.end())
    return known->second;
  // What cannot be measured gets the wider bound.
  return fp16_sums_[shape] = measure_fp16_sums(two_keys).value_or(true);
}

// Two keys of equal score with values 1 and 2^-12: half their sum is exact in
// fp32, and 0.5 where the sum was held in fp16.
std::optional<bool> Session::measure_fp16_sums(const Problem& two_keys) {
  Result<std::unique_ptr<AttentionGraph>> built =
      AttentionGraph::build(*library_, backend_, settings_, two_keys);
  if (!built.ok()) return std::nullopt;
  AttentionGraph& graph = *built.value();

  const std::int64_t queries = two_keys.max_len_q();
  const std::vector<float> zeros(
      std::max<std::int64_t>(queries, 2) * two_keys.head_dim_qk, 0.0f);
  std::vector<float> values(2 * two_keys.head_dim_v, 1.0f);
  std::fill(values.begin() + two_keys.head_dim_v, values.end(), 0x1p-12f);
  gather(*library_, matrix(zeros, queries, two_keys.head_dim_qk),
         graph.queries(), storage_of(Dtype::kFp32), 1, graph.query());
  gather(*library_, matrix(zeros, 2, two_keys.head_dim_qk), graph.keys(),
         settings_.key_storage(two_keys.dtype), 1, graph.key());
  gather(*library_, matrix(values, 2, two_keys.head_dim_v), graph.keys(),
         settings_.value_storage(two_keys.dtype), 1, graph.value());
  if (!graph.compute(backend_).ok()) return std::nullopt;
  return graph.result()[0] != (1 + 0x1p-12f) / 2;
}

// Under sinks, and in the flash kernel, a row with no allowed key is 0.
std::string Session::empty_row_reason(const Problem& problem) const {
  const bool zero =
      settings_.kernel == Kernel::kFlash || !problem.sinks.empty();
  if (problem.empty_row == EmptyRow::kAny ||
      problem.empty_row == (zero ? EmptyRow::kZero : EmptyRow::kNan))
    return {};
  if (zero)
    return "ggml gives 0 for a row with no allowed key, not " +
           std::string(empty_row_name(problem.empty_row));
  return "ggml_soft_max_ext has no result (NaN) for a row with no allowed "
         "key; ggml:flash gives 0";
}

std::string Session::unsupported(const Problem& problem) const {
  const Storage& key = settings_.key_storage(problem.dtype);
  const Storage& value = settings_.value_storage(problem.dtype);
  const bool flash = settings_.kernel == Kernel::kFlash;
  if (std::string reason =
          block_reason(key, "k", "head_dim_qk", problem.head_dim_qk);
      !reason.empty())
    return reason;
  if (std::string reason =
          block_reason(value, "v", "head_dim_v", problem.head_dim_v);
      !reason.empty() && flash)
    return reason;
  if (problem.value_in_key && key.type != value.type)
    return "value_in_key needs k= and v= to be the same: the value is a view "
           "of the key";
  if (!flash && value.block > 1)
    return "v=" + std::string(value.name) +
           " needs ggml:flash: ggml:softmax stores V transposed, which "
           "block-quantised types cannot be";
  const MaskExtremes extremes = mask_extremes(problem);
  if (flash && problem.alibi_max_bias && extremes.distance > kMostFp16Distance)
    return "ggml_flash_attn_ext takes ALiBi's distances in fp16, exact up to " +
           std::to_string(kMostFp16Distance) + "; here they reach " +
           std::to_string(extremes.distance) + ": use ggml:softmax";
  return extremes.has_empty_row ? empty_row_reason(problem) : std::string();
}

}  // namespace attnguard::ggml
