// A call that was found wrong, as a safetensors file: the tensors of capture.h
// and, as metadata, what else a replay needs. A finding that was reported from
// outside the guard without a call leaves a file of metadata alone: those that
// are marked with * are missing in it.
//
//   format             "attnguard-dump"
//   format_version     "1"
//   attnguard_version  "0.1.0"
//   engine, layer      names
//   tensors            "none" where there are none; otherwise missing
//   problem *          the problem line of the whole call
//   batch, heads, kv_heads, queries *   "first:end" of what is kept
//   cut *              what was left out, in words; "nothing" when complete
//   numerics *         JSON: how the engine rounds, so bounds are the same
//   check, severity    what found it: "recompute", "error"
//   engine_check, engine_text   of the check "engine" where they were given:
//                      which of the reporter's checks it was, and its words
//   findings           JSON list: kind, batch, head, query, ..., indices those
//                      of the whole call
//   num_findings       how many there were; the list may hold fewer
//   source             "engine": the engine's own call; "scratch": one that a
//                      shadow check or the canary made
//   seed, call_number  of the policy; of the call in its layer and thread
//   time               UTC, "2026-01-31T12:00:00Z"
#ifndef ATTNGUARD_GUARD_RUNTIME_DUMP_FILE_H_
#define ATTNGUARD_GUARD_RUNTIME_DUMP_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/engine/engine.h"
#include "guard/finding/finding.h"
#include "guard/runtime/capture.h"
#include "guard/runtime/safetensors.h"

namespace attnguard {

// What a file says beside its tensors.
struct DumpRecord {
  std::string engine;
  std::string layer;
  bool has_tensors = true;  // False: problem, numerics and scope mean nothing.
  Problem problem;          // of the whole call
  Numerics numerics;
  CaptureScope scope;
  std::string check;
  std::string engine_check, engine_text;  // See EngineReport.
  std::string severity;
  std::vector<Finding> findings;
  std::int64_t num_findings = 0;
  bool in_scratch = false;
  std::uint64_t seed = 0;
  std::uint64_t call_number = 0;
  std::int64_t time = 0;  // seconds since 1970, UTC
  std::string version;    // of the library that wrote it
};

SafetensorsMetadata dump_metadata(const DumpRecord& record);

// What of the call is not in the file, in words; empty: it is complete. The
// record has tensors.
std::string cut_text(const Problem& problem, const CaptureScope& scope);

// A file that was read. Its views take the indices of the whole call, but only
// places within the record's scope may be asked for.
class Dump {
 public:
  // Reads and checks every shape, dtype and range against the problem. A file
  // without tensors is no error where it says so (DumpRecord::has_tensors).
  // Messages name the file and what is wrong.
  static Result<Dump> load(const std::string& path);
  static Result<Dump> from(Safetensors file, std::string_view name);

  const DumpRecord& record() const { return record_; }

  // Empty, with data nullptr, where the record has no tensors.
  ConstTensorView query() const { return view("query"); }
  ConstTensorView key() const { return view("key"); }
  ConstTensorView value() const { return view("value"); }
  ConstTensorView output() const { return view("output"); }

  // The keys that a row of the scope may attend to: what the engine was told.
  void allowed(std::int64_t b, std::int64_t query, KeyRanges& keys) const;

 private:
  ConstTensorView view(std::string_view name) const;

  Safetensors file_;
  DumpRecord record_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_DUMP_FILE_H_
