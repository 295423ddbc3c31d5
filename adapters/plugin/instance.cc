#include "adapters/plugin/instance.h"

#include <algorithm>

#include "adapters/plugin/calls.h"

namespace attnguard::plugin {
namespace {

// The guard changes between a problem and one derived from it.
constexpr std::size_t kMostKnown = 4;

// A plugin that is asked for no more than it listed has nothing to refuse.
Status as_lie(const char* function, const Status& said,
              const Problem& problem) {
  return {StatusCode::kEngineFailure,
          said.message() + " for a problem of dtype " +
              std::string(dtype_name(problem.dtype)) +
              " that it claims to run; describe() must list only what " +
              function + "() can do, or supports() refuse what it cannot"};
}

}  // namespace

template <typename Call>
Status Instance::call(std::string_view function, Call call) {
  const std::lock_guard<std::mutex> lock(calling_);
  return call_plugin(function, call);
}

Result<std::shared_ptr<Instance>> Instance::create(
    std::shared_ptr<const Library> library, const EngineSpec& spec) {
  std::shared_ptr<Instance> instance(new Instance(std::move(library)));
  const Status status = instance->start(spec);
  if (!status.ok())
    return Status(status.code(), "plugin '" + instance->library_->path +
                                     "': " + status.message());
  return instance;
}

Status Instance::start(const EngineSpec& spec) {
  std::vector<const char*> names, values;
  for (const auto& [name, value] : spec.options) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  attnguard_options options = {};
  options.size = sizeof options;
  options.path = library_->path.c_str();
  options.names = names.data();
  options.values = values.data();
  options.count = static_cast<std::int64_t>(names.size());
  const attnguard_plugin& table = library_->call;
  // What it made is the guard's to destroy, also when its message was wrong.
  Status status = call("create", [&](char* message, std::size_t size) {
    const int returned = table.create(&options, &instance_, message, size);
    created_ = returned == ATTNGUARD_OK;
    return returned;
  });
  if (!status.ok()) return status;
  Result<Description> description =
      read_description([&](attnguard_description* to) {
        return call("describe", [&](char* message, std::size_t size) {
          return table.describe(instance_, to, message, size);
        });
      });
  if (!description.ok())
    return {StatusCode::kEngineFailure, description.status().message()};
  description_ = std::move(description.value());
  return ok_status();
}

Instance::~Instance() {
  if (!created_) return;
  const Status ignored = call("destroy", [&](char*, std::size_t) {
    library_->call.destroy(instance_);
    return int{ATTNGUARD_OK};
  });
}

Status Instance::ask(Known& known) {
  const attnguard_plugin& table = library_->call;
  if (table.supports != nullptr) {
    std::string reason;
    const Status said = call("supports", [&](char* message, std::size_t size) {
      const int returned =
          table.supports(instance_, known.c.get(), message, size);
      reason.assign(message, std::find(message, message + size, '\0'));
      return returned;
    });
    if (said.code() == StatusCode::kUnsupported) {
      known.unsupported =
          reason.empty() ? "the plugin refuses it without a reason" : reason;
      return ok_status();
    }
    if (!said.ok()) return said;
  }
  if (table.numerics == nullptr) return ok_status();
  const Result<Numerics> numerics =
      read_numerics(known.c.problem(), [&](attnguard_numerics* to) {
        return call("numerics", [&](char* message, std::size_t size) {
          return table.numerics(instance_, known.c.get(), to, message, size);
        });
      });
  if (!numerics.ok()) return numerics.status();
  known.numerics = numerics.value();
  return ok_status();
}

std::shared_ptr<const Instance::Known> Instance::know(const Problem& problem) {
  const std::lock_guard<std::mutex> lock(knowing_);
  for (const auto& known : known_)
    if (known->c.problem() == problem) return known;
  auto known = std::make_shared<Known>(problem);
  known->failure = ask(*known);
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.push_back(known);
  return known;
}

std::string Instance::unsupported(const Problem& problem) {
  return know(problem)->unsupported;
}

Numerics Instance::numerics(const Problem& problem) {
  return know(problem)->numerics;
}

Status Instance::run(const AttentionCall& attention) {
  const std::shared_ptr<const Known> known = know(*attention.problem);
  if (!known->failure.ok()) return known->failure;
  const attnguard_call c = c_call(known->c, attention);
  const Status status = call("run", [&](char* message, std::size_t size) {
    return library_->call.run(instance_, &c, message, size);
  });
  if (status.code() == StatusCode::kUnsupported)
    return as_lie("run", status, *attention.problem);
  return status;
}

Status Instance::append(const CacheAppend& tokens) {
  const std::shared_ptr<const Known> known = know(*tokens.problem);
  if (!known->failure.ok()) return known->failure;
  const attnguard_append c = c_append(known->c, tokens);
  const Status status = call("append", [&](char* message, std::size_t size) {
    return library_->call.append(instance_, &c, message, size);
  });
  if (status.code() == StatusCode::kUnsupported)
    return as_lie("append", status, *tokens.problem);
  return status;
}

Result<void*> Instance::allocate(std::size_t bytes) {
  void* data = nullptr;
  bool given = false;
  const Status status = call("allocate", [&](char* message, std::size_t size) {
    const int returned =
        library_->call.allocate(instance_, bytes, &data, message, size);
    given = returned == ATTNGUARD_OK;
    return returned;
  });
  if (!status.ok()) {
    // It gave memory, and its message was wrong.
    if (given && data != nullptr) release(data);
    return status;
  }
  if (data == nullptr)
    return engine_failure(
        "allocate() returned success and no memory; return "
        "ATTNGUARD_OUT_OF_MEMORY and a message when there is none");
  return data;
}

void Instance::release(void* data) {
  const Status ignored = call("release", [&](char*, std::size_t) {
    library_->call.release(instance_, data);
    return int{ATTNGUARD_OK};
  });
}

Status Instance::copy_in(void* to, const void* from, std::size_t bytes) {
  return call("copy_in", [&](char* message, std::size_t size) {
    return library_->call.copy_in(instance_, to, from, bytes, message, size);
  });
}

Status Instance::copy_out(void* to, const void* from, std::size_t bytes) {
  return call("copy_out", [&](char* message, std::size_t size) {
    return library_->call.copy_out(instance_, to, from, bytes, message, size);
  });
}

}  // namespace attnguard::plugin
