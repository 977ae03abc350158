// Topologies and paths as names, so that a test can list what it expects.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

inline std::vector<std::string> names_of(const Topology& topology, std::span<const LinkId> links) {
  std::vector<std::string> names;
  for (const LinkId id : links) names.push_back(topology.link_name(id));
  return names;
}

/// Each cable once, as "a - b", in the order in which they were added.
inline std::vector<std::string> cables_of(const Topology& topology) {
  std::vector<std::string> names;
  for (std::size_t l = 0; l < topology.n_links(); l += 2) {
    const Link& link = topology.links()[l];
    names.push_back(topology.node(link.from).name + " - " + topology.node(link.to).name);
  }
  return names;
}

/// The path as "TYPE: a > b > c | c > d": legs between bars.
inline std::string text_of(const Topology& topology, const Path& path) {
  std::string text = std::string(to_string(path.type)) + ":";
  for (const Leg& leg : path.legs) {
    if (&leg != &path.legs.front()) text += " |";
    text += " " + topology.node(topology.link(leg.links.front()).from).name;
    for (const LinkId id : leg.links) text += " > " + topology.node(topology.link(id).to).name;
  }
  return text;
}

inline NodeId at(const Topology& topology, const std::string& name) {
  const auto id = topology.find(name);
  REQUIRE_MESSAGE(id, name);
  return *id;
}

}  // namespace ringsim
