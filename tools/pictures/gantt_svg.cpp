#include "tools/pictures/gantt_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "tools/output/output.hpp"
#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/pictures/time_axis.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

namespace {

constexpr double gantt_width = 940, lane_height = 24, bar_height = 16;
constexpr std::size_t most_titles = 2000;
constexpr std::size_t n_colors = 6;  // of plots

std::string bar_path(double x, double width, double y, double height) {
  return fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.0f}h{:.1f}z", x, y, width, height, -width);
}

/// Each bar with its title.
std::string bars_svg_of(const GanttLane& lane, const TimeAxis& axis, double y) {
  std::string text;
  for (const GanttBar& bar : lane.bars) {
    const double x = axis.x_of(bar.begin), width = std::max(axis.x_of(bar.end) - x - 0.6, 0.5);
    text += fmt::format("<g class=\"s{}\"><path class=\"mark\" d=\"{}\"><title>{}</title></path></g>\n", bar.color,
                        bar_path(x, width, y, bar_height), escaped_xml(bar.title));
    if (bar.hatched) text += hatch_svg(x, y, width, bar_height);
    const double room = layout::width_of(bar.label, 11) + 8;
    if (bar.label.empty() || room > width) continue;
    if (bar.hatched)  // no line through the letters
      text += fmt::format("<g class=\"s{}\"><path class=\"mark\" d=\"{}\" pointer-events=\"none\"/></g>\n", bar.color,
                          bar_path(x + (width - room) / 2, room, y, bar_height));
    text += text_on_color(x + width / 2, y + 12, fmt::format("s{}", bar.color), bar.label);
  }
  return text;
}

/// [column][color] the share of each pixel column's time.
std::vector<std::array<double, n_colors>> columns_of(const GanttLane& lane, const TimeAxis& axis) {
  std::vector<std::array<double, n_colors>> columns(static_cast<std::size_t>(std::ceil(axis.right - axis.left)));
  for (const GanttBar& bar : lane.bars) {
    const double from = axis.x_of(bar.begin) - axis.left, to = axis.x_of(bar.end) - axis.left;
    for (auto i = static_cast<std::size_t>(from); i < columns.size() && static_cast<double>(i) < to; ++i) {
      const auto left = static_cast<double>(i);
      columns[i][bar.color % n_colors] += std::min(to, left + 1) - std::max(from, left);
    }
  }
  return columns;
}

/// A path for each color: each pixel column has the color that takes most of its time, and is as high as the share of
/// it in which anything happens, in quarters.
std::string joined_bars_svg(const GanttLane& lane, const TimeAxis& axis, double y) {
  const auto columns = columns_of(lane, axis);
  const auto look = [&](std::size_t i) {  // color and height
    const auto most = std::max_element(columns[i].begin(), columns[i].end());
    const double busy = std::min(std::accumulate(columns[i].begin(), columns[i].end(), 0.0), 1.0);
    return std::pair{static_cast<std::size_t>(most - columns[i].begin()), std::ceil(busy * 4) / 4 * bar_height};
  };
  std::array<std::string, n_colors> paths;
  for (std::size_t first = 0; first < columns.size();) {
    const auto [color, height] = look(first);
    std::size_t end = first + 1;
    while (end < columns.size() && look(end) == std::pair{color, height}) ++end;
    if (height > 0)
      paths[color] += bar_path(axis.left + static_cast<double>(first), static_cast<double>(end - first),
                               y + bar_height - height, height);
    first = end;
  }
  std::string text;
  for (std::size_t color = 0; color < n_colors; ++color)
    if (!paths[color].empty())
      text += fmt::format("<g class=\"s{}\"><path class=\"mark\" d=\"{}\"/></g>\n", color, paths[color]);
  return text;
}

/// The colors that bars have. If bars are joined, without hatches, names of one color share an entry.
std::vector<LegendEntry> legend_of(const std::vector<GanttLane>& lanes, const std::vector<GanttColor>& colors,
                                   bool drawn_one_by_one) {
  std::set<std::pair<std::size_t, bool>> used;
  for (const GanttLane& lane : lanes)
    for (const GanttBar& bar : lane.bars) used.emplace(bar.color, bar.hatched);
  std::vector<LegendEntry> legend;
  for (const GanttColor& color : colors) {
    if (!used.contains({color.color, color.hatched})) continue;
    const std::string group = fmt::format("s{}", color.color);
    const auto same =
        std::find_if(legend.begin(), legend.end(), [&](const LegendEntry& each) { return each.group == group; });
    if (drawn_one_by_one || same == legend.end())
      legend.push_back(
          {.group = group, .mark = "mark", .name = color.name, .hatched = color.hatched && drawn_one_by_one});
    else
      same->name += ", " + color.name;
  }
  return legend;
}

/// Lines of small text below the legend; moves `y` to the last one.
std::string notes_svg(const std::vector<std::string>& notes, const TimeAxis& axis, double& y) {
  std::string text;
  for (const std::string& note : notes) {
    double space = 22;
    for (const std::string& line : svg_lines(safe_to_print(note), axis.right - axis.left, small_text_size)) {
      y += std::exchange(space, 15);
      text += svg_text(axis.left, y, " class=\"small soft\"", line);
    }
  }
  return text;
}

}  // namespace

std::string gantt_svg(const std::string& title, const std::vector<GanttLane>& lanes,
                      const std::vector<GanttColor>& colors, SimTime finish, const std::optional<GanttPage>& page) {
  const double top = page ? 40 : 4;
  double label = 0;
  std::size_t n_bars = 0;
  for (const GanttLane& lane : lanes) {
    label = std::max(label, layout::width_of(lane.name, 12));
    n_bars += lane.bars.size();
  }
  label = std::min(label + 6, 240.0);
  const TimeAxis axis{.left = label + 14, .right = gantt_width - 30, .finish = finish};
  const double bottom = top + lane_height * static_cast<double>(lanes.size());
  std::string text;
  if (page)
    text = svg_text(picture_edge, 26, " class=\"title\"",
                    cut_text(safe_to_print(title), gantt_width - 2 * picture_edge, title_size, layout::Weight::bold));
  text += axis.svg(top, bottom);
  double y = top;
  for (const GanttLane& lane : lanes) {
    text +=
        svg_text(label, y + 16, " class=\"name\" text-anchor=\"end\"", cut_text(safe_to_print(lane.name), label, 12));
    text += n_bars <= most_titles ? bars_svg_of(lane, axis, y + 4) : joined_bars_svg(lane, axis, y + 4);
    y += lane_height;
  }
  y += 36;
  text += axis.legend_svg(legend_of(lanes, colors, n_bars <= most_titles), y);
  if (n_bars > most_titles)
    text += notes_svg(
        {"There are too many bars to draw individually: the color shows the largest part, and the height shows the "
         "share of time in use."},
        axis, y);
  if (page) text += notes_svg(page->notes, axis, y);
  return svg_opened(gantt_width, y + 8, title, page.has_value(), picture_style()) + text + "</svg>\n";
}

}  // namespace ringsim::tools
