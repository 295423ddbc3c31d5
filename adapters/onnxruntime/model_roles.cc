#include "adapters/onnxruntime/model_roles.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "adapters/onnxruntime/node.h"
#include "guard/base/text.h"

namespace attnguard::onnxruntime {
namespace {

using Options = std::map<std::string, std::string>;

bool is_integer(int type) { return type == kInt32 || type == kInt64; }
bool is_real(int type) {
  return type == kFloat || type == kFloat16 || type == kBfloat16 ||
         type == kDouble;
}
bool is_flag(int type) {
  return is_integer(type) || type == kBool || type == kFloat ||
         type == kFloat16;
}

struct SideName {
  std::string_view name;
  Role role;
};
constexpr std::array<SideName, 14> kSideNames = {
    {{"attention_mask", Role::kAttentionMask},
     {"input_mask", Role::kAttentionMask},
     {"position_ids", Role::kPositionIds},
     {"positions", Role::kPositionIds},
     {"cache_position", Role::kCachePosition},
     {"token_type_ids", Role::kTokenTypes},
     {"segment_ids", Role::kTokenTypes},
     {"past_sequence_length", Role::kPastLength},
     {"past_seq_len", Role::kPastLength},
     {"total_sequence_length", Role::kTotalLength},
     {"total_seq_len", Role::kTotalLength},
     {"seqlens_k", Role::kLastKey},
     {"use_cache_branch", Role::kUseCacheBranch},
     {"use_cache", Role::kUseCacheBranch}}};

constexpr std::array<std::string_view, 4> kTokenNames = {"input_ids", "tokens",
                                                         "token_ids", "input"};
constexpr std::array<std::string_view, 2> kPastPrefixes = {"past_key_values",
                                                           "past"};
constexpr std::array<std::string_view, 2> kPresentPrefixes = {
    "present_key_values", "present"};

std::string option(const Options& options, const std::string& name) {
  const auto given = options.find(name);
  return given == options.end() ? std::string() : given->second;
}

class Finder {
 public:
  Finder(const Ports& ports, const Options& options)
      : ports_(ports), options_(options) {}

  Result<Roles> find() {
    Status status = find_tokens();
    if (status.ok()) status = find_rest();
    if (status.ok()) status = pair_outputs();
    if (status.ok()) status = find_logits();
    if (!status.ok()) return status;
    return roles_;
  }

 private:
  Status unclear(const std::string& what) const {
    return invalid_argument(what + "\n" + describe(ports_));
  }

  // The port that an option names.
  Status take_named(const std::string& key, const std::vector<Port>& from,
                    std::optional<Port>& port) const {
    const std::string name = option(options_, key);
    if (name.empty()) return ok_status();
    std::vector<std::string_view> known;
    for (const Port& one : from) {
      if (one.name == name) port = one;
      known.push_back(one.name);
    }
    if (port) return ok_status();
    return unclear(key + "=" + name + ": the model has no such name" +
                   suggestion(name, known));
  }

  std::optional<Role> side_role(const Port& port) const {
    if (port.name == option(options_, "attention_mask"))
      return Role::kAttentionMask;
    if (port.name == option(options_, "position_ids"))
      return Role::kPositionIds;
    for (const SideName& side : kSideNames)
      if (side.name == port.name) return side.role;
    return std::nullopt;
  }

  // What a cache tensor's name says behind its prefix: ".0.key".
  std::optional<std::string> behind_prefix(
      const std::string& name, const std::string& told,
      const std::array<std::string_view, 2>& usual) const {
    if (!told.empty())
      return name.starts_with(told) ? std::optional(name.substr(told.size()))
                                    : std::nullopt;
    for (std::string_view prefix : usual)
      if (name.starts_with(prefix)) return name.substr(prefix.size());
    return std::nullopt;
  }
  std::optional<std::string> past_suffix(const Port& port) const {
    if (side_role(port) || port.name == roles_.tokens.name) return std::nullopt;
    return behind_prefix(port.name, option(options_, "past"), kPastPrefixes);
  }
  std::optional<std::string> present_suffix(const Port& port) const {
    return behind_prefix(port.name, option(options_, "present"),
                         kPresentPrefixes);
  }

  static bool holds_tokens(const Port& port) {
    return is_integer(port.type) &&
           (port.dims.size() == 2 || port.dims.size() == 1);
  }

  Status find_tokens() {
    std::optional<Port> found;
    if (Status status = take_named("input", ports_.inputs, found); !status.ok())
      return status;
    for (std::string_view name : kTokenNames)
      for (const Port& port : ports_.inputs)
        if (!found && port.name == name) found = port;
    std::size_t candidates = 0;
    if (!found)
      for (const Port& port : ports_.inputs)
        if (holds_tokens(port) && !side_role(port) && ++candidates == 1)
          found = port;
    if (!found || candidates > 1)
      return unclear(
          candidates > 1
              ? "several inputs may hold the tokens: name one with input=NAME"
              : "no input holds tokens (int64 or int32 [batch, sequence])");
    if (!holds_tokens(*found))
      return unclear("the tokens of " + describe(*found) +
                     " must be int64 or int32 [batch, sequence]");
    roles_.tokens = *found;
    return ok_status();
  }

  Status find_rest() {
    for (const char* key : {"attention_mask", "position_ids"}) {
      std::optional<Port> named;
      if (Status status = take_named(key, ports_.inputs, named); !status.ok())
        return status;
    }
    for (const Port& port : ports_.inputs) {
      if (port.name == roles_.tokens.name) continue;
      if (const std::optional<Role> role = side_role(port)) {
        if (Status status = add_side(*role, port); !status.ok()) return status;
      } else if (past_suffix(port)) {
        if (Status status = add_cache(port); !status.ok()) return status;
      } else {
        return unclear("what is the input " + describe(port) +
                       " for? Tokens, attention_mask, position_ids and "
                       "past... can be given; name them with input=, "
                       "attention_mask=, position_ids=, past= and present=");
      }
    }
    return ok_status();
  }

  Status add_side(Role role, const Port& port) {
    if (!is_flag(port.type))
      return unclear("the input " + describe(port) + " has an unusual type");
    const std::size_t rank = port.dims.size();
    const bool fits = role == Role::kPositionIds     ? rank >= 1 && rank <= 3
                      : role == Role::kAttentionMask ? rank == 2
                      : role == Role::kTokenTypes    ? rank == 2
                                                     : rank <= 1;
    if (!fits)
      return unclear("the input " + describe(port) +
                     " has an unusual number of axes" +
                     (role == Role::kAttentionMask
                          ? "; a mask of scores would hide the model's own"
                          : ""));
    roles_.sides.push_back({role, port});
    return ok_status();
  }

  // The length that the file or an option gives to an axis that is neither
  // batch nor length.
  std::optional<std::int64_t> other_dim(const Port& port, std::size_t axis,
                                        std::size_t batch_axis) const {
    if (port.dims[axis] >= 0) return port.dims[axis];
    return parse_int(
        option(options_, axis == batch_axis + 1 ? "kv_heads" : "head_dim"));
  }

  Status add_cache(const Port& port) {
    const std::size_t rank = port.dims.size();
    const bool joined = rank == 5 && port.dims[0] == 2;  // Keys and values.
    if (element_size(port.type) == 0 || (rank != 4 && !joined))
      return unsupported("the cache input " + describe(port) +
                         " is not [batch, heads, length, channels]\n" +
                         describe(ports_));
    CacheTensor tensor;
    tensor.past = port;
    tensor.batch_axis = joined ? 1 : 0;
    std::vector<std::size_t> open;
    for (std::size_t axis = tensor.batch_axis + 1; axis < rank; ++axis)
      if (port.dims[axis] < 0) open.push_back(axis);
    if (open.empty())
      return unsupported("the cache input " + describe(port) +
                         " has a fixed length; a cache that grows from 0 is "
                         "needed\n" +
                         describe(ports_));
    tensor.length_axis = open.size() == 1 ? open.front() : rank - 2;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (axis == tensor.batch_axis || axis == tensor.length_axis) {
        tensor.dims.push_back(axis == tensor.batch_axis ? 1 : 0);
        continue;
      }
      const std::optional<std::int64_t> dim =
          other_dim(port, axis, tensor.batch_axis);
      if (!dim || *dim < 1)
        return unclear("the cache input " + describe(port) +
                       " leaves its axes open: give kv_heads=N and "
                       "head_dim=N");
      tensor.dims.push_back(*dim);
    }
    roles_.cache.push_back(std::move(tensor));
    return ok_status();
  }

  Status pair_outputs() {
    for (CacheTensor& tensor : roles_.cache) {
      const std::string suffix = *past_suffix(tensor.past);
      bool found = false;
      for (const Port& port : ports_.outputs)
        if (present_suffix(port) == suffix) {
          tensor.present = port;
          found = true;
        }
      if (!found)
        return unclear("no output present" + suffix +
                       " replaces the cache input " + tensor.past.name +
                       "; past= and present= say what their names begin with");
      if (tensor.present.type != tensor.past.type)
        return unclear("the cache output " + describe(tensor.present) +
                       " has another type than its input");
    }
    return ok_status();
  }

  static bool holds_logits(const Port& port) {
    return is_real(port.type) && (port.dims.empty() || port.dims.size() == 2 ||
                                  port.dims.size() == 3);
  }

  Status find_logits() {
    std::optional<Port> found;
    if (Status status = take_named("logits", ports_.outputs, found);
        !status.ok())
      return status;
    for (const Port& port : ports_.outputs)
      if (!found && port.name == "logits") found = port;
    std::size_t candidates = 0;
    if (!found)
      for (const Port& port : ports_.outputs)
        if (holds_logits(port) && !present_suffix(port) &&
            port.name.find("hidden_state") == std::string::npos &&
            ++candidates == 1)
          found = port;
    if (!found || candidates > 1)
      return unclear(
          candidates > 1
              ? "several outputs may be the logits: name one with logits=NAME"
              : "no output holds logits (float [batch, sequence, vocabulary]); "
                "name one with logits=NAME");
    if (!holds_logits(*found))
      return unclear("the logits of " + describe(*found) +
                     " must be float [batch, sequence, vocabulary]");
    roles_.logits = *found;
    return ok_status();
  }

  const Ports& ports_;
  const Options& options_;
  Roles roles_;
};

}  // namespace

Result<Roles> find_roles(const Ports& ports, const Options& options) {
  return Finder(ports, options).find();
}

}  // namespace attnguard::onnxruntime
