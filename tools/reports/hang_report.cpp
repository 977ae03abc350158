#include "tools/reports/hang_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tools/pictures/html.hpp"
#include "tools/pictures/state_grid_svg.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/run_report.hpp"

namespace ringsim::tools {

namespace {

using profiles::GroupProgress;
using profiles::GroupVerdict;
using profiles::Hang;
using profiles::RankProgress;
using profiles::Standing;

/// More columns or rows are no picture any more.
constexpr std::size_t most_drawn_ranks = 64, most_drawn_groups = 64;

/// In the order of Standing, by their words in the tables. What holds others up has the strongest color.
const std::vector<GridState>& standings() {
  static const std::vector<GridState> states = [] {
    using enum Standing;
    std::vector<GridState> all(6);
    for (const auto& [standing, color] :
         {std::pair{no_dump, "l0"}, std::pair{not_in_dump, "l0"}, std::pair{not_called, "l5"},
          std::pair{scheduled, "s0"}, std::pair{started, "s2"}, std::pair{completed, "l1"}})
      all[static_cast<std::size_t>(standing)] = {
          .name = std::string(to_string(standing)), .color = color, .hatched = standing == not_in_dump};
    return all;
  }();
  return states;
}

bool stands_still(const GroupProgress& group) { return group.verdict != GroupVerdict::finished; }

std::set<std::uint32_t> members_of(const std::vector<const GroupProgress*>& groups) {
  std::set<std::uint32_t> ranks;
  for (const GroupProgress* group : groups)
    for (const RankProgress& each : group->ranks) ranks.insert(each.rank);
  return ranks;
}

/// Those that the findings name, in that order; then those that have not called what others wait in; then the others.
std::set<std::uint32_t> drawn_ranks(const Hang& hang, const std::vector<const GroupProgress*>& groups) {
  const std::set<std::uint32_t> all = members_of(groups);
  std::set<std::uint32_t> drawn;
  const auto draw = [&](std::uint32_t rank) {
    if (drawn.size() < most_drawn_ranks && all.contains(rank)) drawn.insert(rank);
  };
  for (const std::uint32_t rank : hang.named_ranks) draw(rank);
  for (const GroupProgress* group : groups)
    for (const std::uint32_t rank : group->in(Standing::not_called)) draw(rank);
  for (const std::uint32_t rank : all) draw(rank);
  return drawn;
}

/// Groups that stand still: those that the findings name, in that order, then the others.
std::vector<const GroupProgress*> still_groups(const Hang& hang) {
  std::vector<const GroupProgress*> groups;
  for (const GroupProgress& group : hang.groups)
    if (stands_still(group) && !group.ranks.empty()) groups.push_back(&group);
  const auto place = [&](const GroupProgress* group) {
    return std::find(hang.named_groups.begin(), hang.named_groups.end(), group->title()) - hang.named_groups.begin();
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const auto* a, const auto* b) { return place(a) < place(b); });
  return groups;
}

StateCell cell_of(const GroupProgress& group, const RankProgress& each) {
  StateCell cell{.state = static_cast<std::size_t>(each.standing), .label = "?", .title = ""};
  const bool is_known = each.standing != Standing::no_dump && each.standing != Standing::not_in_dump;
  if (is_known) cell.label = fmt::to_string(each.called);
  cell.title = fmt::format("rank {}, number {}: {}{}", each.rank, group.last + 1, to_string(each.standing),
                           each.has_timed_out ? ", timed out" : "");
  if (!each.last_call.empty()) cell.title += fmt::format("; last call {}", each.last_call);
  if (!each.place.empty()) cell.title += fmt::format(", {}", each.place);
  return cell;
}

std::string ranks_grid(const Hang& hang) {
  const std::vector<const GroupProgress*> groups = still_groups(hang);
  if (groups.empty()) return "";
  const std::set<std::uint32_t> ranks = drawn_ranks(hang, groups);
  StateGrid picture{.title = "Ranks in the groups that do not make progress",
                    .columns_are = "rank; each cell shows the number of its last call in the group",
                    .columns = {},
                    .rows = {},
                    .states = standings()};
  std::map<std::uint32_t, std::size_t> column_of;
  for (const std::uint32_t rank : ranks) {
    column_of.emplace(rank, picture.columns.size());
    picture.columns.push_back(fmt::to_string(rank));
  }
  for (const GroupProgress* group : groups) {
    if (picture.rows.size() == most_drawn_groups) break;
    StateRow row{.name = fmt::format("number {} of {}", group->last + 1, group->title()), .cells = {}};
    row.cells.resize(picture.columns.size());
    bool is_drawn = false;
    for (const RankProgress& each : group->ranks)
      if (const auto at = column_of.find(each.rank); at != column_of.end()) {
        row.cells[at->second] = cell_of(*group, each);
        is_drawn = true;
      }
    if (is_drawn) picture.rows.push_back(std::move(row));
  }
  std::string text = html_wide_figure(picture.title, state_grid_svg(picture));
  if (const std::size_t all = members_of(groups).size(); all > ranks.size())
    text += html_paragraph(fmt::format(
        "{} of {} ranks are drawn: first those named in the findings, then those that are behind.", ranks.size(), all));
  if (groups.size() > picture.rows.size())
    text += html_paragraph(fmt::format("{} of {} groups are drawn.", picture.rows.size(), groups.size()));
  return html_section("Ranks in the groups that do not make progress", text);
}

std::string findings_text(const Hang& hang) {
  std::string items;
  for (const std::string& finding : hang.findings) items += fmt::format("<li>{}</li>\n", escaped_xml(finding));
  return items.empty() ? "" : html_section("Findings, causes first", "<ul>\n" + items + "</ul>\n");
}

std::string hang_table(const char* heading, const HangCells& cells) {
  return cells.size() > 1 ? report_table(heading, cells) : "";
}

}  // namespace

std::string hang_page(const ShownHang& shown, const std::string& command) {
  std::string title = pending_calls(shown) > 0 ? "Calls are pending, but the dumps do not show why"
                                               : "No call in these dumps is pending";
  if (!shown.hang.headline.empty()) {
    title = shown.hang.headline;
    title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  }
  const std::string body =
      fmt::format("<h1>{}</h1>\n", escaped_xml(title)) + report_preformatted(hang_head(shown)) +
      findings_text(shown.hang) + ranks_grid(shown.hang) + hang_table("Groups", group_cells(shown.hang)) +
      hang_table("Progress of each rank", standing_cells(shown.hang)) +
      hang_table("Pending sends and receives", message_cells(shown.hang)) + report_end({}, command, "");
  return html_page(title, body);
}

}  // namespace ringsim::tools
