#include "guard/runtime/attnguard_guard.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "guard/base/text.h"
#include "guard/runtime/guard.h"

using attnguard::AttentionCall;
using attnguard::Dtype;
using attnguard::Guard;
using attnguard::LayerHandle;
using attnguard::Problem;
using attnguard::RuntimePatch;
using attnguard::RuntimePolicy;
using attnguard::Status;
using attnguard::TensorView;
using attnguard::TokenMap;

namespace {

thread_local std::string last_error;

class CallbackSink final : public attnguard::ViolationSink {
 public:
  void on_violation(const attnguard::Violation& violation) noexcept override {
    if (callback == nullptr) return;
    try {
      const std::string check(attnguard::live_check_id(violation.check));
      callback(user, check.c_str(), describe(violation).c_str());
    } catch (...) {
      callback(user, "guard", "no memory to describe a violation");
    }
  }

  attnguard_guard_on_violation callback = nullptr;
  void* user = nullptr;
};

Status set_option(std::string_view name, std::string_view text,
                  RuntimePolicy& policy, RuntimePatch& patch) {
  constexpr std::string_view kNames[] = {"sample", "max_overhead", "window",
                                         "rows",   "seed",         "off"};
  const auto bad = [&](const char* expected) {
    return attnguard::invalid_argument(std::string(name) + ": expected " +
                                       expected + ", got '" +
                                       std::string(text) + "'");
  };
  const std::optional<std::int64_t> integer = attnguard::parse_int(text);
  const std::optional<double> number = attnguard::parse_double(text);
  if (name == "sample") {
    if (!integer) return bad("a number of calls");
    patch.sample_every = *integer;
  } else if (name == "rows") {
    if (!integer) return bad("a number of rows");
    patch.rows = *integer;
  } else if (name == "seed") {
    if (!integer || *integer < 0) return bad("a number, 0 or more");
    policy.seed = static_cast<std::uint64_t>(*integer);
  } else if (name == "window") {
    if (!number) return bad("seconds");
    policy.window = *number;
  } else if (name == "max_overhead") {
    if (text == "none") {
      policy.max_overhead.reset();
    } else {
      if (!number) return bad("a share such as 0.005, or none");
      policy.max_overhead = *number;
    }
  } else if (name == "off") {
    const auto check = attnguard::find_live_check(text);
    if (!check)
      return attnguard::invalid_argument(
          "off: unknown check '" + std::string(text) + "'" +
          attnguard::suggestion(text, attnguard::live_check_ids()));
    patch.severities[*check] = attnguard::Severity::kOff;
  } else {
    return attnguard::invalid_argument("unknown option '" + std::string(name) +
                                       "'" +
                                       attnguard::suggestion(name, kNames));
  }
  return attnguard::ok_status();
}

Status parse_options(const char* options, RuntimePolicy& policy) {
  RuntimePatch& patch = policy.patches.emplace_back();
  if (options == nullptr) return attnguard::ok_status();
  for (std::string_view word : attnguard::split(options, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      return attnguard::invalid_argument("expected NAME=VALUE, got '" +
                                         std::string(word) + "'");
    if (Status status = set_option(word.substr(0, equals),
                                   word.substr(equals + 1), policy, patch);
        !status.ok())
      return status;
  }
  return attnguard::ok_status();
}

Status view_of(const attnguard_guard_tensor& tensor, const char* name,
               TensorView& view) {
  if (tensor.data == nullptr)
    return attnguard::invalid_argument(std::string(name) + ": data is NULL");
  if (tensor.dtype > ATTNGUARD_GUARD_BF16)
    return attnguard::invalid_argument(std::string(name) + ": unknown dtype " +
                                       std::to_string(tensor.dtype));
  view.data = static_cast<std::byte*>(tensor.data);
  view.dtype = static_cast<Dtype>(tensor.dtype);
  std::copy_n(tensor.shape, 4, view.shape.begin());
  std::copy_n(tensor.strides, 4, view.strides.begin());
  return attnguard::ok_status();
}

// What a C call is made of, in C++; problems of one line are parsed once.
struct Converted {
  std::string line;
  Problem problem;
  TokenMap blocks;
  AttentionCall call;
};

Status convert(const attnguard_guard_call& from, Converted& to) {
  if (from.problem == nullptr)
    return attnguard::invalid_argument("problem is NULL");
  if (to.line != from.problem) {
    attnguard::Result<Problem> parsed = Problem::parse(from.problem);
    if (!parsed.ok()) return parsed.status();
    to.problem = std::move(parsed.value());
    to.line = from.problem;
  }
  TensorView query, key, value;
  to.call = {};
  for (const auto& [tensor, name, view] :
       {std::tuple{&from.query, "query", &query},
        {&from.key, "key", &key},
        {&from.value, "value", &value},
        {&from.output, "output", &to.call.output}})
    if (Status status = view_of(*tensor, name, *view); !status.ok())
      return status;
  if (to.problem.packed)
    return attnguard::unsupported("packed calls: use the C++ interface");
  if (to.problem.block_size > 0) {
    if (from.block_table == nullptr || from.block_table_width < 1)
      return attnguard::invalid_argument(
          "the problem has a block_size and the call no block_table");
    to.blocks.block_size = to.problem.block_size;
    to.blocks.width = from.block_table_width;
    to.blocks.table.assign(
        from.block_table,
        from.block_table + to.problem.batch * from.block_table_width);
    key.tokens = value.tokens = &to.blocks;
  }
  to.call.problem = &to.problem;
  to.call.query = query;
  to.call.key = key;
  to.call.value = value;
  to.call.block_table = from.block_table;
  to.call.block_table_width = from.block_table_width;
  return attnguard::ok_status();
}

}  // namespace

struct attnguard_guard {
  std::shared_ptr<CallbackSink> sink = std::make_shared<CallbackSink>();
  std::unique_ptr<Guard> guard;
};

attnguard_guard* attnguard_guard_create(const char* options, char* message,
                                        size_t message_size) {
  std::string error;
  try {
    RuntimePolicy policy;
    Status status = parse_options(options, policy);
    if (status.ok()) {
      auto made = std::make_unique<attnguard_guard>();
      attnguard::Result<std::unique_ptr<Guard>> guard =
          Guard::create(std::move(policy), {.sink = made->sink});
      if (guard.ok()) {
        made->guard = std::move(guard.value());
        return made.release();
      }
      status = guard.status();
    }
    error = status.message();
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  if (message != nullptr && message_size > 0) {
    const std::size_t size = std::min(error.size(), message_size - 1);
    std::memcpy(message, error.data(), size);
    message[size] = 0;
  }
  return nullptr;
}

void attnguard_guard_destroy(attnguard_guard* guard) { delete guard; }

void attnguard_guard_set_callback(attnguard_guard* guard,
                                  attnguard_guard_on_violation callback,
                                  void* user) {
  guard->sink->user = user;
  guard->sink->callback = callback;
}

uint32_t attnguard_guard_layer(attnguard_guard* guard, const char* name) {
  try {
    return guard->guard->layer(name == nullptr ? "" : name).index;
  } catch (...) {
    return UINT32_MAX;  // No memory: a layer that is never sampled.
  }
}

int attnguard_guard_sampled(attnguard_guard* guard, uint32_t layer) {
  return guard->guard->sampled(LayerHandle{layer}) ? 1 : 0;
}

int attnguard_guard_observe(attnguard_guard* guard, uint32_t layer,
                            const attnguard_guard_call* call) {
  try {
    thread_local Converted converted;
    last_error.clear();
    if (call == nullptr || call->size < sizeof(attnguard_guard_call)) {
      last_error = "size is not sizeof(attnguard_guard_call)";
      return -1;
    }
    if (Status status = convert(*call, converted); !status.ok()) {
      last_error = status.message();
      return -1;
    }
    attnguard::ObserveContext context;
    context.sequences = call->sequences;
    return guard->guard->observe(LayerHandle{layer}, converted.call, context)
        .violations;
  } catch (...) {
    return -1;
  }
}

int attnguard_guard_report(attnguard_guard* guard, uint32_t layer,
                           const char* check, const char* message) {
  try {
    last_error.clear();
    if (check == nullptr || message == nullptr) {
      last_error = check == nullptr ? "check is NULL" : "message is NULL";
      return -1;
    }
    attnguard::Finding finding;
    finding.kind = attnguard::FindingKind::kValue;
    finding.message = message;
    attnguard::EngineReport report;
    report.check = check;
    report.findings = {&finding, 1};
    const LayerHandle handle{layer};
    const int counted = guard->guard->report(handle, report).violations;
    if (counted > 0 || !guard->guard->layer_settings(handle).is_on(
                           attnguard::LiveCheck::kEngine))
      return counted;
    last_error = "there is no layer " + std::to_string(layer);
    return -1;
  } catch (...) {
    return -1;
  }
}

const char* attnguard_guard_last_error(void) { return last_error.c_str(); }

void attnguard_guard_append(attnguard_guard* guard, uint64_t sequence,
                            int64_t first, int64_t count) {
  guard->guard->append(sequence, first, count);
}

void attnguard_guard_truncate(attnguard_guard* guard, uint64_t sequence,
                              int64_t length) {
  guard->guard->truncate(sequence, length);
}

void attnguard_guard_fork(attnguard_guard* guard, uint64_t parent,
                          uint64_t child) {
  guard->guard->fork(parent, child);
}

void attnguard_guard_evict(attnguard_guard* guard, uint64_t sequence) {
  guard->guard->evict(sequence);
}

attnguard_guard_counts attnguard_guard_counters(const attnguard_guard* guard) {
  attnguard_guard_counts counts{};
  try {
    const attnguard::GuardCounters from = guard->guard->counters();
    counts.calls = from.calls;
    counts.sampled = from.sampled;
    counts.checked = from.checked;
    for (const attnguard::CheckCounters& check : from.checks)
      counts.violations += check.violations;
    counts.overhead_nanoseconds = from.overhead_nanoseconds;
    counts.elapsed_nanoseconds = from.elapsed_nanoseconds;
  } catch (...) {
    // No memory for the snapshot: zeros.
  }
  return counts;
}
