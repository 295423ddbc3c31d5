#include "guard/runtime/dump_writer.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "guard/base/rng.h"
#include "guard/runtime/capture.h"
#include "guard/runtime/dump_file.h"
#include "guard/runtime/whole_file.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostWritten = 20;  // in one file

// Kept of DumpSettings::max_bytes for the header.
constexpr std::int64_t kHeaderBytes = 16 << 10;

// Pairs of layer group and check that are told apart.
constexpr std::size_t kMostKinds = 256;

enum SlotState : int { kFree, kFilling, kReady, kWriting };

struct Slot {
  std::atomic<int> state = kFree;
  std::unique_ptr<std::byte[]> bytes;
  DumpRecord record;
  std::vector<StoredTensor> tensors;  // within `bytes`
};

std::uint64_t most_tensor_bytes(const DumpSettings& settings) {
  const std::int64_t header = std::min(settings.max_bytes / 4, kHeaderBytes);
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(settings.max_bytes - header, 0));
}

std::uint64_t kind_of(const Violation& violation) {
  std::uint64_t hash = static_cast<std::uint64_t>(violation.check) + 1;
  for (std::string_view name : {violation.layer_group, violation.engine_check})
    for (char c : name) hash = derive_seed(hash, static_cast<unsigned char>(c));
  return hash | 1;  // 0 is an empty place.
}

// One word of a file's name.
std::string file_word(std::string_view text) {
  std::string word;
  for (char c : text.substr(0, 40)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '.' || c == '_';
    word += plain ? c : '-';
  }
  return word;
}

}  // namespace

struct DumpWriter::State {
  DumpSettings settings;
  std::string engine;
  LogFunction log;
  std::array<Slot, kSlots> slots;

  std::atomic<pid_t> process = getpid();
  std::atomic<std::uint64_t> started = 0;  // Files that were begun.
  std::array<std::atomic<std::uint64_t>, kMostKinds> kinds = {};

  std::atomic<std::uint64_t> written = 0, bytes = 0, dropped_limit = 0,
                             dropped_busy = 0, dropped_size = 0, no_tensors = 0,
                             failed = 0;

  sem_t work;  // Posted for each slot that got ready, and to stop.
  std::atomic<bool> stop = false;

  // Set by the first capture. A child process must neither join nor destroy
  // its parent's thread, so it is a plain pointer.
  std::atomic<int> thread_state = 0;  // 0 none, 1 starting, 2 there
  std::thread* thread = nullptr;

  void say(const std::string& line) noexcept {
    if (!log) return;
    try {
      log(line);
    } catch (...) {  // The log is the host's; a file counts all the same.
    }
  }

  // The 1st, 2nd, 4th, 8th ... of a kind: enough to be noticed.
  void count_loss(std::atomic<std::uint64_t>& counter, std::string_view layer,
                  std::string_view why) noexcept {
    const std::uint64_t count = counter.fetch_add(1) + 1;
    if ((count & (count - 1)) != 0) return;
    try {
      say("attnguard: no dump of " + std::string(layer) + ": " +
          std::string(why) + " (" + std::to_string(count) + " so far)");
    } catch (...) {
    }
  }

  void forget_parent() noexcept {
    pid_t before = process.load();
    const pid_t now = getpid();
    if (before == now || !process.compare_exchange_strong(before, now)) return;
    for (Slot& slot : slots) slot.state = kFree;
    started = 0;
    for (std::atomic<std::uint64_t>& kind : kinds) kind = 0;
    for (std::atomic<std::uint64_t>* counter :
         {&written, &bytes, &dropped_limit, &dropped_busy, &dropped_size,
          &no_tensors, &failed})
      *counter = 0;
    thread = nullptr;
    thread_state = 0;
    stop = false;
    sem_init(&work, 0, 0);
  }

  // True the first time that the pair of layer group and check is met.
  bool is_new(std::uint64_t kind) noexcept {
    for (std::size_t n = 0; n < kMostKinds; ++n) {
      std::atomic<std::uint64_t>& place = kinds[(kind + n) % kMostKinds];
      std::uint64_t there = 0;
      if (place.compare_exchange_strong(there, kind)) return true;
      if (there == kind) return false;
    }
    return false;
  }

  // A file for everything that was not seen before; half of the files at most
  // for more of the same.
  bool admit(const Violation& violation) noexcept {
    const auto most = static_cast<std::uint64_t>(settings.max_files);
    const std::uint64_t limit =
        is_new(kind_of(violation)) ? most : (most + 1) / 2;
    std::uint64_t now = started.load();
    while (now < limit)
      if (started.compare_exchange_weak(now, now + 1)) return true;
    return false;
  }

  // nullopt: one row with its keys is too large.
  std::optional<CaptureScope> scope_of(const Violation& violation) const {
    const CapturedCall captured = {
        violation.call, violation.context == nullptr || violation.in_scratch
                            ? nullptr
                            : violation.context->mask};
    return choose_scope(
        captured,
        violation.findings.empty() ? Finding{} : violation.findings[0],
        most_tensor_bytes(settings));
  }

  Slot* claim() noexcept {
    for (Slot& slot : slots) {
      int free = kFree;
      if (slot.bytes && slot.state.compare_exchange_strong(free, kFilling))
        return &slot;
    }
    return nullptr;
  }

  bool start_thread() noexcept;
  void fill(Slot& slot, const Violation& violation, const CaptureScope& scope);
  void fill_tensors(Slot& slot, const Violation& violation,
                    const CaptureScope& scope);
  void run() noexcept;
  void write(Slot& slot) noexcept;
  bool idle() const;
};

bool DumpWriter::State::start_thread() noexcept {
  int none = 0;
  if (!thread_state.compare_exchange_strong(none, 1)) return true;
  // The host's signals are for the host's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread = new std::thread([this] { run(); });
    thread_state = 2;
  } catch (...) {
    thread_state = 0;  // The next capture tries again.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_state == 2;
}

void DumpWriter::State::fill(Slot& slot, const Violation& violation,
                             const CaptureScope& scope) {
  DumpRecord& record = slot.record;
  record = {};
  record.engine = engine;
  record.layer = violation.layer;
  record.check = live_check_id(violation.check);
  record.engine_check = violation.engine_check;
  record.engine_text = violation.engine_text;
  record.severity = severity_name(violation.severity);
  const std::size_t kept = std::min(violation.findings.size(), kMostWritten);
  record.findings.assign(
      violation.findings.begin(),
      violation.findings.begin() + static_cast<std::ptrdiff_t>(kept));
  record.num_findings = violation.num_findings;
  record.in_scratch = violation.in_scratch;
  record.seed = violation.seed;
  record.call_number = violation.call_number;
  record.time = static_cast<std::int64_t>(std::time(nullptr));
  record.has_tensors = violation.call != nullptr;
  slot.tensors.clear();
  if (record.has_tensors) fill_tensors(slot, violation, scope);
}

void DumpWriter::State::fill_tensors(Slot& slot, const Violation& violation,
                                     const CaptureScope& scope) {
  slot.record.problem = *violation.call->problem;
  slot.record.numerics = violation.numerics;
  slot.record.scope = scope;
  const CapturedCall captured = {
      violation.call, violation.context == nullptr || violation.in_scratch
                          ? nullptr
                          : violation.context->mask};
  slot.tensors = capture_layout(captured, scope);
  capture_tensors(captured, scope, slot.tensors, slot.bytes.get());
}

void DumpWriter::State::write(Slot& slot) noexcept {
  try {
    const DumpRecord& record = slot.record;
    const Result<std::string> header =
        safetensors_header(slot.tensors, dump_metadata(record));
    if (!header.ok()) {
      count_loss(failed, record.layer, header.status().message());
      return;
    }
    std::vector<std::span<const std::byte>> pieces = {
        std::as_bytes(std::span(header.value()))};
    std::uint64_t size = header.value().size();
    for (const StoredTensor& tensor : slot.tensors) {
      pieces.push_back(tensor.data);
      size += tensor.data.size();
    }
    std::tm parts = {};
    const auto time = static_cast<std::time_t>(record.time);
    gmtime_r(&time, &parts);
    char stamp[32] = "";
    std::strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &parts);
    const std::string path = settings.folder + "/attnguard-" + stamp + "-" +
                             std::to_string(getpid()) + "-" +
                             std::to_string(written + failed + 1) + "-" +
                             file_word(record.layer) + "-" + record.check +
                             (record.engine_check.empty() ? "" : "-") +
                             file_word(record.engine_check) + ".safetensors";
    if (Status status = write_whole_file(path, pieces); !status.ok()) {
      count_loss(failed, record.layer, status.message());
      return;
    }
    ++written;
    bytes += size;
    say("attnguard: " + record.layer + ": wrote " + path);
  } catch (const std::exception& error) {
    count_loss(failed, "a call", error.what());
  } catch (...) {
    count_loss(failed, "a call", "unknown failure");
  }
}

void DumpWriter::State::run() noexcept {
  for (;;) {
    while (sem_wait(&work) != 0) {
    }
    for (Slot& slot : slots) {
      int ready = kReady;
      if (!slot.state.compare_exchange_strong(ready, kWriting)) continue;
      write(slot);
      slot.state = kFree;
    }
    if (stop && idle()) return;
  }
}

bool DumpWriter::State::idle() const {
  for (const Slot& slot : slots)
    if (slot.state != kFree) return false;
  return true;
}

DumpWriter::DumpWriter(const DumpSettings& settings, std::string engine,
                       LogFunction log)
    : state_(std::make_unique<State>()) {
  state_->settings = settings;
  state_->engine = std::move(engine);
  state_->log = std::move(log);
  sem_init(&state_->work, 0, 0);
  const std::uint64_t most = most_tensor_bytes(settings);
  if (settings.max_files <= 0) return;
  // Untouched pages cost nothing until there is a violation.
  for (Slot& slot : state_->slots)
    slot.bytes.reset(new (std::nothrow) std::byte[most]);
}

DumpWriter::~DumpWriter() {
  State& state = *state_;
  state.forget_parent();
  if (state.thread != nullptr) {
    state.stop = true;
    sem_post(&state.work);
    state.thread->join();
    delete state.thread;
  }
  // What a thread that could not be started has left.
  for (Slot& slot : state.slots)
    if (slot.state == kReady) state.write(slot);
  sem_destroy(&state.work);
}

bool DumpWriter::take(const Violation& violation) noexcept {
  State& state = *state_;
  state.forget_parent();
  Slot* slot = nullptr;
  try {
    // What an engine's hook reports is worth a file without tensors, too.
    const bool bare = violation.call == nullptr;
    if (!bare && (violation.call->query.data == nullptr ||
                  violation.call->output.data == nullptr)) {
      state.count_loss(state.no_tensors, violation.layer,
                       "its calls can be made again: attnguard check --seed " +
                           std::to_string(violation.seed) + " --problem '" +
                           violation.call->problem->text() + "'");
      return false;
    }
    const std::optional<CaptureScope> scope =
        bare ? CaptureScope{} : state.scope_of(violation);
    if (!scope) {
      state.count_loss(state.dropped_size, violation.layer,
                       "one row with its keys is larger than dump_max_bytes");
      return false;
    }
    if (!state.slots[0].bytes && state.settings.max_files > 0) {
      state.count_loss(state.failed, violation.layer,
                       "no memory for its tensors");
      return false;
    }
    slot = state.claim();
    if (slot == nullptr && state.settings.max_files > 0) {
      state.count_loss(state.dropped_busy, violation.layer,
                       "earlier ones are still being written");
      return false;
    }
    if (slot == nullptr || !state.admit(violation)) {
      if (slot != nullptr) slot->state = kFree;
      state.count_loss(state.dropped_limit, violation.layer,
                       "dump_max_files are written, or kept for other layers "
                       "and checks");
      return false;
    }
    state.fill(*slot, violation, *scope);
    if (!state.start_thread()) {
      slot->state = kFree;
      state.count_loss(state.failed, violation.layer, "no thread to write it");
      return false;
    }
    slot->state = kReady;
    sem_post(&state.work);
    return true;
  } catch (const std::exception& error) {
    state.count_loss(state.failed, violation.layer, error.what());
  } catch (...) {
    state.count_loss(state.failed, violation.layer, "unknown failure");
  }
  if (slot != nullptr) slot->state = kFree;
  return false;
}

bool DumpWriter::flush(std::chrono::milliseconds most) const {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!state_->idle()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void DumpWriter::after_fork() noexcept { state_->forget_parent(); }

DumpCounters DumpWriter::counters() const {
  const State& state = *state_;
  return {state.written,      state.bytes,        state.dropped_limit,
          state.dropped_busy, state.dropped_size, state.no_tensors,
          state.failed};
}

}  // namespace attnguard
