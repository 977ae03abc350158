// A topology as a picture.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"
#include "tools/pictures/drawn_marks.hpp"
#include "topologies/layout/cables.hpp"

namespace ringsim::tools {

/// What a link carried in a run.
struct LinkLoad {
  Bytes bytes;
  double busy = 0;  ///< 0 to 1: the share of the time in which it was busy, at its full rate
};

/// What a picture must not leave out as equal to others: marked links.
layout::LinkMarks marks_of(const std::vector<DrawnMark>& marks);

/// The anchor at which a page has more on a link between two devices, or on one parallel to it: "link-17".
std::string anchor_of(const layout::Cable& cable);

/// Devices, hosts and links with their rates, and a legend of the kinds of links. `loads`: nullptr, or those of a run,
/// then links have the color of the busier direction; links that are not in it were idle. Pointing at a device or a
/// link shows its name and figures. `told`: if the page has more to tell of a cable, then a click leads to its
/// anchor_of(). `alone`: a file of its own; else a part of a page that has svg_style() and
/// picture_style(). `marks`: shown, and listed below the picture; a device or host with one is drawn though others
/// like it are not.
std::string topology_svg(const Topology& topology, const std::string& title, const std::vector<DrawnMark>& marks,
                         const std::map<LinkId, LinkLoad>* loads, bool alone, const std::set<std::string>& told = {});

}  // namespace ringsim::tools
