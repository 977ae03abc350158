#include "tools/pictures/streams_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/base/quantity.hpp"
#include "tools/output/axis.hpp"
#include "tools/pictures/gantt_svg.hpp"

namespace ringsim::tools {

namespace {

constexpr std::size_t most_drawn = 4;

GanttColor color_of(const std::string& kind) {
  if (kind == "forward") return {0, kind};
  if (kind == "backward") return {2, kind};
  if (kind == "update") return {4, kind};
  if (kind == "communication") return {3, kind};
  if (kind == "exposed") return {1, "communication while nothing computes"};
  return {5, "other"};
}

std::string time_text(Picoseconds time) {
  return time.count() == 0 ? "0" : axis_text(static_cast<double>(time.count()), AxisOf::time);
}

std::string title_of(const Recording::StreamTask& task) {
  std::string text = fmt::format("{}, {} to {}", task.name, time_text(task.begin.time_since_epoch()),
                                 time_text(task.end.time_since_epoch()));
  if (task.kind == "communication")
    text += task.exposed.count() > 0 ? fmt::format(", exposed for {}", time_text(task.exposed)) : ", hidden";
  return text;
}

}  // namespace

std::string streams_svg(const std::vector<Recording::Streams>& all, const std::string& title) {
  const std::size_t n = std::min(all.size(), most_drawn);
  std::vector<GanttLane> lanes;
  std::vector<GanttColor> colors;
  SimTime finish{};
  for (std::size_t i = 0; i < n; ++i)
    for (const Recording::Stream& stream : all[i].streams) {
      GanttLane lane{.name = n > 1 ? fmt::format("{}: {}", all[i].who, stream.name) : stream.name, .bars = {}};
      for (const Recording::StreamTask& task : stream.tasks) {
        const GanttColor color = color_of(task.kind);
        const bool is_named = task.kind == "communication";
        lane.bars.push_back({task.begin, task.end, color.color, title_of(task), is_named ? task.name : ""});
        finish = std::max(finish, task.end);
        const auto same = [&](const GanttColor& each) { return each.name == color.name; };
        if (std::none_of(colors.begin(), colors.end(), same)) colors.push_back(color);
      }
      lanes.push_back(std::move(lane));
    }
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < n; ++i)
    if (all[i].others > 0)
      notes.push_back(fmt::format("{} and {} more do the same at the same times.", all[i].who, all[i].others));
  if (all.size() > n)
    notes.push_back(fmt::format("{} others, which do something else, are not drawn.", all.size() - n));
  return gantt_svg(title, lanes, colors, finish, GanttPage{.notes = notes});
}

}  // namespace ringsim::tools
