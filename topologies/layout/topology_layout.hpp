// The positions of a topology's devices and links in a picture, whatever draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"
#include "topologies/layout/cables.hpp"
#include "topologies/layout/plane.hpp"

namespace ringsim::layout {

/// The size of text in boxes and on lines.
inline constexpr double font_size = 12, label_size = 11;
/// The width and height of a mark on a cable.
inline constexpr double mark_size = 16;

struct PlacedNode {
  NodeId node;
  std::string label;  ///< without the name of its host
  Box box;
};

/// Around the devices of a host.
struct PlacedFrame {
  std::uint32_t host = 0;
  std::string label;  ///< "node0"
  Box box, title;     ///< title: around its label, in its lower left corner
};

/// What stands for devices that are not drawn: "... 60 more nodes like node0".
struct PlacedNote {
  Box box;
  std::vector<std::string> lines;
};

struct PlacedCable {
  Cable cable;
  Curve curve;
  std::optional<Point> label;  ///< the center of its rate, if there is room for it
  std::optional<Point> mark;   ///< the center of its mark, if some of its links have one
};

/// Devices and frames do not overlap, labels lie neither on devices nor on each other.
struct TopologyLayout {
  double width = 0, height = 0;
  std::vector<PlacedNode> nodes;
  std::vector<PlacedFrame> frames;
  std::vector<PlacedNote> notes;
  std::vector<PlacedCable> cables;  ///< between devices that are drawn
  std::string left_out;             ///< what no note has: "1984 switches in 992 layers"; mostly empty

  bool is_whole() const { return notes.empty(); }
};

/// By structure: GPUs in a ring or a full mesh on a circle, around the switch of a star, a torus of two or three
/// dimensions as a grid. Else each host is a frame with NICs on top, GPUs below and NVSwitches at the bottom, and
/// switches of the fabric lie above in layers, by their distance from the hosts. Of equal hosts four are drawn, of
/// equal devices in a row eight to sixteen; a note says how many more there are. Of many layers of switches the lowest
/// are drawn. Hosts with links of different `marks` are not equal; of devices in a row those that have marked links
/// come before the others, as far as half of the row, so that what differs from the rest can be seen.
TopologyLayout layout_of(const Topology& topology, const LinkMarks& marks = {});

}  // namespace ringsim::layout
