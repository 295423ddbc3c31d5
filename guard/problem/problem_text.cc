// The one-line text form of a problem: one table row per field.
#include <algorithm>
#include <array>

#include "guard/base/text.h"
#include "guard/problem/problem.h"

namespace attnguard {
namespace {

Status expected(std::string_view what, std::string_view text) {
  return invalid_argument("expected " + std::string(what) + ", got '" +
                          std::string(text) + "'");
}

Status set_int(std::int64_t& field, std::string_view text) {
  const auto value = parse_int(text);
  if (!value) return expected("an integer", text);
  field = *value;
  return ok_status();
}

Status set_lengths(std::vector<std::int64_t>& field, std::string_view text) {
  std::vector<std::int64_t> lengths;
  for (std::string_view piece : split(text, ',')) {
    const auto value = parse_int(piece);
    if (!value)
      return expected(
          "a length or comma-separated lengths, one per batch "
          "entry",
          text);
    lengths.push_back(*value);
  }
  field = std::move(lengths);
  return ok_status();
}

std::string join(const auto& numbers) {
  std::string text;
  for (std::int64_t number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

Status set_dtype(Dtype& field, std::string_view text) {
  const auto dtype = parse_dtype(text);
  if (!dtype) {
    std::vector<std::string_view> names;
    for (const DtypeInfo& info : all_dtypes()) names.push_back(info.name);
    return invalid_argument("unknown dtype '" + std::string(text) + "'" +
                            suggestion(text, names));
  }
  field = *dtype;
  return ok_status();
}

Status set_layout(Layout& field, std::string_view text) {
  std::vector<std::string_view> names;
  for (Layout layout : {Layout::kBhsd, Layout::kBshd, Layout::kSbhd}) {
    names.push_back(layout_name(layout));
    if (text != layout_name(layout)) continue;
    field = layout;
    return ok_status();
  }
  return invalid_argument("unknown layout '" + std::string(text) + "'" +
                          suggestion(text, names));
}

Status set_strides(std::optional<Shape4>& field, std::string_view text) {
  const auto pieces = split(text, ',');
  Shape4 strides = {0, 0, 0, 0};
  if (pieces.size() != 4)
    return expected("four strides: batch,head,position,channel", text);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto value = parse_int(pieces[i]);
    if (!value)
      return expected("four strides: batch,head,position,channel", text);
    strides[i] = *value;
  }
  field = strides;
  return ok_status();
}

std::string strides_text(const std::optional<Shape4>& strides) {
  return strides ? join(*strides) : "";
}

constexpr std::array<ProblemField, 18> kFields = {{
    {"batch", "number of batch entries",
     [](Problem& p, std::string_view t) { return set_int(p.batch, t); },
     [](const Problem& p) { return std::to_string(p.batch); }},
    {"num_heads", "number of query heads",
     [](Problem& p, std::string_view t) { return set_int(p.num_heads, t); },
     [](const Problem& p) { return std::to_string(p.num_heads); }},
    {"num_kv_heads", "number of key/value heads; divides num_heads",
     [](Problem& p, std::string_view t) { return set_int(p.num_kv_heads, t); },
     [](const Problem& p) { return std::to_string(p.num_kv_heads); }},
    {"seq_len_q", "queries per sequence: one length, or one per batch entry",
     [](Problem& p, std::string_view t) { return set_lengths(p.seq_len_q, t); },
     [](const Problem& p) { return join(p.seq_len_q); }},
    {"seq_len_kv", "keys per sequence: one length, or one per batch entry",
     [](Problem& p, std::string_view t) {
       return set_lengths(p.seq_len_kv, t);
     },
     [](const Problem& p) { return join(p.seq_len_kv); }},
    {"seq_len", "shorthand: seq_len_q and seq_len_kv",
     [](Problem& p, std::string_view t) {
       Status status = set_lengths(p.seq_len_q, t);
       if (status.ok()) p.seq_len_kv = p.seq_len_q;
       return status;
     },
     nullptr},
    {"head_dim_qk", "channels of query and key",
     [](Problem& p, std::string_view t) { return set_int(p.head_dim_qk, t); },
     [](const Problem& p) { return std::to_string(p.head_dim_qk); }},
    {"head_dim_v", "channels of value and output",
     [](Problem& p, std::string_view t) { return set_int(p.head_dim_v, t); },
     [](const Problem& p) { return std::to_string(p.head_dim_v); }},
    {"head_dim", "shorthand: head_dim_qk and head_dim_v",
     [](Problem& p, std::string_view t) {
       Status status = set_int(p.head_dim_qk, t);
       if (status.ok()) p.head_dim_v = p.head_dim_qk;
       return status;
     },
     nullptr},
    {"dtype", "element type of query, key and value",
     [](Problem& p, std::string_view t) { return set_dtype(p.dtype, t); },
     [](const Problem& p) { return std::string(dtype_name(p.dtype)); }},
    {"out_dtype", "element type of the output; default: dtype",
     [](Problem& p, std::string_view t) {
       Dtype dtype = p.dtype;
       Status status = set_dtype(dtype, t);
       if (status.ok()) p.out_dtype = dtype;
       return status;
     },
     [](const Problem& p) {
       return p.out_dtype ? std::string(dtype_name(*p.out_dtype)) : "";
     }},
    {"softmax_scale", "factor on the scores; default: 1/sqrt(head_dim_qk)",
     [](Problem& p, std::string_view t) {
       const auto value = parse_double(t);
       if (!value) return expected("a number", t);
       p.softmax_scale = *value;
       return ok_status();
     },
     [](const Problem& p) {
       return p.softmax_scale ? format_double(*p.softmax_scale) : "";
     }},
    {"mask", "which keys a query may attend to; see list masks",
     [](Problem& p, std::string_view t) {
       Result<Mask> mask = Mask::parse(t);
       if (!mask.ok()) return mask.status();
       p.mask = mask.value();
       return ok_status();
     },
     [](const Problem& p) { return p.mask.text(); }},
    {"layout", "order of the axes in memory: bhsd, bshd or sbhd",
     [](Problem& p, std::string_view t) { return set_layout(p.layout, t); },
     [](const Problem& p) {
       return p.layout == Layout::kBhsd ? ""
                                        : std::string(layout_name(p.layout));
     }},
    {"query_strides", "element strides batch,head,position,channel",
     [](Problem& p, std::string_view t) {
       return set_strides(p.query_strides, t);
     },
     [](const Problem& p) { return strides_text(p.query_strides); }},
    {"key_strides", "element strides batch,head,position,channel",
     [](Problem& p, std::string_view t) {
       return set_strides(p.key_strides, t);
     },
     [](const Problem& p) { return strides_text(p.key_strides); }},
    {"value_strides", "element strides batch,head,position,channel",
     [](Problem& p, std::string_view t) {
       return set_strides(p.value_strides, t);
     },
     [](const Problem& p) { return strides_text(p.value_strides); }},
    {"output_strides", "element strides batch,head,position,channel",
     [](Problem& p, std::string_view t) {
       return set_strides(p.output_strides, t);
     },
     [](const Problem& p) { return strides_text(p.output_strides); }},
}};

// True when `name` is a shorthand that sets `field`: seq_len and seq_len_q.
bool is_part_of(std::string_view field, std::string_view name) {
  return field.size() > name.size() && field.substr(0, name.size()) == name &&
         field[name.size()] == '_' && find_problem_field(name) != nullptr &&
         find_problem_field(name)->get == nullptr;
}

// Blanks separate fields, except inside the parentheses of a mask.
std::vector<std::string_view> fields_of(std::string& line) {
  for (char& c : line)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  std::vector<std::string_view> pieces;
  for (std::string_view piece : split(line, ' '))
    if (!piece.empty()) pieces.push_back(piece);
  return pieces;
}

}  // namespace

std::span<const ProblemField> all_problem_fields() { return kFields; }

const ProblemField* find_problem_field(std::string_view name) {
  for (const ProblemField& field : kFields)
    if (field.name == name) return &field;
  return nullptr;
}

std::string Problem::text() const {
  std::string line;
  for (const ProblemField& field : kFields) {
    if (field.get == nullptr) continue;
    const std::string value = field.get(*this);
    if (value.empty()) continue;
    if (!line.empty()) line += ' ';
    line += std::string(field.name) + '=' + value;
  }
  return line;
}

Result<Problem> Problem::parse(std::string_view text) {
  std::string line(text);
  Problem problem;
  std::vector<std::string_view> seen;
  std::vector<std::string_view> names;
  for (const ProblemField& field : kFields) names.push_back(field.name);
  for (std::string_view piece : fields_of(line)) {
    const auto equals = piece.find('=');
    const std::string_view name = piece.substr(0, equals);
    if (equals == std::string_view::npos)
      return invalid_argument("problem: expected name=value, got '" +
                              std::string(piece) + "'");
    const ProblemField* field = find_problem_field(name);
    if (field == nullptr)
      return invalid_argument("problem: unknown field '" + std::string(name) +
                              "'" + suggestion(name, names));
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return invalid_argument("problem: field '" + std::string(name) +
                              "' is given twice");
    for (std::string_view other : seen)
      if (is_part_of(other, name) || is_part_of(name, other))
        return invalid_argument("problem: '" + std::string(other) + "' and '" +
                                std::string(name) +
                                "' set the same field; keep one");
    seen.push_back(name);
    if (Status status = field->set(problem, piece.substr(equals + 1));
        !status.ok())
      return invalid_argument("problem: " + std::string(name) + ": " +
                              status.message());
  }
  if (seen.empty())
    return invalid_argument(
        "problem: the line is empty; give fields such as "
        "'num_heads=2 seq_len=16 mask=causal_top_left'");
  if (std::find(seen.begin(), seen.end(), "num_kv_heads") == seen.end())
    problem.num_kv_heads = problem.num_heads;
  if (Status status = problem.validate(); !status.ok())
    return invalid_argument("problem: " + status.message());
  return problem;
}

}  // namespace attnguard
