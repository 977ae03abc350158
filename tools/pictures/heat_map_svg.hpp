// How busy links were over the time of a run.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim::tools {

struct HeatRow {
  std::string name, figures;   ///< "node0.gpu0 -> node0.pcie0"; at its end: "98 %"
  std::vector<double> shares;  ///< [bin] 0 to 1; of each row as many
};

/// Rows by time, in the classes of load_names(). `bin`: the length of a bin; the last one ends with the run. A part of
/// a page that has svg_style() and picture_style(). Requires a row.
std::string heat_map_svg(const std::string& title, const std::vector<HeatRow>& rows, Picoseconds bin, SimTime finish);

}  // namespace ringsim::tools
