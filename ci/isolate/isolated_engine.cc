#include "ci/isolate/isolated_engine.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "ci/isolate/client.h"
#include "ci/isolate/request.h"

namespace attnguard {
namespace {

// What a callback threw over there is thrown again here.
Reply rethrown(Result<Reply> reply) {
  if (!reply.ok()) {
    Reply failed;
    failed.code = reply.status().code();
    failed.text = reply.status().message();
    return failed;
  }
  if (reply.value().outcome == Reply::Outcome::kException)
    throw std::runtime_error(reply.value().text);
  if (reply.value().outcome == Reply::Outcome::kOtherException) throw 0;
  return std::move(reply.value());
}

// The parts that an engine's callbacks share.
class IsolatedEngine {
 public:
  IsolatedEngine(std::string spec, const IsolationOptions& options,
                 const std::shared_ptr<SharedMemory>& memory)
      : memory_(memory), client_(std::move(spec), options, memory) {}

  Status open(Hello& hello) { return client_.start(hello); }

  Status run(const AttentionCall& call) {
    RequestBuilder builder(*memory_, arrays_);
    return ask(builder.build(call), *call.problem, builder);
  }

  Status append(const CacheAppend& append) {
    RequestBuilder builder(*memory_, arrays_);
    return ask(builder.build(append), *append.problem, builder);
  }

  // There is no status for these: a process that dies of them throws.
  Reply query(Ask question, const Problem& problem) {
    Request request;
    request.ask = question;
    Reply reply = rethrown(client_.exchange(request, problem));
    if (reply.code != StatusCode::kOk) throw std::runtime_error(reply.text);
    return reply;
  }

 private:
  Status ask(Result<Request> request, const Problem& problem,
             const RequestBuilder& builder) {
    if (!request.ok()) return request.status();
    Result<Reply> answer = client_.exchange(request.value(), problem);
    builder.take_accesses();
    arrays_.take_back();
    const Reply reply = rethrown(std::move(answer));
    if (reply.code == StatusCode::kOk) return ok_status();
    return {reply.code, reply.text};
  }

  std::shared_ptr<SharedMemory> memory_;
  EngineClient client_;
  SharedArrays arrays_{*memory_};
};

}  // namespace

Result<Engine> open_isolated(const std::string& spec,
                             const IsolationOptions& options) {
  Result<std::shared_ptr<SharedMemory>> memory = SharedMemory::create();
  if (!memory.ok()) return memory.status();
  const auto isolated =
      std::make_shared<IsolatedEngine>(spec, options, memory.value());
  Hello hello;
  if (Status status = isolated->open(hello); !status.ok()) return status;
  Engine engine;
  engine.name = hello.name;
  engine.description = hello.description;
  engine.capabilities.dtypes = hello.dtypes;
  engine.capabilities.features = hello.features;
  engine.capabilities.deterministic = hello.deterministic;
  if (hello.has_numerics)
    engine.capabilities.numerics = [isolated](const Problem& problem) {
      return isolated->query(Ask::kNumerics, problem).numerics;
    };
  if (hello.has_unsupported)
    engine.capabilities.unsupported = [isolated](const Problem& problem) {
      return isolated->query(Ask::kUnsupported, problem).text;
    };
  engine.run = [isolated](const AttentionCall& call) {
    return isolated->run(call);
  };
  if (hello.has_append)
    engine.append = [isolated](const CacheAppend& append) {
      return isolated->append(append);
    };
  engine.memory = memory.value();
  return engine;
}

}  // namespace attnguard
