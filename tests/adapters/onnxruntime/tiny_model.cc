#include "tests/adapters/onnxruntime/tiny_model.h"

#include <cmath>
#include <limits>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

using lint_test::Attributes;
using lint_test::Builder;
using lint_test::Dims;
using lint_test::kBool;
using lint_test::kFloat;
using lint_test::kHalf;
using lint_test::kInt64;
using lint_test::Value;

constexpr int kInt32 = 6;
constexpr std::int64_t kPast = -4, kTotal = -5;  // Symbolic lengths.

// Writes one model; members are what its layers share.
class OnnxWriter {
 public:
  explicit OnnxWriter(const TinyModel& model)
      : b(model.attention == TinyModel::Attention::kOperator ? 23 : 17),
        m_(model) {}

  void write() {
    if (m_.attention == TinyModel::Attention::kGroupQuery)
      b.import_domain("com.microsoft");
    tokens_ = b.input(m_.tokens_name, {m_.batch, m_.length}, m_.ids);
    if (m_.attention_mask)
      padding_ = b.input("attention_mask", {m_.batch, kTotal}, kInt64);
    if (m_.position_ids)
      places_ = b.input("position_ids", {m_.batch, m_.length}, kInt64);
    add_caches();
    add_lengths();
    add_mask();
    const Value table = matrix(TinyModel::kVocabulary, TinyModel::kWidth, 1);
    Value x = b.op("Gather", {table, tokens_});
    x = b.op("Add",
             {x, b.op("Gather",
                      {matrix(TinyModel::kPositions, TinyModel::kWidth, 0.3),
                       m_.position_ids ? places_ : queries_})});
    for (std::int64_t layer = 0; layer < TinyModel::kLayers; ++layer)
      x = add_layer(x, layer);
    const Value out =
        m_.tied ? b.op("Transpose", {table}, {{"perm", Dims{1, 0}}})
                : matrix(TinyModel::kWidth, TinyModel::kVocabulary, 0.5);
    Value logits = b.op("MatMul", {norm(x), out});
    if (m_.logits == kHalf)
      logits = b.op("Cast", {logits}, {{"to", std::int64_t{kHalf}}});
    b.output(logits, m_.logits_name,
             {m_.batch, m_.length, TinyModel::kVocabulary}, m_.logits);
  }

  Builder b;

 private:
  Value matrix(std::int64_t rows, std::int64_t columns, double sigma) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < rows * columns; ++i)
      values.push_back(sigma * near_normal(derive_seed(m_.seed, ++drawn_)));
    return b.constant({rows, columns}, values);
  }

  Value norm(const Value& x) {
    const Value ones = b.constant({TinyModel::kWidth},
                                  std::vector<double>(TinyModel::kWidth, 1.0));
    return b.op("LayerNormalization", {x, ones}, {{"axis", std::int64_t{-1}}});
  }

  void add_caches() {
    for (std::int64_t layer = 0; layer < TinyModel::kLayers; ++layer) {
      const std::string n = std::to_string(layer);
      const Dims dims = {m_.batch, m_.kv_heads, kPast, TinyModel::kHeadDim};
      if (m_.cache == TinyModel::Cache::kTwo) {
        pasts_.push_back(b.input("past_key_values." + n + ".key", dims));
        pasts_.push_back(b.input("past_key_values." + n + ".value", dims));
      } else if (m_.cache == TinyModel::Cache::kJoined) {
        Dims joined = dims;
        joined.insert(joined.begin(), 2);
        const Value past = b.input("past_" + n, joined);
        for (std::int64_t i : {0, 1})
          pasts_.push_back(b.op("Gather", {past, b.scalar(double(i), kInt64)}));
      }
    }
  }

  // [length] positions of the queries, [total] of the keys.
  void add_lengths() {
    const Value zero = b.scalar(0, kInt64), one = b.scalar(1, kInt64);
    const Value length = b.op("Gather", {b.op("Shape", {tokens_}), one});
    Value past = zero;
    if (m_.cache != TinyModel::Cache::kNone)
      past = b.op("Gather", {b.op("Shape", {pasts_[0]}), b.scalar(2, kInt64)});
    const Value total = b.op("Add", {past, length});
    queries_ = b.op("Range", {past, total, one});
    keys_ = b.op("Range", {zero, total, one});
    if (m_.attention == TinyModel::Attention::kGroupQuery) {
      const Value sums = b.op("ReduceSum", {padding_, b.vector({1})},
                              {{"keepdims", std::int64_t{0}}});
      last_key_ = to_int32(b.op("Sub", {sums, one}));
      total_ = to_int32(total);
    }
  }
  Value to_int32(const Value& x) {
    return b.op("Cast", {x}, {{"to", std::int64_t{kInt32}}});
  }

  // allowed_: [queries, keys] or [batch, 1, queries, keys]; empty without one.
  void add_mask() {
    if (m_.attention != TinyModel::Attention::kPlain ||
        m_.fault == TinyModel::Fault::kNoMask)
      return;
    if (m_.constant_mask) {
      std::vector<double> triangle;
      for (std::int64_t i = 0; i < m_.length; ++i)
        for (std::int64_t j = 0; j < m_.length; ++j) triangle.push_back(j <= i);
      allowed_ = b.constant({m_.length, m_.length}, triangle, kBool);
      return;
    }
    Value query = b.op("Unsqueeze", {queries_, b.vector({1})});
    const Value key = b.op("Unsqueeze", {keys_, b.vector({0})});
    const Value last = m_.fault == TinyModel::Fault::kOffByOne
                           ? b.op("Add", {query, b.scalar(1, kInt64)})
                           : query;
    allowed_ = b.op("LessOrEqual", {key, last});
    if (m_.window > 0)
      allowed_ = b.op(
          "And",
          {allowed_,
           b.op("Greater", {key, b.op("Sub", {query, b.scalar(double(m_.window),
                                                              kInt64)})})});
    if (m_.attention_mask) {
      const Value tokens =
          b.op("Cast", {padding_}, {{"to", std::int64_t{kBool}}});
      allowed_ = b.op(
          "And", {allowed_, b.op("Unsqueeze", {tokens, b.vector({1, 2})})});
    }
  }

  Value heads(const Value& x, std::int64_t count) {
    const Value split =
        b.op("Reshape", {x, b.vector({0, 0, count, TinyModel::kHeadDim})});
    return b.op("Transpose", {split}, {{"perm", Dims{0, 2, 1, 3}}});
  }

  Value repeated(const Value& x) {
    const std::int64_t group = TinyModel::kHeads / m_.kv_heads;
    if (group == 1) return x;
    const Value wide = b.op("Expand", {b.op("Unsqueeze", {x, b.vector({2})}),
                                       b.vector({1, 1, group, 1, 1})});
    return b.op(
        "Reshape",
        {wide, b.vector({0, TinyModel::kHeads, -1, TinyModel::kHeadDim})});
  }

  void add_presents(std::int64_t layer, const Value& key, const Value& value) {
    const std::string n = std::to_string(layer);
    const Dims dims = {m_.batch, m_.kv_heads, kTotal, TinyModel::kHeadDim};
    if (m_.cache == TinyModel::Cache::kTwo) {
      b.output(key, "present." + n + ".key", dims);
      b.output(value, "present." + n + ".value", dims);
    } else if (m_.cache == TinyModel::Cache::kJoined) {
      Dims joined = dims;
      joined.insert(joined.begin(), 2);
      const Value both = b.op("Concat",
                              {b.op("Unsqueeze", {key, b.vector({0})}),
                               b.op("Unsqueeze", {value, b.vector({0})})},
                              {{"axis", std::int64_t{0}}});
      b.output(both, "present_" + n, joined);
    }
  }

  Value past(std::int64_t layer, std::size_t which) const {
    const std::size_t at = 2 * static_cast<std::size_t>(layer) + which;
    return at < pasts_.size() ? pasts_[at] : "";
  }

  // [batch, length, width] of each head's rows.
  Value attend(const Value& q, const Value& k, const Value& v,
               std::int64_t layer) {
    if (m_.attention == TinyModel::Attention::kPlain)
      return attend_plain(heads(q, TinyModel::kHeads), heads(k, m_.kv_heads),
                          heads(v, m_.kv_heads), layer);
    std::vector<Value> out;
    if (m_.attention == TinyModel::Attention::kGroupQuery) {
      Attributes attributes = {{"num_heads", TinyModel::kHeads},
                               {"kv_num_heads", m_.kv_heads}};
      if (m_.window > 0) attributes["local_window_size"] = m_.window;
      out = b.op_outputs(
          "GroupQueryAttention",
          {q, k, v, past(layer, 0), past(layer, 1), last_key_, total_}, 3,
          attributes, "com.microsoft");
    } else {
      std::vector<Value> inputs = {q, k, v};
      if (m_.cache != TinyModel::Cache::kNone)
        inputs.insert(inputs.end(), {"", past(layer, 0), past(layer, 1)});
      out = b.op_outputs("Attention", inputs, 3,
                         {{"is_causal", std::int64_t{1}},
                          {"q_num_heads", TinyModel::kHeads},
                          {"kv_num_heads", m_.kv_heads}});
    }
    add_presents(layer, out[1], out[2]);
    return out[0];
  }

  Value attend_plain(const Value& q, Value k, Value v, std::int64_t layer) {
    if (m_.cache != TinyModel::Cache::kNone) {
      k = b.op("Concat", {past(layer, 0), k}, {{"axis", std::int64_t{2}}});
      v = b.op("Concat", {past(layer, 1), v}, {{"axis", std::int64_t{2}}});
      add_presents(layer, k, v);
    }
    const Value turned =
        b.op("Transpose", {repeated(k)}, {{"perm", Dims{0, 1, 3, 2}}});
    Value scores = b.op("Mul", {b.op("MatMul", {q, turned}),
                                b.scalar(1 / std::sqrt(TinyModel::kHeadDim))});
    if (!allowed_.empty())
      scores =
          b.op("Where", {allowed_, scores,
                         b.scalar(-std::numeric_limits<double>::infinity())});
    const std::int64_t axis =
        m_.fault == TinyModel::Fault::kQueryAxis ? -2 : -1;
    const Value weights = b.op("Softmax", {scores}, {{"axis", axis}});
    const Value rows =
        b.op("Transpose", {b.op("MatMul", {weights, repeated(v)})},
             {{"perm", Dims{0, 2, 1, 3}}});
    return b.op("Reshape", {rows, b.vector({0, 0, TinyModel::kWidth})});
  }

  Value add_layer(const Value& x, std::int64_t layer) {
    const std::int64_t kv_width = m_.kv_heads * TinyModel::kHeadDim;
    const Value in = norm(x);
    const Value q =
        b.op("MatMul", {in, matrix(TinyModel::kWidth, TinyModel::kWidth, 0.2)});
    const Value k =
        b.op("MatMul", {in, matrix(TinyModel::kWidth, kv_width, 0.2)});
    const Value v =
        b.op("MatMul", {in, matrix(TinyModel::kWidth, kv_width, 0.2)});
    const Value mixed =
        b.op("MatMul", {attend(q, k, v, layer),
                        matrix(TinyModel::kWidth, TinyModel::kWidth, 0.2)});
    const Value sum = b.op("Add", {x, mixed});
    const Value inner =
        b.op("Relu",
             {b.op("MatMul", {norm(sum), matrix(TinyModel::kWidth, 48, 0.2)})});
    return b.op(
        "Add",
        {sum, b.op("MatMul", {inner, matrix(48, TinyModel::kWidth, 0.2)})});
  }

  const TinyModel& m_;
  std::uint64_t drawn_ = 0;
  Value tokens_, padding_, places_, queries_, keys_, allowed_, last_key_,
      total_;
  std::vector<Value> pasts_;  // Key and value of each layer.
};

}  // namespace

lint_test::Builder TinyModel::build() const {
  OnnxWriter writer(*this);
  writer.write();
  return std::move(writer.b);
}

std::string TinyModel::write(const std::string& name) const {
  return build().write(name);
}

}  // namespace attnguard
