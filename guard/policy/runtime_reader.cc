#include "guard/policy/runtime_reader.h"

#include <optional>
#include <utility>
#include <vector>

#include "guard/base/text.h"
#include "guard/policy/policy_text.h"
#include "guard/policy/runtime_options.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

class RuntimeReader {
 public:
  RuntimeReader(const SourceText& source, DiagnosticSink& sink)
      : source_(source),
        sink_(sink),
        policy_(std::make_shared<RuntimePolicy>()) {
    policy_->name = source.name();
  }

  std::shared_ptr<RuntimePolicy> read(const YamlNode& node) {
    const std::size_t errors = sink_.count();
    RuntimePatch top;
    top.location = source_.location(node.offset);
    const YamlNode* layers = nullptr;
    if (is_map(node, "runtime", "settings such as 'sample: 1/1000'"))
      for (const YamlEntry& entry : checked_entries(node, sink_)) {
        if (entry.name == "layers")
          layers = &entry.value;
        else
          read_entry(entry, top, true);
      }
    policy_->patches.push_back(std::move(top));
    if (layers != nullptr) read_layers(*layers);
    if (sink_.count() == errors)
      if (Status status = policy_->validate(); !status.ok())
        sink_.error(node.offset, status.message());
    return policy_;
  }

 private:
  bool is_map(const YamlNode& node, const std::string& what,
              std::string_view of) {
    if (node.kind == YamlNode::Kind::kMap) return true;
    if (node.kind != YamlNode::Kind::kRefused)
      sink_.error(node.offset, what + ": expected a map of " + std::string(of) +
                                   ", got " + describe(node));
    return false;
  }

  static std::vector<std::string_view> keys(bool top) {
    std::vector<std::string_view> names;
    for (const RuntimeOption& option : all_runtime_options())
      if (!option.is_check && (top || option.by_layer))
        names.push_back(option.name);
    names.push_back("checks");
    if (top) names.push_back("layers");
    return names;
  }

  void read_entry(const YamlEntry& entry, RuntimePatch& patch, bool top) {
    if (entry.name == "checks") return read_checks(entry.value, patch);
    const RuntimeOption* option = find_runtime_option(entry.name);
    if (option != nullptr && option->is_check)
      return sink_.error(entry.key.offset,
                         "'" + std::string(entry.name) +
                             "' is a check; write it under 'checks'");
    if (option != nullptr && !top && !option->by_layer)
      return sink_.error(entry.key.offset,
                         "'" + std::string(entry.name) +
                             "' cannot differ by layer; move it to 'runtime'");
    if (known_name(entry, "key", keys(top), sink_))
      set(*option, entry.value, patch);
  }

  void read_checks(const YamlNode& node, RuntimePatch& patch) {
    if (!is_map(node, "checks", "live checks and severities")) return;
    for (const YamlEntry& entry : checked_entries(node, sink_))
      if (known_name(entry, "live check", live_check_ids(), sink_))
        set(*find_runtime_option(entry.name), entry.value, patch);
  }

  void read_layers(const YamlNode& node) {
    if (!is_map(node, "layers",
                "layer name patterns such as '\"blk.0.*\"' and their settings"))
      return;
    for (const YamlEntry& layer : checked_entries(node, sink_)) {
      RuntimePatch patch;
      patch.layer_glob = layer.name;
      patch.location = source_.location(layer.key.offset);
      if (is_map(layer.value, "layer " + describe(layer.key),
                 "settings such as 'sample: 1/10'"))
        for (const YamlEntry& entry : checked_entries(layer.value, sink_))
          read_entry(entry, patch, false);
      policy_->patches.push_back(std::move(patch));
    }
  }

  // A scalar as it is, a list of scalars joined with commas.
  std::optional<std::string> text_of(const RuntimeOption& option,
                                     const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
    if (node.kind == YamlNode::Kind::kScalar) return node.text;
    const bool list =
        node.kind == YamlNode::Kind::kList && option.name.starts_with("on_");
    std::string text;
    for (const YamlNode& child : list ? node.children : kNone) {
      if (child.kind == YamlNode::Kind::kRefused) return std::nullopt;
      if (child.kind != YamlNode::Kind::kScalar) {
        sink_.error(child.offset, option.name + ": expected an action, got " +
                                      describe(child));
        return std::nullopt;
      }
      text += (text.empty() ? "" : ",") + child.text;
    }
    if (list && !text.empty()) return text;
    sink_.error(node.offset, option.name + ": expected " + option.values +
                                 ", got " + describe(node));
    return std::nullopt;
  }

  void set(const RuntimeOption& option, const YamlNode& node,
           RuntimePatch& patch) {
    const std::optional<std::string> text = text_of(option, node);
    if (!text) return;
    const Status status = option.set({*policy_, patch}, *text);
    if (!status.ok())
      sink_.error(node.offset,
                  option.name + ": " + visible_text(status.message(), 400));
  }

  inline static const std::vector<YamlNode> kNone;

  const SourceText& source_;
  DiagnosticSink& sink_;
  std::shared_ptr<RuntimePolicy> policy_;
};

std::string value_text(const RuntimeOption& option, const std::string& value) {
  if (option.name.starts_with("on_")) {
    std::string list;
    for (std::string_view action : split(value, ','))
      list += (list.empty() ? "[" : ", ") + std::string(action);
    return list + ']';
  }
  return option.name == "dump_dir" ? quoted_yaml(value) : value;
}

// The settings of one patch; `top` with those that are the policy's own.
std::string patch_text(const RuntimePolicy& runtime, const RuntimePatch& patch,
                       bool top, const std::string& indent) {
  std::string out, checks;
  for (const RuntimeOption& option : all_runtime_options()) {
    if (!top && !option.by_layer) continue;
    const std::string value = option.get(runtime, patch);
    if (value.empty()) continue;
    const std::string line = option.name + ": " + value_text(option, value);
    if (option.is_check)
      checks += indent + "  " + line + '\n';
    else
      out += indent + line + '\n';
  }
  return out + (checks.empty() ? "" : indent + "checks:\n" + checks);
}

}  // namespace

std::shared_ptr<const RuntimePolicy> read_runtime(const YamlNode& node,
                                                  const SourceText& source,
                                                  DiagnosticSink& sink) {
  return RuntimeReader(source, sink).read(node);
}

std::string print_runtime(const RuntimePolicy& runtime) {
  const auto is_top = [](const RuntimePatch& patch) {
    return patch.layer_glob == "*";
  };
  const bool has_top =
      !runtime.patches.empty() && is_top(runtime.patches.front());
  std::string out =
      "runtime:\n" +
      patch_text(runtime, has_top ? runtime.patches.front() : RuntimePatch{},
                 true, "  ");
  std::string layers;
  for (std::size_t i = has_top ? 1 : 0; i < runtime.patches.size(); ++i) {
    const RuntimePatch& patch = runtime.patches[i];
    const std::string text = patch_text(runtime, patch, false, "      ");
    layers += "    " + quoted_yaml(patch.layer_glob) + ':' +
              (text.empty() ? " {}\n" : '\n' + text);
  }
  return out + (layers.empty() ? "" : "  layers:\n" + layers);
}

}  // namespace attnguard
