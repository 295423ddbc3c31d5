#include "guard/policy/suppression_reader.h"

#include <algorithm>
#include <string>

#include "guard/base/text.h"
#include "guard/policy/suppress.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

class SuppressionReader {
 public:
  SuppressionReader(const SourceText& source,
                    std::span<const std::string_view> check_ids,
                    DiagnosticSink& sink)
      : source_(source), check_ids_(check_ids), sink_(sink) {
    for (const SuppressionKeyInfo& info : suppression_keys())
      names_.push_back(info.name);
  }

  Suppression read(const YamlNode& node) {
    Suppression made;
    made.location = source_.location(node.offset);
    std::vector<std::string_view> given;
    for (const YamlEntry& entry : checked_entries(node, sink_)) {
      if (!known_name(entry, "key of a suppression", names_, sink_)) continue;
      given.push_back(entry.name);
      read_value(entry, made);
    }
    for (const SuppressionKeyInfo& info : suppression_keys())
      if (info.required && std::ranges::find(given, info.name) == given.end())
        sink_.error(node.offset,
                    "the suppression has no '" + std::string(info.name) +
                        "'; add a line '" + std::string(info.name) + ": ...'");
    return made;
  }

 private:
  void error(const YamlEntry& entry, const std::string& message) {
    sink_.error(entry.value.offset, std::string(entry.name) + ": " + message);
  }

  void read_value(const YamlEntry& entry, Suppression& made) {
    const YamlNode& node = entry.value;
    if (node.kind == YamlNode::Kind::kRefused) return;
    if (node.kind != YamlNode::Kind::kScalar || trim(node.text).empty()) {
      const bool empty = node.kind == YamlNode::Kind::kScalar;
      error(entry, "expected a text, got " +
                       (empty ? "an empty one" : describe(node)));
      return;
    }
    const auto info = std::ranges::find(suppression_keys(), entry.name,
                                        &SuppressionKeyInfo::name);
    if (info->text == nullptr) {
      made.expires = parse_date(node.text);
      if (!made.expires)
        error(entry,
              "expected a day such as 2027-03-31, got " + describe(node));
      return;
    }
    made.*(info->text) = node.text;
    if (entry.name == "check") judge_check(entry);
    if (entry.name == "kind") judge_kind(entry);
  }

  // A pattern that no check fits is a misspelt one.
  void judge_check(const YamlEntry& entry) {
    const std::string& glob = entry.value.text;
    for (std::string_view id : check_ids_)
      if (glob_match(glob, id)) return;
    error(entry,
          "no check fits " + describe(entry.value) +
              suggestion(std::string_view(glob).substr(0, 60), check_ids_));
  }

  void judge_kind(const YamlEntry& entry) {
    const auto kinds = finding_kind_names();
    const std::string& kind = entry.value.text;
    if (std::ranges::find(kinds, kind) != kinds.end()) return;
    error(entry, "unknown kind of finding " + describe(entry.value) +
                     suggestion(std::string_view(kind).substr(0, 60), kinds));
  }

  const SourceText& source_;
  std::span<const std::string_view> check_ids_;
  DiagnosticSink& sink_;
  std::vector<std::string_view> names_;
};

}  // namespace

std::vector<Suppression> read_suppressions(
    const YamlNode& node, const SourceText& source,
    std::span<const std::string_view> check_ids, DiagnosticSink& sink) {
  std::vector<Suppression> all;
  if (node.kind != YamlNode::Kind::kList) {
    if (node.kind != YamlNode::Kind::kRefused)
      sink.error(node.offset,
                 "suppressions: expected a list whose entries begin with "
                 "'- ', got " +
                     describe(node));
    return all;
  }
  SuppressionReader reader(source, check_ids, sink);
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const YamlNode& entry = node.children[i];
    if (entry.kind == YamlNode::Kind::kNull)
      sink.error(node.offset, "suppressions: entry " + std::to_string(i + 1) +
                                  " is empty; remove it");
    else if (is_map(entry, "suppressions", "check, reason and so on", sink))
      all.push_back(reader.read(entry));
  }
  return all;
}

}  // namespace attnguard
