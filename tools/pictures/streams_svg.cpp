#include "tools/pictures/streams_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "sim/base/quantity.hpp"
#include "tools/pictures/axis.hpp"
#include "tools/pictures/gantt_svg.hpp"

namespace ringsim::tools {

namespace {

constexpr std::size_t most_drawn = 4;

GanttColor color_of(const std::string& kind) {
  if (kind == "forward") return {0, kind};
  if (kind == "backward") return {2, kind};
  if (kind == "weights") return {5, "gradients of weights"};
  if (kind == "update") return {4, kind};
  if (kind == "communication") return {3, kind};
  if (kind == "exposed") return {1, "exposed: communication while no kernel computes", /*hatched=*/true};
  return {5, "other"};
}

std::string time_text(Picoseconds time) {
  return time.count() == 0 ? "0" : axis_text(static_cast<double>(time.count()), AxisOf::time);
}

std::string label_of(const Recording::StreamTask& task) {
  if (task.kind == "communication") return task.name;
  return task.kind == "exposed" ? time_text(task.exposed) : "";
}

std::string title_of(const Recording::StreamTask& task) {
  std::string text = fmt::format("{}, {} to {}", task.name, time_text(task.begin.time_since_epoch()),
                                 time_text(task.end.time_since_epoch()));
  if (task.kind == "communication")
    text += task.exposed.count() > 0 ? fmt::format(", exposed for {}", time_text(task.exposed)) : ", hidden";
  return text;
}

/// For how long the GPU computes nothing and data moves; the exposed tasks of several streams may overlap.
Picoseconds exposed_time(const Recording::Streams& streams) {
  std::vector<std::pair<SimTime, SimTime>> times;
  for (const Recording::Stream& stream : streams.streams)
    for (const Recording::StreamTask& task : stream.tasks)
      if (task.kind == "exposed") times.emplace_back(task.begin, task.end);
  std::sort(times.begin(), times.end());
  Picoseconds sum{0};
  SimTime counted{};
  for (const auto& [begin, end] : times) {
    sum += std::max(end, counted) - std::max(begin, counted);
    counted = std::max(end, counted);
  }
  return sum;
}

SimTime finish_of(const std::vector<Recording::Streams>& all) {
  SimTime finish{};
  for (const Recording::Streams& streams : all)
    for (const Recording::Stream& stream : streams.streams)
      for (const Recording::StreamTask& task : stream.tasks) finish = std::max(finish, task.end);
  return finish;
}

}  // namespace

std::vector<std::string> streams_notes(const std::vector<Recording::Streams>& all) {
  const SimTime finish = finish_of(all);
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < std::min(all.size(), most_drawn); ++i) {
    if (all[i].others > 0)
      notes.push_back(fmt::format("{} and {} other{} do the same at the same time.", all[i].who, all[i].others,
                                  all[i].others == 1 ? "" : "s"));
    const Picoseconds exposed = exposed_time(all[i]);
    const std::string who = all.size() > 1 ? all[i].who + ": " : "";
    const Picoseconds step = finish.time_since_epoch();
    if (exposed.count() > 0)
      notes.push_back(
          fmt::format("{}{} of {} ({:.1f} %) are exposed: no kernel computes while an exchange is in progress or waits "
                      "for a member.",
                      who, time_text(exposed), time_text(step),
                      100 * static_cast<double>(exposed.count()) / static_cast<double>(step.count())));
  }
  if (all.size() > most_drawn)
    notes.push_back(all.size() == most_drawn + 1
                        ? "1 other timeline is not drawn."
                        : fmt::format("{} other timelines are not drawn.", all.size() - most_drawn));
  return notes;
}

std::string streams_svg(const std::vector<Recording::Streams>& all, const std::string& title, bool alone) {
  const std::size_t n = std::min(all.size(), most_drawn);
  std::vector<GanttLane> lanes;
  std::vector<GanttColor> colors;
  for (std::size_t i = 0; i < n; ++i)
    for (const Recording::Stream& stream : all[i].streams) {
      GanttLane lane{.name = n > 1 ? fmt::format("{}: {}", all[i].who, stream.name) : stream.name, .bars = {}};
      for (const Recording::StreamTask& task : stream.tasks) {
        const GanttColor color = color_of(task.kind);
        lane.bars.push_back({.begin = task.begin,
                             .end = task.end,
                             .color = color.color,
                             .title = title_of(task),
                             .label = label_of(task),
                             .hatched = color.hatched});
        const auto same = [&](const GanttColor& each) { return each.name == color.name; };
        if (std::none_of(colors.begin(), colors.end(), same)) colors.push_back(color);
      }
      lanes.push_back(std::move(lane));
    }
  const auto page = alone ? std::optional(GanttPage{.notes = streams_notes(all)}) : std::nullopt;
  return gantt_svg(title, lanes, colors, finish_of({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)}), page);
}

}  // namespace ringsim::tools
