// Small networks for the tests.
#pragma once

#include <fmt/format.h>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/topology.hpp"
#include "topologies/catalog.hpp"

namespace ringsim {

inline SimTime at(Picoseconds time) { return SimTime{time}; }

inline Topology star(int ranks, const LinkSpec& link, int extra_ports = 0) {
  return build(Star{.ranks = ranks, .link = link, .extra_ports = extra_ports});
}

inline LinkId link_between(const Topology& topology, const std::string& from, const std::string& to) {
  for (const LinkId id : topology.links_from(*topology.find(from)))
    if (topology.link(id).to == *topology.find(to)) return id;
  return no_link;
}

/// gpu0 and gpu1 on switch s0, gpu2 and gpu3 on s1, and a trunk between the switches.
inline Topology dumbbell(const LinkSpec& port, const LinkSpec& trunk) {
  TopologyBuilder builder;
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId s0 = builder.add_node("s0", NodeKind::network_switch);
  const NodeId s1 = builder.add_node("s1", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < 4; ++g) builder.add_cable(NodeId{g}, g < 2 ? s0 : s1, port);
  builder.add_cable(s0, s1, trunk);
  return builder.build();
}

}  // namespace ringsim
