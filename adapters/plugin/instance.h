// One instance of a plugin: what create() made, what describe() says of it and
// the calls that the guard makes.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_INSTANCE_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_INSTANCE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/plugin/c_problem.h"
#include "adapters/plugin/description.h"
#include "adapters/plugin/library.h"
#include "guard/engine/engine.h"

namespace attnguard::plugin {

class Instance {
 public:
  // The plugin's own error where create() fails, kEngineFailure where
  // describe() fails or makes no sense.
  static Result<std::shared_ptr<Instance>> create(
      std::shared_ptr<const Library> library, const EngineSpec& spec);

  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  const std::string& path() const { return library_->path; }
  const Description& description() const { return description_; }
  bool has_memory() const { return library_->call.allocate != nullptr; }
  bool has_append() const { return library_->call.append != nullptr; }

  // What the plugin says of a problem. When it fails to say, it is run, and
  // the run is what fails.
  std::string unsupported(const Problem& problem);
  Numerics numerics(const Problem& problem);

  Status run(const AttentionCall& call);
  Status append(const CacheAppend& append);

  // Of memory; see Memory.
  Result<void*> allocate(std::size_t size);
  void release(void* data);
  Status copy_in(void* to, const void* from, std::size_t size);
  Status copy_out(void* to, const void* from, std::size_t size);

 private:
  explicit Instance(std::shared_ptr<const Library> library)
      : library_(std::move(library)) {}

  // A problem and what the plugin said of it.
  struct Known {
    explicit Known(const Problem& problem)
        : c(problem), numerics(default_numerics(problem)) {}
    CProblem c;
    std::string unsupported;
    Numerics numerics;
    Status failure;  // when it could not say
  };

  Status start(const EngineSpec& spec);
  std::shared_ptr<const Known> know(const Problem& problem);
  Status ask(Known& known);
  template <typename Call>
  Status call(std::string_view function, Call call);

  std::shared_ptr<const Library> library_;  // Closed after destroy().
  bool created_ = false;
  void* instance_ = nullptr;
  Description description_;
  std::mutex calling_;  // Calls of one instance are not concurrent.
  std::mutex knowing_;
  std::vector<std::shared_ptr<const Known>> known_;  // The last few.
};

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_INSTANCE_H_
