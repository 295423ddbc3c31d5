#include "guard/policy/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <sstream>
#include <utility>

namespace attnguard {
namespace {

constexpr std::size_t kDeepest = 32;
constexpr std::size_t kMostNodes = 500000;
constexpr std::size_t kLongestValue = 60;  // code points of a value

// Ends the parse from within an event.
struct Stop {
  std::size_t offset;
  std::string message;
};

constexpr std::string_view kAliasRefused =
    "aliases (*name) are refused: write the value out, and quote a name that "
    "begins with '*'";

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const SourceText& source, DiagnosticSink& sink)
      : source_(source), sink_(sink) {}

  std::optional<YamlNode> take_root() { return std::move(root_); }

  // " of line 3" for the innermost open [] or {}, or nothing.
  std::string bracket_place() const {
    if (open_.empty() || !open_.back()->flow) return {};
    return " of line " +
           std::to_string(source_.line_number(open_.back()->offset));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const std::size_t offset = offset_of(mark);
    if (std::string_view(source_.text()).substr(offset).starts_with("---"))
      throw Stop{offset,
                 "a second document begins here; keep one policy per file"};
    throw Stop{offset,
               "expected the end of the document here; check the indentation "
               "of this line"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    const bool tagged = refuse_tag(mark, "");
    add(tagged ? YamlNode::Kind::kRefused : YamlNode::Kind::kNull, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    sink_.error(offset_of(mark), kAliasRefused);
    add(YamlNode::Kind::kRefused, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    const bool tagged = refuse_tag(mark, tag);
    if (!quote_ends(offset_of(mark)))
      throw Stop{offset_of(mark), "the quote has no end"};
    YamlNode& node =
        add(tagged ? YamlNode::Kind::kRefused : YamlNode::Kind::kScalar, mark);
    node.quoted = tag == "!";
    node.text = value;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    open(YamlNode::Kind::kList, mark, tag, style);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t, YAML::EmitterStyle::value style) override {
    open(YamlNode::Kind::kMap, mark, tag, style);
  }
  void OnMapEnd() override { open_.pop_back(); }

  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    sink_.error(offset_of(mark), "anchors (&" + name +
                                     ") are refused: write the value out where "
                                     "it is needed");
  }

 private:
  std::size_t offset_of(const YAML::Mark& mark) const {
    return source_.offset_of(mark.line, mark.column);
  }

  // The parser takes the end of the file for a closing quote when it follows a
  // line break.
  bool quote_ends(std::size_t offset) const {
    const std::string_view text = source_.text();
    const char quote = offset < text.size() ? text[offset] : ' ';
    if (quote != '"' && quote != '\'') return true;
    for (std::size_t i = offset + 1; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\')
        ++i;
      else if (text[i] == quote && text.substr(i + 1, 1) == "'" &&
               quote == '\'')
        ++i;  // '' is a quote within quotes.
      else if (text[i] == quote)
        return true;
    }
    return false;
  }

  // "?" and "!" are what the parser says of untagged nodes; a lone "!" in the
  // text reads the same, so the text itself is looked at too.
  bool refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    const std::size_t offset = offset_of(mark);
    const bool written =
        offset < source_.text().size() && source_.text()[offset] == '!';
    if (!written && (tag.empty() || tag == "?" || tag == "!")) return false;
    sink_.error(offset, "tags (!name) are refused: remove the tag");
    return true;
  }

  YamlNode& add(YamlNode::Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kMostNodes)
      throw Stop{offset_of(mark), "the file has more than " +
                                      std::to_string(kMostNodes) +
                                      " values; split it"};
    YamlNode* node = nullptr;
    if (open_.empty()) {
      node = &root_.emplace();
    } else {
      node = &open_.back()->children.emplace_back();
    }
    node->kind = kind;
    node->offset = offset_of(mark);
    return *node;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::EmitterStyle::value style) {
    if (open_.size() >= kDeepest)
      throw Stop{offset_of(mark), "lists and maps are nested more than " +
                                      std::to_string(kDeepest) +
                                      " deep; a policy needs five levels"};
    refuse_tag(mark, tag);
    YamlNode& node = add(kind, mark);
    node.flow = style == YAML::EmitterStyle::Flow;
    open_.push_back(&node);
  }

  const SourceText& source_;
  DiagnosticSink& sink_;
  std::optional<YamlNode> root_;
  // The path to the node that is being read. A parent gets no further child
  // while one is open, so the pointers stay good.
  std::vector<YamlNode*> open_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

struct ParserAdvice {
  std::string_view parser_message;
  std::string_view ours;
};

// What the parser's words mean for the person who wrote the file.
constexpr std::array<ParserAdvice, 13> kExplanations = {{
    {"the referenced anchor is not defined", kAliasRefused},
    {"alias not found after *", kAliasRefused},
    {"end of map not found",
     "this is not a key of the map above it; check the indentation and write "
     "'key: value' with a blank after ':'"},
    {"end of sequence not found",
     "this is not an item of the list above it; check the indentation and "
     "begin the item with '- '"},
    {"end of map flow not found", "expected ',' or '}' here, in the map"},
    {"end of sequence flow not found", "expected ',' or ']' here, in the list"},
    {"illegal flow end", "nothing is open that this bracket could close"},
    {"illegal map value",
     "a ':' cannot stand here; check the indentation, and quote a value that "
     "contains ': '"},
    {"illegal map key", "a key cannot stand here; check the indentation"},
    {"illegal block entry",
     "a '- ' item cannot stand here; begin the list on a line of its own"},
    {"illegal EOF in scalar", "the quote has no end"},
    {"illegal tab when looking for indentation",
     "a tab cannot indent YAML; use blanks"},
    {"bad file", "lists and maps are nested too deep"},
}};

// `bracket` is the builder's bracket_place().
void report_syntax(const SourceText& source, const YAML::Exception& error,
                   const std::string& bracket, DiagnosticSink& sink) {
  const std::size_t offset =
      source.offset_of(error.mark.line, error.mark.column);
  const std::string_view line = source.line_at(offset);
  const std::size_t tab = line.find_first_not_of(' ');
  if (tab != std::string_view::npos && line[tab] == '\t') {
    sink.error(
        static_cast<std::size_t>(line.data() - source.text().data()) + tab,
        "a tab cannot indent YAML; use blanks");
    return;
  }
  for (const ParserAdvice& explanation : kExplanations) {
    if (error.msg != explanation.parser_message) continue;
    const bool in_brackets = explanation.ours.starts_with("expected ','");
    sink.error(offset,
               std::string(explanation.ours) + (in_brackets ? bracket : ""));
    return;
  }
  sink.error(offset, "YAML syntax: " + error.msg);
}

}  // namespace

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
    case YamlNode::Kind::kRefused:
      break;
  }
  return "'" + visible_text(node.text, kLongestValue) + "'";
}

std::optional<YamlNode> read_yaml(const SourceText& source,
                                  DiagnosticSink& sink) {
  std::istringstream stream(source.text());
  TreeBuilder builder(source, sink);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop& stop) {
    sink.error(stop.offset, stop.message);
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    report_syntax(source, error, builder.bracket_place(), sink);
    return std::nullopt;
  }
  return builder.take_root();
}

}  // namespace attnguard
