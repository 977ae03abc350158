// What happens on a few lanes over the time of a run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim::tools {

struct GanttBar {
  SimTime begin{}, end{};
  std::size_t color = 0;  ///< of plots, 0 to 5
  std::string title;      ///< what a pointer over it shows
  std::string label;      ///< written on it, if there is room
  bool hatched = false;
};

struct GanttLane {
  std::string name;
  std::vector<GanttBar> bars;  ///< by begin
};

struct GanttColor {
  std::size_t color = 0;
  std::string name;
  bool hatched = false;
};

/// A picture that is a file of its own, with its title at the top.
struct GanttPage {
  std::vector<std::string> notes;  ///< lines below it
};

/// Lanes below each other. Of more than 2000 bars each pixel column has the color that takes most of its time and the
/// height of the share that is taken, and there are no titles, labels and hatches. The legend has those of `colors`
/// that bars have. Without `page` a part of a page that has svg_style() and picture_style(). Requires a lane.
std::string gantt_svg(const std::string& title, const std::vector<GanttLane>& lanes,
                      const std::vector<GanttColor>& colors, SimTime finish,
                      const std::optional<GanttPage>& page = std::nullopt);

}  // namespace ringsim::tools
