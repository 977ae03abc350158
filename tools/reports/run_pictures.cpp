#include "tools/reports/run_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "scenarios/predict/trace.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/quantity.hpp"
#include "tools/pictures/axis.hpp"
#include "tools/pictures/drawn_marks.hpp"
#include "tools/pictures/gantt_svg.hpp"
#include "tools/pictures/heat_map_svg.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/streams_svg.hpp"
#include "tools/pictures/topology_svg.hpp"
#include "tools/traces/link_users.hpp"

namespace ringsim::tools {

namespace {

constexpr std::int64_t most_messages = 2'000'000;
constexpr std::size_t most_rows = 40, most_bins = 120;

// ------------------------------------------------------------------------------------------------------------- links

struct LinkRow {
  const Recording::Use* use = nullptr;
  LinkLoad load;
};

/// Links that carried anything, the busiest first. Both directions of a half-duplex cable are busy when one is.
std::vector<LinkRow> rows_of(const Recording& recording, const Topology& topology) {
  const double seconds =
      static_cast<double>(recording.finish.time_since_epoch().count()) / static_cast<double>(picoseconds_per_second);
  std::map<ResourceId, std::int64_t> shared;
  std::vector<LinkRow> rows;
  for (const Recording::Use& use : recording.use) {
    const std::int64_t bytes = std::accumulate(use.bytes.begin(), use.bytes.end(), std::int64_t{0});
    if (use.id.value < topology.n_links()) shared[topology.link(use.id).resource] += bytes;
    rows.push_back({.use = &use, .load = {.bytes = {bytes}, .busy = 0}});
  }
  for (LinkRow& row : rows) {
    const bool wired = row.use->id.value < topology.n_links();  // else a device's own work
    const std::int64_t bytes = wired ? shared[topology.link(row.use->id).resource] : row.load.bytes.count;
    row.load.busy = std::min(
        1.0, static_cast<double>(bytes) / (static_cast<double>(row.use->bandwidth.bytes_per_second) * seconds));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LinkRow& a, const LinkRow& b) { return a.load.busy > b.load.busy; });
  return rows;
}

std::string loaded_topology(const Recording& recording, const Topology& topology, const std::vector<LinkRow>& rows,
                            const std::vector<DrawnMark>& faults) {
  std::map<LinkId, LinkLoad> loads;
  for (const LinkRow& row : rows) loads[row.use->id] = row.load;
  const LinkUsers users(topology, recording, loads, marks_of(faults));
  const std::string more = users.anchors().empty() ? "" : " Click a link to see what used it and when.";
  return html_section(
      "Links by load",
      html_paragraph("The utilization of each link (in its busier direction), as the share of the run for which it was "
                     "busy at full rate. Hover over a link to see its name, rate, bytes and share." +
                     more) +
          html_wide_figure("topology, links by load",
                           topology_svg(topology, "links by load", faults, &loads, /*alone=*/false, users.anchors())) +
          users.sections());
}

/// Utilization in at most most_bins bins, each of several steps of the recording.
std::vector<double> bins_of(const Recording& recording, const Recording::Use& use, std::size_t steps) {
  std::vector<double> shares;
  for (std::size_t first = 0; first < use.bytes.size(); first += steps) {
    const std::size_t end = std::min(first + steps, use.bytes.size());
    double sum = 0, time = 0;
    for (std::size_t i = first; i < end; ++i) {
      const SimTime begin{static_cast<std::int64_t>(i) * recording.step};
      const auto length = static_cast<double>(std::min(recording.step, recording.finish - begin).count());
      sum += utilization(recording, use, i) * length;
      time += length;
    }
    shares.push_back(time > 0 ? sum / time : 0);
  }
  return shares;
}

/// The link that holds the critical path comes first: below its nominal rate, by a fault, it is never among the
/// busiest.
std::string links_over_time(const Recording& recording, std::vector<LinkRow> rows, const Prediction& found) {
  const std::string holds = found.bottleneck ? found.bottleneck->link : "";
  std::stable_partition(rows.begin(), rows.end(), [&](const LinkRow& row) { return row.use->link == holds; });
  const std::size_t steps = (rows.front().use->bytes.size() + most_bins - 1) / most_bins;
  std::vector<HeatRow> heat;
  for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i)
    heat.push_back({.name = rows[i].use->link,
                    .figures = fmt::format("{:.1f} %", 100 * rows[i].load.busy),
                    .shares = bins_of(recording, *rows[i].use, steps)});
  std::string text = html_wide_figure(
      "links over time",
      heat_map_svg("links over time", heat, static_cast<std::int64_t>(steps) * recording.step, recording.finish));
  if (rows.size() > most_rows)
    text +=
        html_paragraph(fmt::format("{} more links carried data; none of them was busy more than {:.1f} % of the time.",
                                   rows.size() - most_rows, 100 * rows[most_rows].load.busy));
  return html_section(
      "Links over time",
      html_paragraph("The data carried by the busiest links, as a share of their capacity in each interval.") + text);
}

// -------------------------------------------------------------------------------------------------------------- step

/// The streams of a training step, if that is what was run.
std::string last_step(const Recording& recording) {
  if (recording.streams.empty()) return "";
  std::string text =
      html_wide_figure("the last step", streams_svg(recording.streams, "the last step", /*alone=*/false));
  for (const std::string& note : streams_notes(recording.streams)) text += html_paragraph(note);
  return html_section("The last step", text);
}

// -------------------------------------------------------------------------------------------------------------- rank

/// The color of a bar on a track of that name, and its name in the legend; no two look alike.
GanttColor color_of(const Trace::Slice& slice, const std::string& track) {
  if (slice.category == "message") return slice.flow_ends ? GanttColor{2, "receives"} : GanttColor{0, "sends"};
  if (slice.category == "link") return {1, "critical: a link"};
  if (slice.category == "latency") return {5, "critical: latency"};
  if (slice.category == "staging") return {1, "critical: staging", /*hatched=*/true};
  if (slice.category == "compute") return {4, "computes"};
  if (slice.category == "task")
    return track.find("compute") != std::string::npos ? GanttColor{4, "computes"} : GanttColor{3, "communicates"};
  return {5, "critical: waits", /*hatched=*/true};
}

std::string title_of(const Trace::Slice& slice) {
  std::string text = fmt::format("{}, {} to {}", slice.name,
                                 axis_text(static_cast<double>(slice.begin.time_since_epoch().count()), AxisOf::time),
                                 axis_text(static_cast<double>(slice.end.time_since_epoch().count()), AxisOf::time));
  if (slice.bytes) text += ", " + format(*slice.bytes);
  return text;
}

/// The critical path, and each track of the traced rank.
std::string rank_over_time(const Trace& trace, SimTime finish, Actor rank) {
  std::map<std::uint32_t, GanttLane> lanes;
  std::vector<GanttColor> colors;
  std::string name = fmt::format("rank {}", rank);
  const std::string mine = name + " (";
  for (const Trace::Slice& slice : trace.slices) {
    const Trace::Track& track = trace.tracks[slice.track];
    const std::string& process = trace.processes[track.process].name;
    const bool is_path = process == "critical path";
    const bool is_rank = process == name || process.starts_with(mine) || process.find(": " + mine) != std::string::npos;
    if (slice.category == "step" || (!is_path && !is_rank)) continue;
    GanttLane& lane = lanes[slice.track];
    lane.name = track.name;
    const GanttColor color = color_of(slice, track.name);
    lane.bars.push_back({.begin = slice.begin,
                         .end = slice.end,
                         .color = color.color,
                         .title = title_of(slice),
                         .label = "",
                         .hatched = color.hatched});
    const auto same = [&](const GanttColor& each) { return each.name == color.name; };
    if (std::none_of(colors.begin(), colors.end(), same)) colors.push_back(color);
    if (is_rank && process != name) name = process;
  }
  if (lanes.empty()) return "";
  std::vector<GanttLane> in_order;
  for (auto& [track, lane] : lanes) in_order.push_back(std::move(lane));
  std::string text = html_wide_figure("the critical rank over time",
                                      gantt_svg("the critical rank over time", in_order, colors, finish));
  if (!trace.left_out.empty()) text += html_paragraph("A part of the run: " + trace.left_out + ".");
  return html_section(
      "The critical rank over time",
      html_paragraph(fmt::format(
          "{}, which is on the critical path for the longest time, and the critical path of the whole run.", name)) +
          text);
}

}  // namespace

Recording recording_for_pictures(const Scenario& scenario, std::int64_t messages) {
  Recording recording;
  recording.keep_streams = scenario.training.has_value();
  if (messages > most_messages) return recording;
  recording.filter = TraceFilter{.critical_rank = true};
  recording.use_step = Picoseconds{0};
  recording.keep_flows = true;
  return recording;
}

std::string run_pictures(const Scenario& scenario, const Prediction& found, const Recording& recording) {
  std::string step = last_step(recording);
  if (!recording.filter)
    return step + html_section("Links", html_paragraph(fmt::format(
                                            "Links and ranks are not drawn because the run has {} messages, more than "
                                            "the {} that can be recorded. Choose a smaller point with --set.",
                                            found.transfers, most_messages)));
  if (recording.use.empty() || recording.finish == SimTime{}) return step;  // nothing moved
  const Topology topology = topology_of(scenario);
  const std::vector<LinkRow> rows = rows_of(recording, topology);
  return step + loaded_topology(recording, topology, rows, drawn_faults(topology, scenario)) +
         links_over_time(recording, rows, found) +
         rank_over_time(recording.trace, recording.finish, *recording.trace.critical_rank);
}

}  // namespace ringsim::tools
