#include "tools/reports/job_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/explanations/profile_text.hpp"
#include "tools/pictures/gantt_svg.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/run_report.hpp"
#include "validate/profiles/timeline.hpp"

namespace ringsim::tools {

namespace {

using profiles::Account;
using profiles::Profile;
using profiles::Row;
using profiles::TimedCall;

constexpr std::size_t waiting_color = 1, transfer_color = 0, whole_color = 2;  // of plots

/// More lanes are no picture any more.
constexpr std::size_t most_lanes = 64;

SimTime at_ns(std::int64_t ns) { return SimTime{times(1000, Picoseconds{ns})}; }

std::string call_text(const Profile& profile, const TimedCall& timed) {
  const profiles::Call& call = profile.calls[timed.call];
  if (!call.is_usable()) return "kernel of NCCL";
  Row row;
  row.bytes = call.bytes;
  row.is_share = call.has(profiles::Call::is_share);
  return fmt::format("{} {}", to_string(call.op), size_text(row));
}

std::string gantt(const Profile& profile, const Account& account) {
  std::vector<GanttLane> lanes;
  SimTime finish{};
  std::vector<GanttColor> colors{{.color = waiting_color, .name = "waits for the last rank"},
                                 {.color = transfer_color, .name = "transfer"}};
  bool any_whole = false;
  std::map<std::uint32_t, std::size_t> lane_of;
  for (const TimedCall& timed : profiles::timeline_of(profile, account)) {
    const auto [known, is_new] = lane_of.try_emplace(timed.rank, lanes.size());
    if (is_new) {
      if (lanes.size() == most_lanes) break;
      lanes.push_back({.name = fmt::format("rank {}", timed.rank), .bars = {}});
    }
    GanttLane& lane = lanes[known->second];
    const std::string what = call_text(profile, timed);
    const auto bar = [&](std::int64_t begin, std::int64_t end, std::size_t color, const char* part) {
      if (end > begin)
        lane.bars.push_back(
            {.begin = at_ns(begin),
             .end = at_ns(end),
             .color = color,
             .title = fmt::format("{}: {} {} ms", what, part, ms_text(static_cast<double>(end - begin))),
             .label = ""});
    };
    if (timed.is_split) bar(timed.begin_ns, timed.transfer_ns, waiting_color, "waits");
    bar(timed.transfer_ns, timed.end_ns, timed.is_split ? transfer_color : whole_color,
        timed.is_split ? "transfer" : "not split");
    any_whole = any_whole || !timed.is_split;
    finish = std::max(finish, at_ns(timed.end_ns));
  }
  if (lanes.empty()) return html_paragraph("There is no timeline because the files have durations but no start times.");
  if (any_whole) colors.push_back({.color = whole_color, .name = "not split"});
  std::string text = html_wide_figure("Collectives of each rank over time",
                                      gantt_svg("Collectives of each rank over time", lanes, colors, finish));
  if (lane_of.size() > lanes.size()) text += html_paragraph(fmt::format("The first {} ranks are drawn.", most_lanes));
  return text;
}

/// The rank that waits least, and how much the others do.
std::string sentence(const Account& account) {
  double wait = 0, kernels = 0;
  for (const profiles::RankAccount& rank : account.ranks)
    if (rank.split > 0) wait += rank.wait_ns, kernels += rank.kernel_ns;
  if (kernels == 0) return "No collective could be split into waiting and transfer";
  std::string text = fmt::format("Waiting is {:.0f} % of the time in collectives", 100 * wait / kernels);
  for (const Row& row : account.rows)
    if (row.split > 0 && row.waits_much() && row.late_rank())
      return text +
             fmt::format("; rank {} is the last in {} of {}", *row.late_rank(), to_string(row.op), size_text(row));
  return text;
}

TableCells collectives_table(const Account& account, const profiles::JobComparison* comparison) {
  TableCells cells;
  if (comparison == nullptr) {
    cells.push_back({"collective", "bytes", "calls", "kernel ms", "wait ms", "transfer ms", "late"});
    for (const Row& row : account.rows)
      cells.push_back({std::string(to_string(row.op)), size_text(row), fmt::to_string(row.collectives),
                       kernel_text(row), waiting_text(row), transfer_text(row), late_text(row)});
    return cells;
  }
  cells.push_back({"collective", "bytes", "calls", "kernel ms", "wait ms", "transfer ms", "predicted ms", "allowed ms",
                   "lost ms", "verdict"});
  for (const profiles::ComparedCalls& calls : comparison->rows) {
    const Row& row = calls.row;
    const auto time = [](const std::optional<double>& ns) { return ns ? ms_text(*ns) : std::string(); };
    cells.push_back({std::string(to_string(row.op)), size_text(row), fmt::to_string(row.collectives), kernel_text(row),
                     waiting_text(row), transfer_text(row), time(calls.predicted_ns), time(calls.allowed_ns),
                     calls.predicted_ns && comparison->other_machine.empty() ? ms_text(calls.lost_ns) : "",
                     verdict_text(calls)});
  }
  return cells;
}

TableCells ranks_table(const Account& account) {
  TableCells cells{{"rank", "calls", "kernels ms", "waiting ms", "arrives last in"}};
  for (const profiles::RankAccount& rank : account.ranks)
    cells.push_back({fmt::to_string(rank.rank), fmt::to_string(rank.calls), ms_text(rank.kernel_ns),
                     ms_text(rank.wait_ns), fmt::format("{} of {}", rank.last, rank.split)});
  return cells;
}

}  // namespace

std::string job_page(const Profile& profile, const Account& account, const profiles::JobComparison* comparison,
                     const std::optional<ScenarioText>& scenario, const std::string& command) {
  const std::string title = sentence(account);
  std::string read = profile_head(profile, account);
  if (comparison != nullptr) {
    read += fmt::format("predicted for NCCL {} ({})\n", comparison->nccl, comparison->nccl_from);
    if (comparison->interference > 1) read += stated_interference(*comparison) + '\n';
    if (!comparison->other_machine.empty())
      read += "not this machine: " + comparison->other_machine + "\nhint: " + comparison->other_machine_hint + '\n';
  }
  const std::string body =
      fmt::format("<h1>{}</h1>\n", escaped_xml(title)) + report_preformatted(read) +
      html_section("Ranks over time", gantt(profile, account)) +
      (account.rows.empty() ? "" : report_table("Collectives", collectives_table(account, comparison))) +
      report_table("Ranks", ranks_table(account)) +
      report_end(scenario ? std::vector<ScenarioText>{*scenario} : std::vector<ScenarioText>{}, command, "");
  return html_page(title, body);
}

Trace job_trace(const Profile& profile, const Account& account) {
  Trace trace;
  std::map<std::uint32_t, std::uint32_t> track_of;
  for (const TimedCall& timed : profiles::timeline_of(profile, account)) {
    const auto [known, is_new] = track_of.try_emplace(timed.rank, static_cast<std::uint32_t>(trace.tracks.size()));
    if (is_new) {
      trace.tracks.push_back({.process = static_cast<std::uint32_t>(trace.processes.size()), .name = "NCCL"});
      trace.processes.push_back({.name = fmt::format("rank {}", timed.rank)});
    }
    const auto add = [&, track = known->second](std::int64_t begin, std::int64_t end, std::string name,
                                                std::string_view category) {
      Trace::Slice slice;
      slice.track = track;
      slice.begin = at_ns(begin);
      slice.end = at_ns(end);
      slice.name = std::move(name);
      slice.category = category;
      trace.slices.push_back(std::move(slice));
    };
    add(timed.begin_ns, timed.end_ns, call_text(profile, timed), "collective");
    if (!timed.is_split) continue;
    if (timed.transfer_ns > timed.begin_ns) add(timed.begin_ns, timed.transfer_ns, "wait", "wait");
    if (timed.end_ns > timed.transfer_ns) add(timed.transfer_ns, timed.end_ns, "transfer", "transfer");
  }
  std::stable_sort(trace.slices.begin(), trace.slices.end(), [](const Trace::Slice& a, const Trace::Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return trace;
}

}  // namespace ringsim::tools
