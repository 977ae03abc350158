#include "tools/pictures/heat_map_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/output/output.hpp"
#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/pictures/time_axis.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

namespace {

constexpr double heat_width = 940, row_height = 14;

/// A row's cells, one path for each class; equal neighbors are one cell.
std::string cells_svg(const HeatRow& row, Picoseconds bin, const TimeAxis& axis, double y) {
  std::array<std::string, n_loads> paths;
  for (std::size_t first = 0; first < row.shares.size();) {
    const std::size_t load = load_class(row.shares[first]);
    std::size_t end = first + 1;
    while (end < row.shares.size() && load_class(row.shares[end]) == load) ++end;
    const auto moment = [&](std::size_t i) {
      const auto n = static_cast<std::int64_t>(i);
      return n > axis.finish.time_since_epoch() / bin ? axis.finish : SimTime{n * bin};
    };
    const double x = axis.x_of(moment(first)), width = axis.x_of(moment(end)) - x;
    if (load > 0)
      paths[load] += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.0f}h{:.1f}z", x, y, width, row_height - 2, -width);
    first = end;
  }
  std::string text;
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (!paths[i].empty()) text += fmt::format("<g class=\"l{}\"><path class=\"cell\" d=\"{}\"/></g>", i, paths[i]);
  return text;
}

}  // namespace

std::string heat_map_svg(const std::string& title, const std::vector<HeatRow>& rows, Picoseconds bin, SimTime finish) {
  double label = 0;
  for (const HeatRow& row : rows) label = std::max(label, layout::width_of(row.name, small_text_size));
  label = std::min(label + 6, 330.0);
  const TimeAxis axis{.left = label + 14, .right = heat_width - 62, .finish = finish};
  const double bottom = 4 + row_height * static_cast<double>(rows.size());
  std::string text = axis.svg(4, bottom);
  double y = 4;
  for (const HeatRow& row : rows) {
    text += fmt::format("<g><title>{}: {}</title>\n", escaped_xml(row.name), escaped_xml(row.figures)) +
            svg_text(label, y + 10.5, " class=\"small\" text-anchor=\"end\"",
                     cut_text(safe_to_print(row.name), label, small_text_size)) +
            cells_svg(row, bin, axis, y + 1) +
            svg_text(axis.right + 6, y + 10.5, " class=\"small soft\"", row.figures) + "</g>\n";
    y += row_height;
  }
  y += 36;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 1; i < n_loads; ++i) legend.push_back({fmt::format("l{}", i), "cell", load_names()[i]});
  text += axis.legend_svg(legend, y);
  return svg_opened(heat_width, y + 8, title, /*alone=*/false) + text + "</svg>\n";
}

}  // namespace ringsim::tools
