#include "tools/explanations/hang_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/explanations/profile_text.hpp"
#include "validate/profiles/rank_ranges.hpp"
#include "validate/profiles/read.hpp"

namespace ringsim::tools {

using profiles::CallState;
using profiles::FlightCall;
using profiles::FlightDump;
using profiles::GroupProgress;
using profiles::GroupVerdict;
using profiles::Hang;
using profiles::PendingMessage;
using profiles::rank_ranges;
using profiles::RankProgress;
using profiles::Standing;

namespace {

std::string collective_text(std::int64_t number, const std::string& call) {
  if (number == 0) return "none";
  return call.empty() ? fmt::to_string(number) : fmt::format("{} {}", number, call);
}

Json group_json(const GroupProgress& group) {
  Json ranks = Json::array();
  for (const RankProgress& each : group.ranks) {
    const bool is_known = each.standing != Standing::no_dump && each.standing != Standing::not_in_dump;
    const auto number = [&](std::int64_t n) { return is_known ? Json(n) : Json(); };
    ranks.push_back({{"rank", each.rank},
                     {"state", to_string(each.standing)},
                     {"called", number(each.called)},
                     {"completed", number(each.completed)},
                     {"first_in_dump", each.first > 0 ? Json(each.first) : Json()},
                     {"timed_out", each.has_timed_out},
                     {"last_call", each.last_call.empty() ? Json() : Json(each.last_call)},
                     {"place", each.place.empty() ? Json() : Json(each.place)}});
  }
  Json mismatches = Json::array();
  for (const profiles::Mismatch& each : group.mismatches) {
    Json variants = Json::array();
    for (const profiles::Variant& variant : each.variants)
      variants.push_back({{"call", variant.call}, {"ranks", variant.ranks}});
    mismatches.push_back({{"number", each.number}, {"differs", each.what}, {"calls", variants}});
  }
  const bool is_still = group.verdict != GroupVerdict::finished;
  return Json{{"group", group.name},
              {"description", group.description},
              {"members_known", !group.members.empty()},
              {"state", to_string(group.verdict)},
              {"completed_by_all", group.last},
              {"completed_call", group.last_call.empty() ? Json() : Json(group.last_call)},
              {"next", is_still ? Json(group.last + 1) : Json()},
              {"next_call", group.next_call.empty() ? Json() : Json(group.next_call)},
              {"mismatches", mismatches},
              {"ranks", ranks}};
}

/// A table after an empty line; nothing without lines.
std::string printed(const HangCells& cells) {
  Table table(cells.front());
  for (std::size_t line = 1; line < cells.size(); ++line) table.add(cells[line]);
  return table.size() == 0 ? "" : '\n' + table.fitted();
}

}  // namespace

std::size_t pending_calls(const ShownHang& shown) {
  std::size_t pending = 0;
  for (const FlightDump& dump : shown.dumps)
    for (const FlightCall& call : dump.calls) pending += call.state != CallState::completed ? 1 : 0;
  return pending;
}

std::string hang_head(const ShownHang& shown) {
  std::set<std::string> formats, versions;
  std::vector<std::uint32_t> ranks;
  std::size_t calls = 0;
  std::int64_t missing = 0;
  for (const FlightDump& dump : shown.dumps) {
    ranks.push_back(dump.rank);
    formats.insert(dump.version);
    if (!dump.nccl_version.empty()) versions.insert(dump.nccl_version);
    calls += dump.calls.size();
    missing += dump.missing;
  }
  std::sort(ranks.begin(), ranks.end());
  std::string text =
      wrapped(fmt::format("{} of {} ranks ({}); Flight Recorder {}; {}", ranks.size(),
                          profiles::world_of(shown.profile), rank_ranges(ranks), fmt::join(formats, ", "),
                          versions.empty() ? "the files do not contain the NCCL version"
                                           : fmt::format("NCCL {}", fmt::join(versions, ", ")))) +
      '\n';
  text += wrapped(fmt::format("{} calls, {} of them incomplete; {} with a duration", calls, pending_calls(shown),
                              shown.profile.calls.size())) +
          '\n';
  if (missing > 0)
    text += wrapped(fmt::format(
                "{} earlier entries are not in the dumps, which keep only the latest entries (TORCH_FR_BUFFER_SIZE)",
                missing)) +
            '\n';
  return text;
}

HangCells group_cells(const Hang& hang) {
  HangCells cells{{"group", "ranks", "completed by all", "next", "state"}};
  for (const GroupProgress& group : hang.groups) {
    std::vector<std::uint32_t> ranks;
    for (const RankProgress& each : group.ranks) ranks.push_back(each.rank);
    cells.push_back({group.title(), rank_ranges(ranks) + (group.members.empty() ? ", ?" : ""),
                     collective_text(group.last, group.last_call),
                     group.verdict == GroupVerdict::finished ? "" : collective_text(group.last + 1, group.next_call),
                     std::string(to_string(group.verdict))});
  }
  return cells;
}

HangCells standing_cells(const Hang& hang) {
  HangCells cells{{"group", "number", "ranks", "state", "last called", "completed"}};
  for (const GroupProgress& group : hang.groups) {
    if (group.verdict == GroupVerdict::finished) continue;
    std::map<std::tuple<Standing, std::int64_t, std::int64_t, bool>, std::vector<std::uint32_t>> lines;
    for (const RankProgress& each : group.ranks)
      lines[{each.standing, each.called, each.completed, each.has_timed_out}].push_back(each.rank);
    for (const auto& [key, ranks] : lines) {
      const auto& [standing, called, completed, has_timed_out] = key;
      const bool is_known = standing != Standing::no_dump && standing != Standing::not_in_dump;
      cells.push_back({group.title(), fmt::to_string(group.last + 1), rank_ranges(ranks),
                       fmt::format("{}{}", to_string(standing), has_timed_out ? ", timed out" : ""),
                       is_known ? fmt::to_string(called) : "?", is_known ? fmt::to_string(completed) : "?"});
    }
  }
  return cells;
}

HangCells message_cells(const Hang& hang) {
  HangCells cells{{"pending", "rank", "to or from", "group", "the other's call"}};
  for (const PendingMessage& each : hang.messages)
    cells.push_back({each.call, fmt::to_string(each.rank),
                     fmt::format("{} {}", each.is_send ? "to" : "from", each.peer), each.group,
                     !each.is_met   ? "no dump"
                     : *each.is_met ? each.peers_call
                                    : "none pending"});
  return cells;
}

std::string hang_text(const ShownHang& shown) {
  std::string text = hang_head(shown);
  if (!shown.hang.findings.empty()) text += '\n';
  for (const std::string& finding : shown.hang.findings) text += wrapped("- " + finding) + '\n';
  if (pending_calls(shown) == 0) text += "\nnothing hangs: every rank has completed all calls that any rank made\n";
  text += printed(group_cells(shown.hang)) + printed(standing_cells(shown.hang)) + printed(message_cells(shown.hang));
  if (!shown.account.rows.empty())
    text += "\nDurations between the stream events around each kernel:\n" + collectives_text(shown.account);
  return text;
}

std::string hang_json(const ShownHang& shown) {
  Json document = profile_about(shown.profile, shown.account);
  for (const std::string& finding : shown.hang.findings) document["findings"].push_back(finding);
  Json groups = Json::array();
  for (const GroupProgress& group : shown.hang.groups) groups.push_back(group_json(group));
  document["groups"] = groups;
  Json messages = Json::array();
  for (const PendingMessage& each : shown.hang.messages)
    messages.push_back({{"rank", each.rank},
                        {"peer", each.peer},
                        {"direction", each.is_send ? "send" : "receive"},
                        {"group", each.group},
                        {"call", each.call},
                        {"peer_waits", each.is_met ? Json(*each.is_met) : Json()},
                        {"peers_call", each.peers_call.empty() ? Json() : Json(each.peers_call)},
                        {"differs", each.differs.empty() ? Json() : Json(each.differs)}});
  document["pending_messages"] = messages;
  Json rows = Json::array();
  for (const profiles::Row& row : shown.account.rows) rows.push_back(row_json(shown.profile, row));
  document["rows"] = rows;
  return json_text(document, 2) + '\n';
}

std::string hang_csv(const ShownHang& shown) {
  Json rows = Json::array();
  for (const GroupProgress& group : shown.hang.groups) {
    const Json about = group_json(group);
    for (const Json& rank : about.at("ranks")) {
      Json row;
      for (const char* key : {"group", "description"}) row[key] = about.at(key);
      row["group_state"] = about.at("state");
      for (const char* key : {"completed_by_all", "next", "next_call"}) row[key] = about.at(key);
      for (const auto& item : rank.items()) row[item.key()] = item.value();
      rows.push_back(row);
    }
  }
  return csv_of(rows);
}

}  // namespace ringsim::tools
