// A plugin's table and what its functions say: sizes, versions, texts, flags
// and status codes from a stranger.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "adapters/plugin/c_problem.h"
#include "adapters/plugin/instance.h"
#include "adapters/plugin/library.h"
#include "guard/engine/reference.h"
#include "tests/fuzz/target.h"

using namespace attnguard;
using fuzz::Bytes;
using fuzz::require;

namespace {

// What the plugin's functions take their answers from.
Bytes* answers = nullptr;

int status(char* message, std::size_t size) {
  const std::string text = answers->text(answers->below(40));
  if (size > 0) std::memcpy(message, text.data(), std::min(text.size(), size));
  return answers->flag() ? 0 : answers->take<std::int8_t>();
}

int create(const attnguard_options*, void** instance, char* message,
           std::size_t size) {
  *instance = nullptr;
  return status(message, size);
}
void destroy(void*) {}
int describe(void*, attnguard_description* to, char* message,
             std::size_t size) {
  // What it may write, up to the size that it was told.
  const std::string name = answers->text(64), text = answers->text(256);
  std::memcpy(to->name, name.data(), name.size());
  std::memcpy(to->description, text.data(), text.size());
  to->dtypes = answers->take<std::uint32_t>();
  to->features = answers->take<std::uint64_t>();
  to->deterministic = answers->take<std::uint32_t>();
  to->host_accessible = answers->take<std::uint32_t>();
  if (answers->flag()) to->size = answers->take<std::uint64_t>();
  return status(message, size);
}
int run(void*, const attnguard_call*, char* message, std::size_t size) {
  return status(message, size);
}
int supports(void*, const attnguard_problem*, char* message, std::size_t size) {
  return status(message, size);
}
int numerics(void*, const attnguard_problem*, attnguard_numerics* to,
             char* message, std::size_t size) {
  to->score = answers->take<std::uint32_t>();
  to->probability = answers->take<std::uint32_t>();
  to->accumulator = answers->take<std::uint32_t>();
  to->max_input = answers->take<double>();
  to->key_error = answers->take<double>();
  to->value_error = answers->take<double>();
  return status(message, size);
}
int append(void*, const attnguard_append*, char* message, std::size_t size) {
  return status(message, size);
}
// What a failure stores is nobody's to release: an address that is none.
int allocate(void*, std::uint64_t size, void** data, char* message,
             std::size_t message_size) {
  const bool has_memory = size < (1 << 20) && answers->flag();
  const int returned = status(message, message_size);
  if (returned == ATTNGUARD_OK)
    *data = has_memory ? std::malloc(size) : nullptr;
  else
    *data = reinterpret_cast<void*>(std::uintptr_t{0x10});
  return returned;
}
void release(void*, void* data) { std::free(data); }
int copy(void*, void* to, const void* from, std::uint64_t size, char* message,
         std::size_t message_size) {
  std::memcpy(to, from, size);
  return status(message, message_size);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  answers = &bytes;

  attnguard_plugin table = {};
  const bool right = bytes.below(4) != 0;
  table.size = right ? sizeof table : bytes.take<std::uint32_t>();
  table.abi_version = right ? 1 : bytes.take<std::uint32_t>();
  const auto has = bytes.take<std::uint16_t>();
  if (!(has & 1)) table.create = create;
  if (!(has & 2)) table.destroy = destroy;
  if (!(has & 4)) table.describe = describe;
  if (!(has & 8)) table.run = run;
  if (has & 16) table.supports = supports;
  if (has & 32) table.numerics = numerics;
  if (has & 64) table.append = append;
  if (has & 128) table.allocate = allocate;
  if (has & 256) table.release = release;
  if (has & 512) table.copy_in = copy;
  if (has & 1024) table.copy_out = copy;

  // As large as it says, so that a read behind its end is one.
  const std::size_t length =
      std::clamp<std::size_t>(table.size, 8, std::size_t{1} << 16);
  std::vector<std::uint64_t> memory((length + 7) / 8);
  std::memcpy(memory.data(), &table, std::min(length, sizeof table));
  const auto library = std::make_shared<plugin::Library>(nullptr, "fuzz.so");
  const Status read = plugin::read_table(
      reinterpret_cast<const attnguard_plugin*>(memory.data()), library->call);
  if (!read.ok()) {
    require(!read.message().empty(), "an error without a message");
    return 0;
  }

  const EngineSpec spec{"plugin:fuzz.so", "fuzz.so", {}};
  const auto opened = plugin::Instance::create(library, spec);
  if (!opened.ok()) {
    require(!opened.status().message().empty(), "an error without a message");
    return 0;
  }
  plugin::Instance& instance = *opened.value();
  const Problem problem =
      Problem::parse("num_heads=2 seq_len=3 head_dim=4 mask=causal_top_left")
          .value();
  static_cast<void>(instance.unsupported(problem));
  const Numerics says = instance.numerics(problem);
  require(says.max_input >= 0 && says.key_error >= 0 && says.value_error >= 0,
          "impossible numerics are believed");
  if (!instance.has_memory()) return 0;
  const Result<void*> place = instance.allocate(64);
  if (!place.ok()) {
    require(!place.status().message().empty(), "an error without a message");
    return 0;
  }
  require(place.value() != nullptr, "a success without memory");
  char here[64] = {};
  static_cast<void>(instance.copy_in(place.value(), here, sizeof here));
  static_cast<void>(instance.copy_out(here, place.value(), sizeof here));
  instance.release(place.value());
  return 0;
}
