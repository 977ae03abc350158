// What a picture of a topology marks: the faults of its scenario, and the links that set a bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/topology/topology.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim::tools {

/// One entry of a scenario's `faults`, or a bound's bottleneck.
struct DrawnMark {
  enum class Kind : std::uint8_t { fault, bottleneck };
  std::string text;  ///< "node3.nic0: 25 % from 3 ms until 5 ms"
  std::string what;  ///< without the name of the link: "25 % from 3 ms until 5 ms"
  std::vector<LinkId> links;
  Kind kind = Kind::fault;
};

/// Throws InputError if the topology has no link or device of a fault's name.
std::vector<DrawnMark> drawn_faults(const Topology& topology, const Scenario& scenario);

/// "all_gather, at most 319.8 GB/s (algbw): 15 of the 16 blocks must enter ..."
DrawnMark drawn_bottleneck(CollectiveOp op, const Bound& bound);

}  // namespace ringsim::tools
