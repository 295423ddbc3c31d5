// An ONNX Runtime library, opened at run time, and the functions of its C
// interface that the adapter calls.
//
// The interface is a table that only grows, so a function's slot never changes;
// the declarations are this project's own and hold for every release that has
// table version 17 (1.17 and later). Objects stay opaque pointers.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_LIBRARY_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "guard/base/status.h"

namespace attnguard::onnxruntime {

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtMemoryInfo;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtAllocator;

// Each member is the function of the same name behind OrtApi. Those that
// return an OrtStatus return nullptr for success.
struct Functions {
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnv)(int log_level, const char* log_id, OrtEnv** env);
  OrtStatus* (*CreateSession)(const OrtEnv*, const char* path,
                              const OrtSessionOptions*, OrtSession** session);
  OrtStatus* (*CreateSessionFromArray)(const OrtEnv*, const void* model,
                                       std::size_t size,
                                       const OrtSessionOptions*,
                                       OrtSession** session);
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*,
                    const char* const* input_names,
                    const OrtValue* const* inputs, std::size_t num_inputs,
                    const char* const* output_names, std::size_t num_outputs,
                    OrtValue** outputs);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions** options);
  OrtStatus* (*SetSessionGraphOptimizationLevel)(OrtSessionOptions*, int level);
  OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions*, int threads);
  OrtStatus* (*SessionGetInputCount)(const OrtSession*, std::size_t* count);
  OrtStatus* (*SessionGetOutputCount)(const OrtSession*, std::size_t* count);
  OrtStatus* (*SessionGetInputTypeInfo)(const OrtSession*, std::size_t index,
                                        OrtTypeInfo** info);
  OrtStatus* (*SessionGetOutputTypeInfo)(const OrtSession*, std::size_t index,
                                         OrtTypeInfo** info);
  OrtStatus* (*SessionGetInputName)(const OrtSession*, std::size_t index,
                                    OrtAllocator*, char** name);
  OrtStatus* (*SessionGetOutputName)(const OrtSession*, std::size_t index,
                                     OrtAllocator*, char** name);
  OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void* data,
                                               std::size_t bytes,
                                               const std::int64_t* dims,
                                               std::size_t rank, int type,
                                               OrtValue** value);
  OrtStatus* (*IsTensor)(const OrtValue*, int* is_tensor);
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void** data);
  // nullptr, without an error, for what is no tensor. Not to be released.
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*,
                                         const OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*,
                                     int* type);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*,
                                   std::size_t* rank);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*,
                              std::int64_t* dims, std::size_t rank);
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo*,
                                      const char** names, std::size_t rank);
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*,
                                      OrtTensorTypeAndShapeInfo** info);
  OrtStatus* (*CreateCpuMemoryInfo)(int allocator, int memory,
                                    OrtMemoryInfo** info);
  OrtStatus* (*AllocatorFree)(OrtAllocator*, void*);
  OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator** allocator);
  void (*ReleaseEnv)(OrtEnv*);
  void (*ReleaseStatus)(OrtStatus*);
  void (*ReleaseMemoryInfo)(OrtMemoryInfo*);
  void (*ReleaseSession)(OrtSession*);
  void (*ReleaseValue)(OrtValue*);
  void (*ReleaseTypeInfo)(OrtTypeInfo*);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*);
  void (*ReleaseSessionOptions)(OrtSessionOptions*);
};

// Loaded once per file and never unloaded: ONNX Runtime's threads outlive its
// objects. Several releases may be loaded side by side.
struct Library {
  Functions call = {};
  OrtEnv* env = nullptr;
  OrtMemoryInfo* memory = nullptr;
  std::string version;  // "1.30.0"
  std::string file;

  // Takes the status over; `what` names the call.
  Status status(OrtStatus* status, const std::string& what) const;
};

// `path`: the path= option, a file or its folder; `version`: the version=
// option, one of those that ci/fetch_engines.sh fetched. Both may be empty.
// kNotFound lists where was looked and how to get the library.
Result<std::shared_ptr<const Library>> load_library(const std::string& path,
                                                    const std::string& version);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_LIBRARY_H_
