#include "adapters/llama_cpp/live/call_builder.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace attnguard::llama_cpp {
namespace {

const Mask& causal_mask() {
  static const Mask mask = Mask::parse("causal_bottom_right").value();
  return mask;
}

const Mask& full_mask() {
  static const Mask mask;
  return mask;
}

// Rows between two streams; 0: they are no whole number, or too many for a
// table of 32 bits.
std::int64_t rows_per_stream(const Place& place) {
  if (place.shape[0] == 1) return std::max<std::int64_t>(place.shape[2], 1);
  if (place.bytes[2] == 0 || place.bytes[0] % place.bytes[2] != 0) return 0;
  const std::int64_t rows = place.bytes[0] / place.bytes[2];
  return rows * place.shape[0] < std::numeric_limits<std::int32_t>::max() ? rows
                                                                          : 0;
}

ConstTensorView direct_view(const Place& place) {
  const Dtype dtype = place.dtype().value_or(Dtype::kFp32);
  ConstTensorView view = {place.data, dtype, place.shape, {}};
  for (std::size_t i = 0; i < 4; ++i)
    view.strides[i] =
        place.bytes[i] / static_cast<std::int64_t>(dtype_size(dtype));
  return view;
}

TensorView writable(const ConstTensorView& view) {
  return {const_cast<std::byte*>(view.data), view.dtype, view.shape,
          view.strides, view.tokens};
}

}  // namespace

CallBuilder::Entry& CallBuilder::entry_of(std::int32_t sequence) {
  for (std::size_t i = 0; i < num_entries_; ++i)
    if (entries_[i].sequence == sequence) return entries_[i];
  if (num_entries_ == entries_.size()) entries_.emplace_back();
  Entry& entry = entries_[num_entries_++];
  entry.sequence = sequence;
  entry.rows.clear();
  return entry;
}

std::string_view CallBuilder::collect(const AttentionNode& node,
                                      std::span<const Token> rows,
                                      const CellLedger& ledger) {
  num_entries_ = 0;
  const std::int64_t per_stream = node.query.shape[2];
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto index = static_cast<std::int64_t>(r);
    if (ledger.streams() > 1 && ledger.stream_of(rows[r].sequence) !=
                                    node.first_stream + index / per_stream)
      return "rows are not in the streams of their sequences";
    entry_of(rows[r].sequence).rows.push_back({index, rows[r].position});
  }
  for (std::size_t i = 0; i < num_entries_; ++i) {
    Entry& entry = entries_[i];
    const auto earlier = [](const Row& a, const Row& b) {
      return a.position < b.position;
    };
    if (!std::is_sorted(entry.rows.begin(), entry.rows.end(), earlier))
      std::sort(entry.rows.begin(), entry.rows.end(), earlier);
    ledger.cells_of(entry.sequence, node.key.shape[2], entry.cells);
    if (entry.cells.empty()) return "a sequence has no keys";
  }
  return {};
}

// The rows are the last tokens of the keys, one for one.
bool CallBuilder::rows_are_last(const Entry& entry) const {
  if (entry.rows.size() > entry.cells.size()) return false;
  const std::size_t first = entry.cells.size() - entry.rows.size();
  for (std::size_t i = 0; i < entry.rows.size(); ++i)
    if (entry.cells[first + i].position != entry.rows[i].position) return false;
  for (std::size_t i = 1; i < entry.cells.size(); ++i)
    if (entry.cells[i].position == entry.cells[i - 1].position) return false;
  return true;
}

void CallBuilder::fill_problem(const AttentionNode& node,
                               const LayerRule& rule) {
  problem_.num_heads = node.query.shape[1];
  problem_.num_kv_heads = node.key.shape[1];
  problem_.head_dim_qk = node.query.shape[3];
  problem_.head_dim_v = node.value.shape[3];
  problem_.dtype = Dtype::kFp32;
  problem_.out_dtype = Dtype::kFp32;
  problem_.softmax_scale = rule.softmax_scale.value_or(node.scale);
  problem_.softcap.reset();
  if (node.softcap != 0) problem_.softcap = node.softcap;
  problem_.alibi_max_bias.reset();
  if (node.max_bias != 0) problem_.alibi_max_bias = node.max_bias;
  problem_.sinks.clear();
  if (node.sinks != nullptr)
    problem_.sinks.assign(node.sinks, node.sinks + problem_.num_heads);
  problem_.empty_row = EmptyRow::kAny;
  call_ = {};
  call_.problem = &problem_;
}

// The rows of an entry in the order of its tokens, by a table of their places.
template <typename IndexOf>
std::string_view CallBuilder::map_rows(const Place& place, bool queries,
                                       IndexOf index_of, Side& side,
                                       ConstTensorView& view) {
  const std::int64_t stride = rows_per_stream(place);
  if (stride == 0) return "streams lie in a way that is not known here";
  const std::int64_t width =
      queries ? problem_.max_len_q() : problem_.max_len_kv();
  side.map.block_size = 1;
  side.map.width = width;
  side.map.table.assign(num_entries_ * static_cast<std::size_t>(width), 0);
  for (std::size_t b = 0; b < num_entries_; ++b) {
    const std::size_t count =
        queries ? entries_[b].rows.size() : entries_[b].cells.size();
    for (std::size_t i = 0; i < count; ++i)
      side.map.table[b * static_cast<std::size_t>(width) + i] =
          static_cast<std::int32_t>(index_of(entries_[b], i, stride));
  }
  view = direct_view(place);
  view.shape[0] = static_cast<std::int64_t>(num_entries_);
  view.shape[2] = width;
  view.tokens = &side.map;
  if (place.dtype())
    view.strides[0] = view.strides[2];
  else
    decode_rows(place, side, view);
  return {};
}

// A copy [entry, head, position, channel] of the rows that the table names.
void CallBuilder::decode_rows(const Place& place, Side& side,
                              ConstTensorView& view) {
  const Shape4 shape = view.shape;
  view.dtype = Dtype::kFp32;
  view.strides = contiguous_strides(shape);
  side.decoded.resize(static_cast<std::size_t>(shape[0] * view.strides[0]));
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t i = 0; i < problem_.len_kv(b); ++i) {
        const std::int64_t row =
            view.tokens != nullptr ? view.tokens->block(b, i) : i;
        const std::int64_t stream = view.tokens != nullptr ? 0 : b;
        decode_row(place.type, place.at(stream, h, row), shape[3],
                   side.decoded.data() + b * view.strides[0] +
                       h * view.strides[1] + i * view.strides[2]);
      }
  view.data = reinterpret_cast<const std::byte*>(side.decoded.data());
  view.tokens = nullptr;
}

std::string_view CallBuilder::build(const AttentionNode& node,
                                    std::span<const Token> rows,
                                    const CellLedger& ledger,
                                    const LayerRule& rule,
                                    std::uint64_t first_sequence_id) {
  by_mask_ = false;
  rule_ = rule;
  if (std::string_view why = collect(node, rows, ledger); !why.empty())
    return why;
  fill_problem(node, rule);
  problem_.batch = static_cast<std::int64_t>(num_entries_);
  problem_.seq_len_q.clear();
  problem_.seq_len_kv.clear();
  sequence_ids_.clear();
  plain_ = rule.window == 0;
  from_zero_ = true;
  bool without_gaps = true;
  for (std::size_t b = 0; b < num_entries_; ++b) {
    const Entry& entry = entries_[b];
    const auto keys = static_cast<std::int64_t>(entry.cells.size());
    problem_.seq_len_q.push_back(static_cast<std::int64_t>(entry.rows.size()));
    problem_.seq_len_kv.push_back(keys);
    sequence_ids_.push_back(first_sequence_id +
                            static_cast<std::uint64_t>(entry.sequence));
    if (rule.causal && !rows_are_last(entry)) plain_ = false;
    const std::int64_t first = entry.cells.front().position;
    const std::int64_t last = entry.cells.back().position;
    if (last - first + 1 != keys) without_gaps = false;
    if (first != 0 || last + 1 != keys) from_zero_ = false;
  }
  problem_.mask = rule.causal ? causal_mask() : full_mask();
  if (node.max_bias != 0 && !(plain_ && without_gaps && rule.causal))
    return "ALiBi over positions with gaps";

  const auto row_index = [&](const Entry& entry, std::size_t i,
                             std::int64_t stride) {
    const std::int64_t per_stream = node.query.shape[2];
    return entry.rows[i].index / per_stream * stride +
           entry.rows[i].index % per_stream;
  };
  const auto cell_index = [&](const Entry& entry, std::size_t i,
                              std::int64_t stride) {
    const std::int64_t cells = ledger.cells_per_stream();
    return (entry.cells[i].index / cells - node.first_stream) * stride +
           entry.cells[i].index % cells;
  };
  ConstTensorView output;
  for (const std::string_view why :
       {map_rows(node.query, true, row_index, query_, call_.query),
        map_rows(node.key, false, cell_index, key_, call_.key),
        map_rows(node.value, false, cell_index, value_, call_.value),
        map_rows(node.output, true, row_index, output_, output)})
    if (!why.empty()) return why;
  call_.output = writable(output);
  return {};
}

std::string_view CallBuilder::build_from_mask(const AttentionNode& node,
                                              const LayerRule& rule) {
  by_mask_ = true;
  plain_ = from_zero_ = false;
  mask_ = node.mask;
  if (node.max_bias != 0) return "ALiBi, and nobody says which sequences";
  if (node.mask.data != nullptr && !node.mask.dtype())
    return "a mask of a type that is not known here";
  fill_problem(node, rule);
  problem_.batch = node.query.shape[0];
  problem_.seq_len_q.assign(1, node.query.shape[2]);
  problem_.seq_len_kv.assign(1, node.key.shape[2]);
  problem_.mask = full_mask();
  call_.query = direct_view(node.query);
  call_.output = writable(direct_view(node.output));
  for (const auto& [place, side, view] :
       {std::tuple(&node.key, &key_, &call_.key),
        std::tuple(&node.value, &value_, &call_.value)}) {
    *view = direct_view(*place);
    if (!place->dtype()) decode_rows(*place, *side, *view);
  }
  return {};
}

CallBuilder::RowOfCall CallBuilder::row_of_call(std::int64_t ubatch_row) const {
  if (by_mask_) return {};
  for (std::size_t b = 0; b < num_entries_; ++b) {
    const std::vector<Row>& rows = entries_[b].rows;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].index == ubatch_row)
        return {static_cast<std::int64_t>(b), static_cast<std::int64_t>(i)};
  }
  return {};
}

ObserveContext CallBuilder::context() const {
  ObserveContext context;
  if (from_zero_ && plain_) context.sequences = sequence_ids_.data();
  if (!plain_) context.mask = this;
  return context;
}

void CallBuilder::allowed_by_mask(const RowPlace& row, KeyRanges& out) const {
  if (mask_.data == nullptr) return out.append(0, row.seq_len_kv);
  const std::int64_t stream = mask_.shape[0] == 1 ? 0 : row.batch;
  for (std::int64_t j = 0; j < row.seq_len_kv; ++j) {
    double element = 0;
    decode(*mask_.dtype(), mask_.at(stream, 0, row.q_index, j), 1, 1, &element);
    if (element == 0) out.append(j, j + 1);
  }
}

void CallBuilder::allowed(const RowPlace& row, KeyRanges& out) const {
  out.clear();
  if (by_mask_) return allowed_by_mask(row, out);
  const Entry& entry = entries_[static_cast<std::size_t>(row.batch)];
  const std::int32_t query =
      entry.rows[static_cast<std::size_t>(row.q_index)].position;
  for (std::size_t j = 0; j < entry.cells.size(); ++j)
    if (rule_.sees(query, entry.cells[j].position))
      out.append(static_cast<std::int64_t>(j),
                 static_cast<std::int64_t>(j) + 1);
}

}  // namespace attnguard::llama_cpp
