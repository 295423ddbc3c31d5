#include "guard/probe/plan.h"

namespace attnguard {
namespace {

const ValueBlock* find_block(const PlannedCall& call, const std::string& name) {
  for (const ValueBlock& block : call.blocks)
    if (block.values->name() == name) return &block;
  return nullptr;
}

Ticket append_block(PlannedCall& call, int index,
                    const ValuePatternPtr& values) {
  const Ticket ticket{index, call.used_columns};
  call.blocks.push_back({values, call.used_columns});
  call.used_columns += values->columns();
  return ticket;
}

}  // namespace

std::string PlannedCall::name() const {
  std::string text = scores->name();
  for (const ValueBlock& block : blocks) {
    text += &block == &blocks.front() ? ": " : ", ";
    text += block.values->name();
  }
  if (mode.repeat > 0) text += " (repeat " + std::to_string(mode.repeat) + ")";
  if (mode.unused == UnusedFill::kLarge) text += " (unused slots large)";
  if (mode.unused == UnusedFill::kNan) text += " (unused slots NaN)";
  if (mode.ask_lse) text += " (with LSE)";
  if (mode.ask_weights) text += " (with weights)";
  if (mode.append > 0)
    text += " (" + std::to_string(mode.append) + " tokens appended)";
  if (mode.problem) text += " on " + mode.problem->text();
  return text;
}

Ticket Plan::request(const ScorePatternPtr& scores,
                     const ValuePatternPtr& values, const CallMode& mode) {
  const std::string score_name = scores->name();
  const std::string value_name = values->name();
  int room = -1;
  for (int i = 0; i < static_cast<int>(calls_.size()); ++i) {
    const PlannedCall& call = calls_[static_cast<std::size_t>(i)];
    if (!(call.mode == mode) || call.scores->name() != score_name) continue;
    if (const ValueBlock* block = find_block(call, value_name))
      return {i, block->first_column};
    if (room < 0 && call.used_columns + values->columns() <= head_dim_v_)
      room = i;
  }
  if (room < 0) {
    room = static_cast<int>(calls_.size());
    calls_.push_back({.scores = scores, .blocks = {}, .mode = mode});
  }
  return append_block(calls_[static_cast<std::size_t>(room)], room, values);
}

std::vector<Ticket> Plan::request_in_every_call(const ValuePatternPtr& values) {
  std::vector<Ticket> tickets;
  for (int i = 0; i < static_cast<int>(calls_.size()); ++i) {
    PlannedCall& call = calls_[static_cast<std::size_t>(i)];
    if (call.mode.problem) continue;
    if (const ValueBlock* block = find_block(call, values->name()))
      tickets.push_back({i, block->first_column});
    else if (call.used_columns + values->columns() <= head_dim_v_)
      tickets.push_back(append_block(call, i, values));
  }
  return tickets;
}

}  // namespace attnguard
