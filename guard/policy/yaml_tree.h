// YAML as a small tree that keeps what a schema needs to explain an error:
// the place of every node, duplicate keys, quoting, and the order of keys.
//
// It is built from parser events rather than from a ready-made node graph,
// since in such a graph duplicates have vanished and anchors have become
// shared nodes, even cycles. Anchors, aliases and tags are refused here, and
// depth and size are limited, so a hostile file ends in an error.
#ifndef ATTNGUARD_GUARD_POLICY_YAML_TREE_H_
#define ATTNGUARD_GUARD_POLICY_YAML_TREE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "guard/policy/source_text.h"

namespace attnguard {

struct YamlNode {
  enum class Kind {
    kNull,     // Nothing, ~ or null.
    kScalar,   // `text`
    kList,     // `children`
    kMap,      // `children`: key, value, key, value ...
    kRefused,  // Already reported: later stages pass over it.
  };

  Kind kind = Kind::kNull;
  bool quoted = false;  // In quotes, or a block of text.
  bool flow = false;    // A list in [] or a map in {}.
  std::size_t offset = 0;
  std::string text;
  std::vector<YamlNode> children;
};

// "a list", "a map", "nothing", "'text'": for "expected x, got y".
std::string describe(const YamlNode& node);

// The one document of the source. nullopt when there is none or its syntax is
// wrong; the sink then says why. Errors may be reported beside a tree.
std::optional<YamlNode> read_yaml(const SourceText& source,
                                  DiagnosticSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_YAML_TREE_H_
