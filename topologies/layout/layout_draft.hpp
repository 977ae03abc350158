// A layout while it is made.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/layout/topology_layout.hpp"

namespace ringsim::layout {

inline constexpr double box_height = 24;

/// What a layout is made of.
struct Plan {
  Plan(const Topology& of, const LinkMarks& of_links);

  const Topology& topology;
  std::vector<Cable> cables;
  LinkMarks marks;
  std::vector<bool> marked;                    // [node] whether a link of it has a mark
  std::vector<std::size_t> likeness;           // [node]
  std::vector<std::vector<NodeId>> neighbors;  // [node] ascending
};

struct Draft {
  std::vector<PlacedNode> nodes;
  std::vector<PlacedFrame> frames;
  std::vector<PlacedNote> notes;
  /// How far cables of a row hang down, by their ends; the others are as straight as boxes in their way allow.
  std::map<std::pair<NodeId, NodeId>, double> sags;
  std::string left_out;  // as TopologyLayout's

  void place(const Plan& plan, NodeId node, Point at, double width = 0);  ///< width 0: as wide as its label
  void note(Point at, std::vector<std::string> lines);
  void add(const Draft& part, double dx, double dy);
  const PlacedNode* find(NodeId node) const;
};

std::string label_of(const Topology& topology, NodeId node);  ///< its name without the host's
double box_width(const Topology& topology, NodeId node);
/// The box around lines of small text.
Box box_of(Point at, const std::vector<std::string>& lines);
/// "... 5 more", "like gpu0" if they are.
std::vector<std::string> lines_for_more(const Plan& plan, const std::vector<NodeId>& all, std::size_t shown);

/// At most `most` of them, in their order: up to half are marked ones, the others those that come first.
std::vector<NodeId> some_devices(const Plan& plan, const std::vector<NodeId>& all, std::size_t most);

/// A circle, or a grid; nothing if the topology is none of them.
std::optional<Draft> shape_of(const Plan& plan);
/// Hosts in a row, the fabric above.
Draft layers_of(const Plan& plan);
/// The devices of one host in a frame whose upper left corner is (0, 0).
Draft host_of(const Plan& plan, std::uint32_t host, const std::vector<NodeId>& members);

}  // namespace ringsim::layout
