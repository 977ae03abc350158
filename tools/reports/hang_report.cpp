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

/// In the order of Standing. What holds others up has the strongest color.
const std::vector<GridState>& standings() {
  static const std::vector<GridState> states{
      {.name = "no dump", .color = "l0"},    {.name = "not in its dump", .color = "l0", .hatched = true},
      {.name = "not called", .color = "l5"}, {.name = "called, its kernel has not begun", .color = "s0"},
      {.name = "in it", .color = "s2"},      {.name = "completed", .color = "l1"},
  };
  return states;
}

bool stands_still(const GroupProgress& group) { return group.verdict != GroupVerdict::finished; }

std::set<std::uint32_t> members_of(const std::vector<const GroupProgress*>& groups) {
  std::set<std::uint32_t> ranks;
  for (const GroupProgress* group : groups)
    for (const RankProgress& each : group->ranks) ranks.insert(each.rank);
  return ranks;
}

/// Those whose standing is not that of most ranks in one of their groups.
std::set<std::uint32_t> unlike_most(const std::vector<const GroupProgress*>& groups) {
  std::set<std::uint32_t> ranks;
  for (const GroupProgress* group : groups) {
    std::map<Standing, std::size_t> n;
    for (const RankProgress& each : group->ranks) ++n[each.standing];
    const auto most =
        std::max_element(n.begin(), n.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const RankProgress& each : group->ranks)
      if (each.standing != most->first) ranks.insert(each.rank);
  }
  return ranks;
}

std::set<std::uint32_t> drawn_ranks(const std::vector<const GroupProgress*>& groups) {
  const std::set<std::uint32_t> all = members_of(groups);
  if (all.size() <= most_drawn_ranks) return all;
  std::set<std::uint32_t> drawn;
  for (const std::set<std::uint32_t>& next : {unlike_most(groups), all})
    for (const std::uint32_t rank : next)
      if (drawn.size() < most_drawn_ranks) drawn.insert(rank);
  return drawn;
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
  std::vector<const GroupProgress*> groups;
  for (const GroupProgress& group : hang.groups)
    if (stands_still(group) && !group.ranks.empty()) groups.push_back(&group);
  if (groups.empty()) return "";
  const std::size_t n_groups = groups.size();
  groups.resize(std::min(n_groups, most_drawn_groups));
  const std::set<std::uint32_t> ranks = drawn_ranks(groups);
  StateGrid picture{.title = "Ranks in the groups that stand still",
                    .columns_are = "rank; in a cell the number of its last call in the group",
                    .columns = {},
                    .rows = {},
                    .states = standings()};
  std::map<std::uint32_t, std::size_t> column_of;
  for (const std::uint32_t rank : ranks) {
    column_of.emplace(rank, picture.columns.size());
    picture.columns.push_back(fmt::to_string(rank));
  }
  for (const GroupProgress* group : groups) {
    StateRow row{.name = fmt::format("{}, number {}", group->title(), group->last + 1), .cells = {}};
    row.cells.resize(picture.columns.size());
    for (const RankProgress& each : group->ranks)
      if (const auto at = column_of.find(each.rank); at != column_of.end())
        row.cells[at->second] = cell_of(*group, each);
    picture.rows.push_back(std::move(row));
  }
  std::string text = html_wide_figure(picture.title, state_grid_svg(picture));
  if (const std::size_t all = members_of(groups).size(); all > ranks.size())
    text += html_paragraph(
        fmt::format("{} of {} ranks are drawn: those that differ from most of their group, then the first others.",
                    ranks.size(), all));
  if (n_groups > groups.size())
    text += html_paragraph(fmt::format("The first {} of {} groups are drawn.", groups.size(), n_groups));
  return html_section("Ranks in the groups that stand still", text);
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
  std::string title = "Nothing stands still: all ranks have completed what any of them has called";
  if (pending_calls(shown) > 0) title = "Calls are pending, and the dumps do not say why";
  if (!shown.hang.findings.empty()) {
    title = shown.hang.findings.front().substr(0, shown.hang.findings.front().find(". "));
    title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  }
  const std::string body =
      fmt::format("<h1>{}</h1>\n", escaped_xml(title)) + report_preformatted(hang_head(shown)) +
      findings_text(shown.hang) + ranks_grid(shown.hang) + hang_table("Groups", group_cells(shown.hang)) +
      hang_table("How far each rank is", standing_cells(shown.hang)) +
      hang_table("Sends and receives that are pending", message_cells(shown.hang)) + report_end({}, command, "");
  return html_page(title, body);
}

}  // namespace ringsim::tools
