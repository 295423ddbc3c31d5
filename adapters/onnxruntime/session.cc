#include "adapters/onnxruntime/session.h"

#include <algorithm>
#include <vector>

namespace attnguard::onnxruntime {
namespace {

constexpr std::size_t kMostKept = 16;
constexpr int kNoOptimization = 0;  // The node is to run as it is.

// The values of a run, released at its end.
class Values {
 public:
  explicit Values(const Library& library) : library_(library) {}
  ~Values() {
    for (OrtValue* value : values) library_.call.ReleaseValue(value);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  Status add(NodeTensor& tensor) {
    OrtValue* value = nullptr;
    Status status = library_.status(
        library_.call.CreateTensorWithDataAsOrtValue(
            library_.memory, tensor.bytes.data(), tensor.bytes.size(),
            tensor.dims.data(), tensor.dims.size(), tensor.type, &value),
        "tensor '" + tensor.name + "'");
    if (!status.ok()) return status;
    values.push_back(value);
    names.push_back(tensor.name.c_str());
    return ok_status();
  }

  std::vector<OrtValue*> values;
  std::vector<const char*> names;

 private:
  const Library& library_;
};

Status add_all(std::vector<NodeTensor>& tensors, Values& values) {
  for (NodeTensor& tensor : tensors) {
    if (tensor.name.empty()) continue;
    if (Status status = values.add(tensor); !status.ok()) return status;
  }
  return ok_status();
}

}  // namespace

Sessions::~Sessions() {
  for (const Kept& kept : kept_) library_->call.ReleaseSession(kept.session);
}

Result<OrtSession*> Sessions::session_for(const std::string& model) {
  const auto known =
      std::find_if(kept_.begin(), kept_.end(),
                   [&](const Kept& kept) { return kept.model == model; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front().session;
  }
  const Functions& call = library_->call;
  OrtSessionOptions* options = nullptr;
  Status status = library_->status(call.CreateSessionOptions(&options),
                                   "CreateSessionOptions");
  if (!status.ok()) return status;
  OrtSession* session = nullptr;
  status = library_->status(call.SetIntraOpNumThreads(options, threads_),
                            "SetIntraOpNumThreads");
  if (status.ok())
    status = library_->status(
        call.SetSessionGraphOptimizationLevel(options, kNoOptimization),
        "SetSessionGraphOptimizationLevel");
  if (status.ok())
    status = library_->status(
        call.CreateSessionFromArray(library_->env, model.data(), model.size(),
                                    options, &session),
        "CreateSession");
  call.ReleaseSessionOptions(options);
  if (!status.ok()) return status;
  kept_.push_front({model, session});
  if (kept_.size() > kMostKept) {
    call.ReleaseSession(kept_.back().session);
    kept_.pop_back();
  }
  return session;
}

Status Sessions::run_on(OrtSession* session, NodeCall& node) const {
  Values inputs(*library_), outputs(*library_);
  Status status = add_all(node.inputs, inputs);
  if (status.ok()) status = add_all(node.outputs, outputs);
  if (!status.ok()) return status;
  // The outputs are written where they lie, since they are given.
  return library_->status(
      library_->call.Run(session, nullptr, inputs.names.data(),
                         inputs.values.data(), inputs.values.size(),
                         outputs.names.data(), outputs.values.size(),
                         outputs.values.data()),
      "Run");
}

Status Sessions::run(NodeCall& node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Result<OrtSession*> session = session_for(serialize_model(node));
  if (!session.ok()) return session.status();
  return run_on(session.value(), node);
}

}  // namespace attnguard::onnxruntime
