// The one-line text form of a problem: one table row per field.
#include <algorithm>
#include <array>

#include "guard/base/text.h"
#include "guard/problem/problem.h"

namespace attnguard {
namespace {

Status not_what_is_expected(std::string_view what, std::string_view text) {
  return invalid_argument("expected " + std::string(what) + ", got '" +
                          std::string(text) + "'");
}

Status set_int(std::int64_t& field, std::string_view text) {
  const auto value = parse_int(text);
  if (!value) return not_what_is_expected("an integer", text);
  field = *value;
  return ok_status();
}

Status set_lengths(std::vector<std::int64_t>& field, std::string_view text) {
  std::vector<std::int64_t> lengths;
  for (std::string_view piece : split(text, ',')) {
    const auto value = parse_int(piece);
    if (!value)
      return not_what_is_expected(
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

Status set_strides(std::optional<Shape4>& field, std::string_view text) {
  const auto pieces = split(text, ',');
  Shape4 strides = {0, 0, 0, 0};
  if (pieces.size() != 4)
    return not_what_is_expected("four strides: batch,head,position,channel",
                                text);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto value = parse_int(pieces[i]);
    if (!value)
      return not_what_is_expected("four strides: batch,head,position,channel",
                                  text);
    strides[i] = *value;
  }
  field = strides;
  return ok_status();
}

Status set_number(std::optional<double>& field, std::string_view text) {
  const auto value = parse_double(text);
  if (!value) return not_what_is_expected("a number", text);
  field = *value;
  return ok_status();
}

Status set_numbers(std::vector<double>& field, std::string_view text) {
  std::vector<double> numbers;
  for (std::string_view piece : split(text, ',')) {
    const auto value = parse_double(piece);
    if (!value)
      return not_what_is_expected(
          "a number or comma-separated numbers, one per head", text);
    numbers.push_back(*value);
  }
  field = std::move(numbers);
  return ok_status();
}

Status set_flag(bool& field, std::string_view text) {
  if (text != "true" && text != "false")
    return not_what_is_expected("true or false", text);
  field = text == "true";
  return ok_status();
}

template <typename Choice, std::size_t kCount>
Status set_choice(Choice& field, std::string_view text, std::string_view what,
                  std::string_view (*name_of)(Choice),
                  const std::array<Choice, kCount>& choices) {
  std::vector<std::string_view> names;
  for (Choice choice : choices) {
    names.push_back(name_of(choice));
    if (text != name_of(choice)) continue;
    field = choice;
    return ok_status();
  }
  return invalid_argument("unknown " + std::string(what) + " '" +
                          std::string(text) + "'" + suggestion(text, names));
}

std::string number_text(const std::optional<double>& number) {
  return number ? format_double(*number) : "";
}

std::string strides_text(const std::optional<Shape4>& strides) {
  return strides ? join(*strides) : "";
}

constexpr std::array<ProblemField, 28> kFields = {{
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
       return set_number(p.softmax_scale, t);
     },
     [](const Problem& p) { return number_text(p.softmax_scale); }},
    {"softcap", "scores become softcap * tanh(score / softcap)",
     [](Problem& p, std::string_view t) { return set_number(p.softcap, t); },
     [](const Problem& p) { return number_text(p.softcap); }},
    {"alibi_max_bias",
     "ALiBi: -slope * distance is added to the scores; 8 gives the paper's "
     "slopes",
     [](Problem& p, std::string_view t) {
       return set_number(p.alibi_max_bias, t);
     },
     [](const Problem& p) { return number_text(p.alibi_max_bias); }},
    {"sinks",
     "logits in the denominator only: one for all heads or one per head; 0 is "
     "softmax1",
     [](Problem& p, std::string_view t) { return set_numbers(p.sinks, t); },
     [](const Problem& p) {
       std::string text;
       for (double sink : p.sinks)
         text += (text.empty() ? "" : ",") + format_double(sink);
       return text;
     }},
    {"empty_row",
     "what a row with no allowed key gives: zero, nan, mean or any",
     [](Problem& p, std::string_view t) {
       return set_choice(p.empty_row, t, "rule", empty_row_name,
                         std::array{EmptyRow::kZero, EmptyRow::kNan,
                                    EmptyRow::kMean, EmptyRow::kAny});
     },
     [](const Problem& p) {
       return p.empty_row == EmptyRow::kZero
                  ? ""
                  : std::string(empty_row_name(p.empty_row));
     }},
    {"mask", "which keys a query may attend to; see list masks",
     [](Problem& p, std::string_view t) {
       Result<Mask> mask = Mask::parse(t);
       if (!mask.ok()) return mask.status();
       p.mask = mask.value();
       return ok_status();
     },
     [](const Problem& p) { return p.mask.text(); }},
    {"mask_form",
     "how the engine is told the mask: implied, or a tensor: boolean (1 = may "
     "attend), inverted (1 = masked), additive (0 or -inf)",
     [](Problem& p, std::string_view t) {
       return set_choice(p.mask_form, t, "form", mask_form_name,
                         std::array{MaskForm::kImplied, MaskForm::kBoolean,
                                    MaskForm::kInverted, MaskForm::kAdditive});
     },
     [](const Problem& p) {
       return p.mask_form == MaskForm::kImplied
                  ? ""
                  : std::string(mask_form_name(p.mask_form));
     }},
    {"value_in_key",
     "MLA: value is the first head_dim_v channels of key (true or false)",
     [](Problem& p, std::string_view t) { return set_flag(p.value_in_key, t); },
     [](const Problem& p) {
       return std::string(p.value_in_key ? "true" : "");
     }},
    {"packed",
     "sequences lie one after another, found by cu_seqlens (true or false)",
     [](Problem& p, std::string_view t) { return set_flag(p.packed, t); },
     [](const Problem& p) { return std::string(p.packed ? "true" : ""); }},
    {"packed_padding", "unused tokens behind the last packed sequence",
     [](Problem& p, std::string_view t) {
       return set_int(p.packed_padding, t);
     },
     [](const Problem& p) {
       return p.packed_padding == 0 ? "" : std::to_string(p.packed_padding);
     }},
    {"block_size", "keys and values in blocks of so many tokens; 0: not paged",
     [](Problem& p, std::string_view t) { return set_int(p.block_size, t); },
     [](const Problem& p) {
       return p.block_size == 0 ? "" : std::to_string(p.block_size);
     }},
    {"shared_prefix",
     "tokens that every entry shares with the first, in the same blocks",
     [](Problem& p, std::string_view t) { return set_int(p.shared_prefix, t); },
     [](const Problem& p) {
       return p.shared_prefix == 0 ? "" : std::to_string(p.shared_prefix);
     }},
    {"layout", "order of the axes in memory: bhsd, bshd or sbhd",
     [](Problem& p, std::string_view t) {
       return set_choice(
           p.layout, t, "layout", layout_name,
           std::array{Layout::kBhsd, Layout::kBshd, Layout::kSbhd});
     },
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
