#include "tools/explanations/schedule_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/wrap.hpp"

namespace ringsim::tools {

std::string actor_name(const Schedule& schedule, Actor actor) {
  if (actor < schedule.collective.ranks) return fmt::to_string(actor);
  return fmt::format("h{}", actor - schedule.collective.ranks);
}

std::string chunks_text(const Schedule& schedule, const Region& region) {
  if (!schedule.names_regions) return format(schedule.size(region));
  const std::string letter = region.buffer == Buffer::data ? "" : std::string(to_string(region.buffer).substr(0, 1));
  if (region.count == 1) return fmt::format("{}{}", letter, region.first);
  return fmt::format("{}{}-{}", letter, region.first, region.first + region.count - 1);
}

namespace {

// If a format names no regions, prints the size.
std::string region_text(const Schedule& schedule, const Region& region) {
  return schedule.names_regions ? to_string(region) : format(schedule.size(region));
}

std::string short_text(const Schedule& schedule, const Op& op) {
  const std::string region = region_text(schedule, op.region);
  switch (op.what) {
    case Do::send:
      return fmt::format("{} -> {}", region, actor_name(schedule, op.peer));
    case Do::receive:
      return fmt::format("{} <- {}", region, actor_name(schedule, op.peer));
    case Do::receive_add:
      if (op.operand.count > 0)
        return fmt::format("{} = {} + {}", region, to_string(op.operand), actor_name(schedule, op.peer));
      return fmt::format("{} += {}", region, actor_name(schedule, op.peer));
    case Do::copy:
      return fmt::format("{} = {}", region, to_string(op.operand));
    case Do::add:
      return fmt::format("{} += {}", region, to_string(op.operand));
    case Do::compute:
      return fmt::format("compute {}", format(op.time));
  }
  fail_invariant("an operation has one of six names");
}

std::string sign_text(const Schedule& schedule, const Op& op) {
  const std::string chunks = op.what == Do::compute ? "" : chunks_text(schedule, op.region);
  switch (op.what) {
    case Do::send:
      return fmt::format("{}>{}", chunks, actor_name(schedule, op.peer));
    case Do::receive:
      return fmt::format("{}<{}", chunks, actor_name(schedule, op.peer));
    case Do::receive_add:
      if (op.operand.count > 0)
        return fmt::format("{}={}+{}", chunks, chunks_text(schedule, op.operand), actor_name(schedule, op.peer));
      return fmt::format("{}+{}", chunks, actor_name(schedule, op.peer));
    case Do::copy:
      return fmt::format("{}={}", chunks, chunks_text(schedule, op.operand));
    case Do::add:
      return fmt::format("{}+={}", chunks, chunks_text(schedule, op.operand));
    case Do::compute:
      return fmt::format("({})", format(op.time));
  }
  fail_invariant("an operation has one of six names");
}

std::string cell(const Schedule& schedule, Actor actor, Lane lane, int i) {
  if (i >= schedule.n_steps(actor, lane)) return "";
  Step step;
  schedule.step(actor, lane, i, step);
  std::string text;
  const auto add = [&](const std::string& sign) { text += (text.empty() ? "" : " ") + sign; };
  for (const Wait& wait : step.waits) add(fmt::format("@{}:{}", wait.lane, wait.steps));
  for (const Op& op : step.ops) add(sign_text(schedule, op));
  return text.empty() ? "." : text;
}

struct PictureRow {
  std::string name;
  Actor actor;
  Lane lane;
};

std::vector<PictureRow> rows_of(const Schedule& schedule, int& n_steps) {
  std::vector<PictureRow> rows;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      if (lane > 0 && schedule.n_steps(actor, lane) == 0) continue;
      n_steps = std::max(n_steps, schedule.n_steps(actor, lane));
      std::string name = actor_name(schedule, actor);
      if (schedule.lanes > 1) name += fmt::format(".{}", lane);
      rows.push_back({std::move(name), actor, lane});
    }
  }
  return rows;
}

/// The steps from `first` on that fit into the width; `first` moves past them.
std::string block(const Schedule& schedule, const std::vector<PictureRow>& rows, int n_steps, std::size_t width,
                  int& first) {
  std::vector<std::string> lines{schedule.lanes > 1 ? "rank.lane" : "rank"};
  for (const PictureRow& row : rows) lines.push_back(row.name);
  const auto pad = [&] {
    std::size_t widest = 0;
    for (const std::string& line : lines) widest = std::max(widest, line.size());
    for (std::string& line : lines) line.resize(widest, ' ');
    return widest;
  };
  pad();
  for (int from = first; first < n_steps; ++first) {
    std::vector<std::string> column{fmt::to_string(first)};
    for (const PictureRow& row : rows) column.push_back(cell(schedule, row.actor, row.lane, first));
    const auto widest = std::max_element(column.begin(), column.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (first > from && lines.front().size() + 3 + widest->size() > width) break;
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i] += " | " + column[i];
    pad();
  }
  std::string text;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string schedule_table(const Schedule& schedule) {
  std::vector<std::array<std::string, 4>> lines{
      {"actor", "lane", "step", "operations (-> sends, <- receives, += receives and adds)"}};
  Step step;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      for (int s = 0; s < schedule.n_steps(actor, lane); ++s) {
        step.clear();
        schedule.step(actor, lane, s, step);
        std::string text;
        for (const Op& op : step.ops) text += (text.empty() ? "" : ", ") + short_text(schedule, op);
        for (const Wait& wait : step.waits) text += fmt::format(" (after step {} of lane {})", wait.steps, wait.lane);
        lines.push_back({actor_name(schedule, actor), fmt::to_string(lane), fmt::to_string(s), std::move(text)});
      }
    }
  }
  std::string text;
  for (const auto& [actor, lane, number, operations] : lines)
    text += wrapped(fmt::format("{:>5}  {:>4}  {:>4}  {}", actor, lane, number, operations), 19) + '\n';
  return text;
}

std::string schedule_picture(const Schedule& schedule, std::size_t width) {
  int n_steps = 0, first = 0;
  const std::vector<PictureRow> rows = rows_of(schedule, n_steps);
  std::string text =
      "2>1: chunk 2 is sent to rank 1; 2<1: chunk 2 is received from rank 1; 2+1: it is received and added";
  if (schedule.lanes > 1) text += "; @1:3: after 3 steps of lane 1";
  text += "\n";
  do {
    text += '\n';
    text += block(schedule, rows, n_steps, width, first);  // moves `first` on
  } while (first < n_steps);
  return text;
}

}  // namespace ringsim::tools
