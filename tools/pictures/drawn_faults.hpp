// The faults of a scenario, as a picture of its topology shows them.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::tools {

/// One entry of a scenario's `faults`.
struct DrawnFault {
  std::string text;  ///< "node3.nic0: 25 % from 3 ms until 5 ms"
  std::string what;  ///< without the name of the link: "25 % from 3 ms until 5 ms"
  std::vector<LinkId> links;
};

/// Throws InputError if the topology has no link or device of a fault's name.
std::vector<DrawnFault> drawn_faults(const Topology& topology, const Scenario& scenario);

}  // namespace ringsim::tools
