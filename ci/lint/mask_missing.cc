// mask-missing: self-attention of a causal model has a mask.
#include <algorithm>

#include "ci/lint/rule.h"

namespace attnguard::lint {
namespace {

bool contains_any(const std::string& text,
                  std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != text.npos;
  });
}

bool is_cache_input(const std::string& name) {
  return contains_any(name, {"past", "cache"});
}

// Inputs called past_key_values.* or like it, and outputs to go with them.
bool has_cache(const Graph& main) {
  return std::any_of(main.inputs.begin(), main.inputs.end(), is_cache_input) &&
         std::any_of(main.outputs.begin(), main.outputs.end(),
                     [](const std::string& name) {
                       return contains_any(name, {"present", "cache"});
                     });
}

// One new token at a time sees the whole cache and needs no mask.
bool takes_one_token(const Graph& main) {
  for (const std::string& input : main.inputs) {
    const ValueType* type = main.type(input);
    if (type == nullptr || !type->dims || contains_any(input, {"mask"}))
      continue;
    const bool tokens = (type->type == kInt64 || type->type == kInt32) &&
                        type->dims->size() == 2;
    if (tokens && type->dims->back() == 1) return true;
  }
  return false;
}

bool keys_come_from_cache(const Attention& attention) {
  const auto roots = sequence_roots(*attention.node->graph, attention.key);
  if (std::any_of(roots.begin(), roots.end(), is_cache_input)) return true;
  // A fused node appends to the cache itself.
  return attention.fused &&
         std::any_of(attention.node->inputs.begin(),
                     attention.node->inputs.end(), is_cache_input);
}

bool fused_is_causal(const Node& node) {
  if (node.is_any({"GroupQueryAttention", "SparseAttention",
                   "DecoderMaskedMultiHeadAttention"}))
    return true;
  return node.integer("is_causal").value_or(0) != 0 ||
         node.integer("unidirectional").value_or(0) != 0 ||
         (!node.domain.empty() &&
          !node.input(node.is("MultiHeadAttention") ? 4 : 3).empty());
}

struct Layer {
  const Seen* seen = nullptr;
  bool self = false;
  bool masked = false;
};

// Layers of the encoder: the keys of cross-attention depend on them.
std::set<const Node*> feeding_cross_attention(
    const std::vector<Layer>& layers) {
  std::set<const Node*> made;
  for (const Layer& layer : layers)
    if (!layer.self && !layer.seen->attention.key.empty())
      made.merge(ancestors(*layer.seen->attention.node->graph,
                           layer.seen->attention.key));
  return made;
}

void accuse(const Attention& attention, const std::string& why,
            std::vector<Finding>& findings) {
  findings.push_back(
      {kMaskMissing.id, attention.node->name,
       "self-attention without any mask, in a model " + why +
           ": each query sees all keys, the later ones too",
       attention.fused
           ? "set is_causal (unidirectional), or give it a mask"
           : "add the causal mask to the scores before the Softmax"});
}

void judge_mask_missing(const Model& model, std::span<const Seen> seen,
                        std::vector<Finding>& findings) {
  if (model.graphs.empty() || takes_one_token(*model.graphs[0])) return;
  const bool cache = has_cache(*model.graphs[0]);
  std::vector<Layer> layers;
  std::set<const Node*> masked;
  std::size_t bare = 0;
  for (const Seen& one : seen) {
    const Attention& attention = one.attention;
    Layer layer{
        &one, is_self_attention(attention),
        one.masked || (attention.fused && fused_is_causal(*attention.node))};
    if (layer.masked && layer.self) masked.insert(attention.node);
    if (!layer.masked && layer.self) ++bare;
    layers.push_back(layer);
  }
  const std::set<const Node*> encoder = feeding_cross_attention(layers);
  for (const Layer& layer : layers) {
    const Attention& attention = layer.seen->attention;
    if (!layer.self || layer.masked || encoder.contains(attention.node))
      continue;
    if (cache && keys_come_from_cache(attention)) {
      accuse(attention,
             "with a causal cache (" +
                 *std::find_if(model.graphs[0]->inputs.begin(),
                               model.graphs[0]->inputs.end(), is_cache_input) +
                 ")",
             findings);
      continue;
    }
    // A tower of its own, such as for images, stands before all masked layers.
    const auto before =
        ancestors(*attention.node->graph, attention.node->input(0));
    const bool between =
        std::any_of(masked.begin(), masked.end(),
                    [&](const Node* node) { return before.contains(node); });
    if (!masked.empty() && (between || bare == 1))
      accuse(attention,
             "whose other layers have one (" + (*masked.begin())->name + ")",
             findings);
  }
}

}  // namespace

const Rule kMaskMissing = {
    .id = "mask-missing",
    .summary = "self-attention of a causal model has a mask",
    .explanation =
        R"(mask-missing: self-attention of a causal model has a mask

What it sees
  Self-attention whose scores go to the Softmax with nothing added and nothing
  replaced, where the model has a cache (inputs past_key_values.*, outputs
  present.*) that its keys come from, or where other layers have a mask.
  Cross-attention (query and key come from unlike sequences), encoders, towers
  that stand before all masked layers, and models that take one token at a time
  are no findings.

What it looks like
  Prefill lets each token read the later ones; token by token it cannot, so that
  prefill and decoding disagree.

Fix
  Add the causal mask, or set is_causal or unidirectional of a fused node.
)",
    .all = judge_mask_missing};

}  // namespace attnguard::lint
