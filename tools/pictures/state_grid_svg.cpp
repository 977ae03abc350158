#include "tools/pictures/state_grid_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/error.hpp"
#include "tools/output/output.hpp"
#include "tools/pictures/picture_style.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/pictures/time_axis.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

namespace {

constexpr double most_grid_width = 940, grid_row_height = 24, grid_cell_height = 20, widest_grid_cell = 48,
                 grid_head_height = 40;

double width_of_label(const std::string& label) { return layout::width_of(label, small_text_size) + 6; }

/// Every how many columns one has a name, so that none touches the next.
std::size_t named_every(const std::vector<std::string>& columns, double cell) {
  double widest = 0;
  for (const std::string& name : columns) widest = std::max(widest, width_of_label(name));
  return static_cast<std::size_t>(std::max(1.0, std::ceil(widest / cell)));
}

/// No wider than its content, so that small grids fit on small screens.
double width_of_grid(const StateGrid& grid, double left, double cell, const std::vector<LegendEntry>& legend) {
  double keys = 0;  // in one line, as TimeAxis draws them
  for (const LegendEntry& entry : legend) keys += 22 + layout::width_of(entry.name, small_text_size) + 18;
  return left +
         std::max({cell * static_cast<double>(grid.columns.size()), std::min(keys, most_grid_width - 30 - left),
                   layout::width_of(grid.columns_are, small_text_size)}) +
         12;
}

std::string state_cell_svg(const StateGrid& grid, const StateCell& cell, double x, double y, double width) {
  const GridState& state = grid.states[cell.state];
  std::string text = fmt::format(
      "<g class=\"{}\"><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\">"
      "<title>{}</title></rect></g>\n",
      state.color, state.color.starts_with('l') ? "cell" : "mark", x, y, width - 1, grid_cell_height,
      escaped_xml(cell.title));
  if (state.hatched)
    text += hatch_svg(x, y, width - 1, grid_cell_height);
  else if (width_of_label(cell.label) <= width)
    text += text_on_color(x + (width - 1) / 2, y + 14, state.color, cell.label);
  return text;
}

}  // namespace

std::string state_grid_svg(const StateGrid& grid) {
  ensure(!grid.rows.empty() && !grid.columns.empty(), "a grid has rows and columns");
  double label = 0;
  for (const StateRow& row : grid.rows) label = std::max(label, layout::width_of(row.name, 12));
  label = std::min(label + 6, 240.0);
  const double left = label + 14;
  const double cell =
      std::min((most_grid_width - 30 - left) / static_cast<double>(grid.columns.size()), widest_grid_cell);
  std::string text = svg_text(left, 13, " class=\"small soft\"", grid.columns_are);
  const std::size_t every = named_every(grid.columns, cell);
  for (std::size_t i = 0; i < grid.columns.size(); i += every)
    text += svg_text(left + cell * (static_cast<double>(i) + 0.5), 31, " class=\"small\" text-anchor=\"middle\"",
                     grid.columns[i]);
  double y = grid_head_height;
  std::set<std::size_t> seen;
  for (const StateRow& row : grid.rows) {
    text +=
        svg_text(label, y + 14, " class=\"name\" text-anchor=\"end\"", cut_text(safe_to_print(row.name), label, 12));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (!row.cells[i]) continue;
      seen.insert(row.cells[i]->state);
      text += state_cell_svg(grid, *row.cells[i], left + cell * static_cast<double>(i), y, cell);
    }
    y += grid_row_height;
  }
  y += 16;
  std::vector<LegendEntry> legend;
  for (const std::size_t state : seen)
    legend.push_back({.group = grid.states[state].color,
                      .mark = grid.states[state].color.starts_with('l') ? "cell" : "mark",
                      .name = grid.states[state].name,
                      .hatched = grid.states[state].hatched});
  text += TimeAxis{.left = left, .right = most_grid_width - 30, .finish = {}}.legend_svg(legend, y);
  return svg_opened(width_of_grid(grid, left, cell, legend), y + 12, grid.title, false, picture_style()) + text +
         "</svg>\n";
}

}  // namespace ringsim::tools
